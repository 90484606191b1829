//! Reading a conversation: what the user said, and what has happened since.

use serde_json::Value;
use switchboard_core::{Item, ItemKind, Items};

/// The most messages of the user that are read.
const MOST_MESSAGES: usize = 4;
/// What a handoff's nested history begins with.
const NESTED: &str = "For context, here is the conversation so far";

/// What matters of a conversation.
#[derive(Debug, Default, PartialEq)]
pub(super) struct History {
    /// What the user said, the newest first, a few messages.
    pub(super) user: Vec<String>,
    /// What the assistant said last before that.
    pub(super) assistant: Option<String>,
    /// What has happened since the user spoke.
    pub(super) since: Since,
}

/// What has happened since the user spoke.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Since {
    /// The agents that got the conversation, in order.
    pub(super) handoffs: Vec<String>,
    /// What tools answered since the last handoff.
    pub(super) outputs: Vec<String>,
    /// The tools that were called, and handoffs that were refused.
    pub(super) called: Vec<String>,
}

impl History {
    /// Reads a conversation.
    pub(super) fn read(items: &Items) -> Self {
        let items: Vec<&Item> = items.iter().collect();
        let mut user = (0..items.len()).rev().filter(|at| is_of_user(items[*at]));
        // What lies before the oldest message that counts is not read, but for what was said last.
        let start = user.nth(MOST_MESSAGES).unwrap_or(0);
        let mut history = Self::default();
        let mut said = None;
        for item in &items[start..] {
            history.note(item, &mut said);
        }
        history.user.reverse();
        history
    }

    /// The words of the user that count now.
    pub(super) fn last_words(&self) -> &str {
        self.user.first().map_or("", String::as_str)
    }

    fn note(&mut self, item: &Item, said: &mut Option<String>) {
        match item.kind() {
            ItemKind::Message => self.note_message(item, said),
            ItemKind::FunctionCall => {
                self.since
                    .called
                    .extend(item.name().map(|name| name.into_owned()));
            }
            kind if kind.is_output() => self.note_output(item),
            _ => {}
        }
    }

    fn note_message(&mut self, item: &Item, said: &mut Option<String>) {
        let role = item.role().unwrap_or_default();
        let Some(text) = item.text() else { return };
        match &*role {
            "assistant" if text.starts_with(NESTED) => {
                for record in text.lines().filter_map(record) {
                    self.note(&record, said);
                }
            }
            "assistant" => *said = Some(text.into_owned()),
            "user" => {
                if self.user.len() == MOST_MESSAGES {
                    self.user.remove(0);
                }
                self.user.push(text.into_owned());
                self.assistant = said.take();
                self.since = Since::default();
            }
            _ => {}
        }
    }

    fn note_output(&mut self, item: &Item) {
        let text = match item.output() {
            Some(text) => text.into_owned(),
            None => parts(item),
        };
        match agent_in(&text) {
            Some(agent) => {
                self.since.handoffs.push(agent);
                self.since.outputs.clear();
            }
            None => self.since.outputs.push(text),
        }
    }
}

/// Whether the user speaks in this item.
fn is_of_user(item: &Item) -> bool {
    let nested = || {
        item.field("content")
            .is_some_and(|raw| raw.get(1..).is_some_and(|text| text.starts_with(NESTED)))
    };
    item.kind() == ItemKind::Message
        && match item.role().as_deref() {
            Some("user") => true,
            Some("assistant") => nested(),
            _ => false,
        }
}

/// The agent that the output of a handoff names.
fn agent_in(output: &str) -> Option<String> {
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

/// The text of an output that comes in parts.
fn parts(item: &Item) -> String {
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

/// One record of a nested history: `2. user: Hello`, or the JSON of an item.
fn record(line: &str) -> Option<Item> {
    let (number, rest) = line.split_once(". ")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if rest.starts_with('{') {
        return Item::from_json(rest).ok().filter(|item| {
            // A record within a record is the user's text, not the engine's.
            item.text().is_none_or(|text| !text.starts_with(NESTED))
        });
    }
    let (role, text) = rest.split_once(": ")?;
    let role = role.split(' ').next()?;
    matches!(role, "user" | "assistant")
        .then(|| Item::message(role, text))
        .filter(|_| !text.starts_with(NESTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_last_message_is_over() {
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
            since: Since {
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
        assert_eq!(history.last_words(), "My parcel?");
        assert_eq!(history.since.handoffs, ["B"]);
    }
}
