//! The text of a case that a conversation passes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// A conversation to make a routing test of.
///
/// ```
/// use switchboard_teamfile::RecordedCase;
///
/// let mut case = RecordedCase::new("a wrong bill");
/// case.messages = vec!["My bill is wrong".to_owned()];
/// case.path = vec!["Triage".to_owned(), "Billing".to_owned()];
/// assert!(case.to_toml().contains("expect = \"Billing\""));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordedCase {
    /// The name of the case.
    pub name: String,
    /// The messages of the user.
    pub messages: Vec<String>,
    /// Values of the context, by path.
    pub context: Map<String, Value>,
    /// The agent that got the first message, if it is not the team's first one.
    pub agent: Option<String>,
    /// The agents that had the conversation, in order.
    pub path: Vec<String>,
    /// The payload of the last handoff.
    pub payload: Option<Value>,
    /// The tools that ran, with their arguments.
    pub calls: Vec<(String, Value)>,
    /// A guardrail that fired.
    pub guardrail: Option<String>,
    /// The number of turns.
    pub turns: u32,
}

impl RecordedCase {
    /// A case without a conversation.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The case in TOML, as an entry of a file of cases.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("[[cases]]\n");
        let mut field = |name: &str, value: &Value| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name} = {}", toml_value(value));
        };
        field("name", &self.name.as_str().into());
        match self.messages.as_slice() {
            [message] => field("message", &message.as_str().into()),
            messages => field("messages", &messages.to_vec().into()),
        }
        if !self.context.is_empty() {
            field("context", &self.context.clone().into());
        }
        if let Some(agent) = &self.agent {
            field("agent", &agent.as_str().into());
        }
        if let Some(last) = self.path.last() {
            field("expect", &last.as_str().into());
        }
        field("path", &self.path.clone().into());
        if let Some(payload @ Value::Object(fields)) = &self.payload
            && !fields.is_empty()
        {
            field("payload", payload);
        }
        let tools = self.calls.iter().map(|(tool, arguments)| match arguments {
            Value::Object(fields) if !fields.is_empty() => {
                json!({"tool": tool, "arguments": arguments})
            }
            _ => tool.as_str().into(),
        });
        field("tools", &tools.collect());
        if let Some(guardrail) = &self.guardrail {
            field("guardrail", &guardrail.as_str().into());
        }
        field("max_turns", &self.turns.into());
        out
    }
}

/// A value in TOML, which has no null: fields and items that are null are left out.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null()).map(toml_value);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields =
                fields.map(|(name, value)| format!("{} = {}", toml_text(name), toml_value(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => toml_text(text),
        other => other.to_string(),
    }
}

/// A text as a basic string of TOML. The escapes of JSON are those of TOML, but DEL needs one.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
