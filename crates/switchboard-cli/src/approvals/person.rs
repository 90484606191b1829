//! The answers of a person that a run waits for.

use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::people::PersonAnswer;

use crate::args;
use crate::failure::Failure;
use crate::json_error;

/// A line that a person types as an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PersonLine {
    Answer(PersonAnswer),
    /// Show all of the payload.
    ShowAll,
    Help,
    Empty,
    /// A command that does not exist.
    Unclear,
}

impl From<&str> for PersonLine {
    fn from(line: &str) -> Self {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("//") {
            return Self::Answer(PersonAnswer::reply(format!("/{text}")));
        }
        let Some(command) = line.strip_prefix('/') else {
            return match line {
                "" => Self::Empty,
                "?" => Self::Help,
                text => Self::Answer(PersonAnswer::reply(text)),
            };
        };
        let (name, argument) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        match (name, argument.trim()) {
            ("to", agent) if !agent.is_empty() => Self::Answer(PersonAnswer::hand_to(agent)),
            ("back", "") => Self::Answer(PersonAnswer::hand_back()),
            ("show", "") => Self::ShowAll,
            ("help", "") => Self::Help,
            _ => Self::Unclear,
        }
    }
}

/// Returns `true` if a person is asked for an answer, and not for a decision on a call.
pub(crate) fn is_person(waiting: &Interruption) -> bool {
    matches!(waiting.kind, InterruptionKind::Person { .. })
}

/// The answer that the command line gives, if it gives one.
pub(crate) fn given_answer(args: &args::Answer) -> Result<Option<PersonAnswer>, Failure> {
    let answer = match (&args.reply, &args.hand_to, args.hand_back) {
        (None, None, false) if args.note.is_none() && args.payload.is_none() => return Ok(None),
        (None, None, false) => {
            return Err(Failure::usage(
                "--note and --payload are parts of an answer, and none is given",
                "give one with --reply, --hand-to or --hand-back",
            ));
        }
        (Some(reply), None, false) => PersonAnswer::reply(reply.as_str()),
        (Some(reply), Some(agent), _) => {
            PersonAnswer::reply(reply.as_str()).then_hand_to(agent.as_str())
        }
        (Some(reply), None, true) => PersonAnswer::reply(reply.as_str()).then_hand_back(),
        (None, Some(agent), _) => PersonAnswer::hand_to(agent.as_str()),
        (None, None, true) => PersonAnswer::hand_back(),
    };
    let answer = match &args.note {
        Some(note) => answer.note(note.as_str()),
        None => answer,
    };
    let Some(payload) = &args.payload else {
        return Ok(Some(answer));
    };
    match serde_json::from_str::<serde_json::Value>(payload) {
        Ok(payload) => Ok(Some(answer.payload(payload))),
        Err(error) => Err(Failure::usage(
            format!("--payload is not JSON: {}", json_error::describe(&error)),
            "write it as in --payload '{\"amount\": 20}'",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_reply_unless_it_is_a_command() {
        let reply = |text: &str| PersonLine::Answer(PersonAnswer::reply(text));
        for (line, expected) in [
            (" I am here. ", reply("I am here.")),
            ("//to me", reply("/to me")),
            (
                "/to Account closure",
                PersonLine::Answer(PersonAnswer::hand_to("Account closure")),
            ),
            ("/back", PersonLine::Answer(PersonAnswer::hand_back())),
            ("/show", PersonLine::ShowAll),
            ("?", PersonLine::Help),
            ("", PersonLine::Empty),
            // Nothing that looks like a command is said to the user.
            ("/to", PersonLine::Unclear),
            ("/bakc", PersonLine::Unclear),
        ] {
            assert_eq!(PersonLine::from(line), expected, "{line}");
        }
    }
}
