//! What happens in a conversation, as the program tells it.
//!
//! A run makes events, the screen draws them, `--json` prints them and `replay` reads them: so the
//! three cannot disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::{GuardrailOutcome, Usage};

/// An event and when it happened: one line of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// What happened.
    #[serde(flatten)]
    pub(crate) event: Event,
    /// Seconds since the conversation began.
    #[serde(default)]
    pub(crate) at: f64,
}

/// Something that happened in a conversation. `docs/program.md` describes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The user has said something, and a run begins.
    RunStarted {
        /// The team's file.
        team: String,
        /// All agents of the team.
        #[serde(default)]
        agents: Vec<String>,
        /// Who gets the message.
        agent: String,
        /// The name of that agent's model.
        #[serde(default)]
        model: String,
        /// What the user said.
        message: String,
    },
    /// Another agent has the conversation now.
    AgentUpdated {
        /// Who.
        agent: String,
        /// The name of its model.
        #[serde(default)]
        model: String,
    },
    /// A piece of an answer.
    TextDelta {
        /// Who speaks.
        agent: String,
        /// The piece.
        text: String,
    },
    /// A whole answer; the pieces came before it.
    Message {
        /// Who spoke.
        agent: String,
        /// What was said.
        text: String,
    },
    /// A tool was called.
    ToolCalled {
        /// Who called it.
        agent: String,
        /// Tells calls apart.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it was given; text where it is not JSON.
        arguments: Value,
    },
    /// A tool answered.
    ToolOutput {
        /// Who had called it.
        agent: String,
        /// Which call this answers.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it returned, or what the model was told of its failure.
        output: Value,
        /// Whether it failed.
        #[serde(default)]
        failed: bool,
    },
    /// The conversation was handed over.
    Handoff {
        /// Who had it.
        from: String,
        /// Who has it now.
        to: String,
        /// The name of the handoff's tool.
        tool: String,
        /// What the model sent along; an empty object where it sent nothing.
        payload: Value,
        /// What the next agent's model was shown; absent where it never came to that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carried: Option<Carried>,
    },
    /// A handoff was refused, and the model was told why.
    HandoffRefused {
        /// Who has the conversation, and keeps it.
        from: String,
        /// Who would have got it.
        to: String,
        /// The name of the handoff's tool.
        tool: String,
        /// What the model sent along.
        payload: Value,
        /// Why.
        reason: String,
    },
    /// A guardrail had something to object to.
    Guardrail {
        /// Its name.
        guardrail: String,
        /// The agent it ran for.
        agent: String,
        /// `replaced`, `refused` or `tripped`.
        outcome: GuardrailOutcome,
        /// What it said, where it stopped the run.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        info: Value,
    },
    /// The run has its final output.
    Finished {
        /// Who has the conversation, and gets the next message.
        agent: String,
        /// The final output; text, unless the agent answers in a form of its own.
        output: Value,
        /// What it took.
        #[serde(flatten)]
        cost: Cost,
    },
    /// The run was stopped by the user.
    Stopped {
        /// Who has the conversation.
        agent: String,
        /// What was said of an answer that was not finished.
        output: String,
        /// What it took.
        #[serde(flatten)]
        cost: Cost,
    },
    /// The run failed.
    Error {
        /// What kind of failure, for machines.
        kind: String,
        /// What happened.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        help: Option<String>,
        /// The exit code of `switchboard run` for it.
        exit_code: u8,
        /// What it took.
        #[serde(flatten)]
        cost: Cost,
    },
    /// An event of a later version; skipped.
    #[serde(other)]
    Unknown,
}

/// What a handoff carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    /// How many items the next agent's model was shown.
    pub(crate) items: usize,
    /// How many there were.
    pub(crate) of: usize,
    /// How many of each kind: `user_message`, `function_call`, ...
    pub(crate) kinds: BTreeMap<String, usize>,
}

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Turns of models.
    #[serde(default)]
    pub(crate) turns: u32,
    /// Requests and tokens.
    #[serde(default)]
    pub(crate) usage: Usage,
    /// Seconds.
    #[serde(default)]
    pub(crate) seconds: f64,
}

/// Seconds, to the millisecond: more would only be noise.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finished() -> Line {
        Line {
            event: Event::Finished {
                agent: "Billing".into(),
                output: json!("Done."),
                cost: Cost {
                    turns: 2,
                    usage: Usage {
                        requests: 2,
                        input_tokens: 10,
                        output_tokens: 3,
                        ..Usage::default()
                    },
                    seconds: 0.25,
                },
            },
            at: 1.5,
        }
    }

    #[test]
    fn a_line_is_flat_and_reads_back_as_it_was() {
        let json = serde_json::to_value(finished()).unwrap();
        assert_eq!(
            json,
            json!({
                "type": "finished",
                "agent": "Billing",
                "output": "Done.",
                "turns": 2,
                "usage": {
                    "requests": 2,
                    "input_tokens": 10,
                    "cached_tokens": 0,
                    "output_tokens": 3,
                    "reasoning_tokens": 0,
                },
                "seconds": 0.25,
                "at": 1.5,
            })
        );
        assert_eq!(serde_json::from_value::<Line>(json).unwrap(), finished());
    }

    #[test]
    fn a_type_of_a_later_version_is_no_mistake() {
        let line = r#"{"type":"telepathy","agent":"Billing","at":3}"#;
        let read: Line = serde_json::from_str(line).unwrap();
        assert_eq!(
            read,
            Line {
                event: Event::Unknown,
                at: 3.0
            }
        );
    }

    #[test]
    fn a_field_of_a_later_version_is_no_mistake() {
        let line = r#"{"type":"message","agent":"A","text":"Hi","mood":"good","at":0}"#;
        let read: Line = serde_json::from_str(line).unwrap();
        let (agent, text) = ("A".into(), "Hi".into());
        assert_eq!(read.event, Event::Message { agent, text });
    }

    #[test]
    fn the_guide_describes_every_event_and_every_field() {
        let guide = include_str!("../../../docs/program.md");
        let cost = r#""turns":1,"usage":{},"seconds":1"#;
        for line in [
            r#"{"type":"run_started","team":"","agents":[],"agent":"","model":"","message":""}"#,
            r#"{"type":"agent_updated","agent":"","model":""}"#,
            r#"{"type":"text_delta","agent":"","text":""}"#,
            r#"{"type":"message","agent":"","text":""}"#,
            r#"{"type":"tool_called","agent":"","call_id":"","tool":"","arguments":{}}"#,
            r#"{"type":"tool_output","agent":"","call_id":"","tool":"","output":1,"failed":true}"#,
            r#"{"type":"handoff","from":"","to":"","tool":"","payload":{},"carried":{"items":1,"of":2,"kinds":{}}}"#,
            r#"{"type":"handoff_refused","from":"","to":"","tool":"","payload":{},"reason":""}"#,
            r#"{"type":"guardrail","guardrail":"","agent":"","outcome":"tripped","info":"x"}"#,
            &format!(r#"{{"type":"finished","agent":"","output":"",{cost}}}"#),
            &format!(r#"{{"type":"stopped","agent":"","output":"",{cost}}}"#),
            &format!(
                r#"{{"type":"error","kind":"","message":"","help":"x","exit_code":1,{cost}}}"#
            ),
        ] {
            let read: Event = serde_json::from_str(line).unwrap();
            assert_ne!(read, Event::Unknown, "{line}");
            let written = serde_json::to_value(&read).unwrap();
            let name = written["type"].as_str().unwrap();
            let row = guide
                .lines()
                .find(|row| row.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{name} is not in the guide"));
            for field in written
                .as_object()
                .unwrap()
                .keys()
                .filter(|field| *field != "type")
            {
                assert!(row.contains(&format!("`{field}`")), "{name} {field}: {row}");
            }
        }
    }
}
