//! The parts of a conversation that a decision depends on.

use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::items::{ItemKind, Items};

/// The maximum number of user messages that are read.
const MAX_MESSAGES: usize = 4;
/// The start of the message that holds a handoff's nested history.
const NESTED_PREFIX: &str = "For context, here is the conversation so far";

/// The parts of a conversation that a decision depends on.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct History {
    /// The last user messages, newest first.
    pub(crate) user: Vec<String>,
    /// The assistant's reply before the last user message.
    pub(crate) assistant: Option<String>,
    /// The calls since the last user message.
    pub(crate) turn: Turn,
}

/// The calls since the last user message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Turn {
    /// The names of the agents that received the conversation, in order.
    pub(crate) handoffs: Vec<String>,
    /// The tool outputs since the last handoff.
    pub(crate) outputs: Vec<String>,
    /// The names of the functions called: tools, and handoffs, refused ones included.
    pub(crate) called: Vec<String>,
}

impl History {
    /// Reads the history of a conversation.
    pub(crate) fn read(items: &Items) -> Self {
        let items: Vec<&Item> = items.iter().collect();
        // One message more than is kept: the reply between the two is read as well.
        let start = (0..items.len())
            .rev()
            .filter(|at| has_user_message(items[*at]))
            .nth(MAX_MESSAGES)
            .unwrap_or(0);
        let mut history = Self::default();
        let mut last_reply = None;
        for item in &items[start..] {
            history.add(item, &mut last_reply);
        }
        history.user.reverse();
        history
    }

    /// Returns the last user message, empty if there is none.
    pub(crate) fn last_message(&self) -> &str {
        self.user.first().map_or("", String::as_str)
    }

    fn add(&mut self, item: &Item, last_reply: &mut Option<String>) {
        match item.kind() {
            ItemKind::Message => self.add_message(item, last_reply),
            ItemKind::FunctionCall => {
                let name = item.name().map(|name| name.into_owned());
                self.turn.called.extend(name);
            }
            kind if kind.is_output() => self.add_output(item),
            _ => {}
        }
    }

    fn add_message(&mut self, item: &Item, last_reply: &mut Option<String>) {
        let role = item.role().unwrap_or_default();
        let Some(text) = item.text() else { return };
        match &*role {
            "assistant" if text.starts_with(NESTED_PREFIX) => {
                for record in text.lines().filter_map(parse_record) {
                    self.add(&record, last_reply);
                }
            }
            "assistant" => *last_reply = Some(text.into_owned()),
            "user" => {
                if self.user.len() == MAX_MESSAGES {
                    self.user.remove(0);
                }
                self.user.push(text.into_owned());
                self.assistant = last_reply.take();
                self.turn = Turn::default();
            }
            _ => {}
        }
    }

    fn add_output(&mut self, item: &Item) {
        let text = match item.output() {
            Some(text) => text.into_owned(),
            None => joined_output(item),
        };
        match handoff_target(&text) {
            Some(agent) => {
                self.turn.handoffs.push(agent);
                self.turn.outputs.clear();
            }
            None => self.turn.outputs.push(text),
        }
    }
}

/// Returns `true` for a user message, and for a nested history, which may hold some.
fn has_user_message(item: &Item) -> bool {
    let is_nested = || {
        item.field("content").is_some_and(|raw| {
            raw.get(1..)
                .is_some_and(|text| text.starts_with(NESTED_PREFIX))
        })
    };
    item.kind() == ItemKind::Message
        && match item.role().as_deref() {
            Some("user") => true,
            Some("assistant") => is_nested(),
            _ => false,
        }
}

/// Returns the agent that the output of a handoff names: `{"assistant": "Billing"}`.
fn handoff_target(output: &str) -> Option<String> {
    if output.len() > 1_000 || !output.starts_with('{') {
        return None;
    }
    match serde_json::from_str(output).ok()? {
        Value::Object(fields) if fields.len() == 1 => {
            fields.get("assistant")?.as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// Joins the text of an output that is a list of content parts.
fn joined_output(item: &Item) -> String {
    let parts = item
        .field("output")
        .and_then(|raw| serde_json::from_str(raw).ok());
    match parts {
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Parses one record of a nested history: `2. user: Hello`, or a number and the JSON of an item.
fn parse_record(line: &str) -> Option<Item> {
    let (number, rest) = line.split_once(". ")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if rest.starts_with('{') {
        return Item::from_json(rest).ok().filter(|item| {
            // A nested history within a record is text that the user wrote.
            item.text()
                .is_none_or(|text| !text.starts_with(NESTED_PREFIX))
        });
    }
    let (role, text) = rest.split_once(": ")?;
    let role = role.split(' ').next()?;
    matches!(role, "user" | "assistant")
        .then(|| Item::message(role, text))
        .filter(|_| !text.starts_with(NESTED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_message_starts_a_new_turn() {
        let items: Items = vec![
            Item::user("one"),
            Item::function_call("c1", "lookup", "{}"),
            Item::function_call_output("c1", "42"),
            Item::assistant("It is 42."),
            Item::user("two"),
            Item::function_call("c2", "transfer_to_b", "{}"),
            Item::function_call_output("c2", r#"{"assistant": "B"}"#),
        ]
        .into();
        let expected = History {
            user: vec!["two".to_owned(), "one".to_owned()],
            assistant: Some("It is 42.".to_owned()),
            turn: Turn {
                handoffs: vec!["B".to_owned()],
                outputs: vec![],
                called: vec!["transfer_to_b".to_owned()],
            },
        };
        assert_eq!(History::read(&items), expected);
    }

    #[test]
    fn a_nested_history_is_read_as_the_conversation_it_holds() {
        let text = "For context, here is the conversation so far between the user and the previous agent:\n\
            <CONVERSATION HISTORY>\n1. user: My parcel?\n\
            2. {\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"transfer_to_b\",\"arguments\":\"{}\"}\n\
            3. {\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"{\\\"assistant\\\": \\\"B\\\"}\"}\n\
            </CONVERSATION HISTORY>";
        let history = History::read(&vec![Item::assistant(text)].into());
        assert_eq!(history.last_message(), "My parcel?");
        assert_eq!(history.turn.handoffs, ["B"]);
    }
}
