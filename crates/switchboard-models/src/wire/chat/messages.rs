//! A conversation as messages.
//!
//! They are written from the items' own bytes, straight into the body: what is text in an item is
//! the same text in a message, so that most of a conversation is copied once and read never.

use std::borrow::Cow;

use serde_json::json;
use switchboard_core::__private::Fact;
use switchboard_core::{Item, ItemKind, ModelRequest};

use super::outputs::Outputs;
use super::parts;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::is_assistants;
use crate::wire::lenient::{sound, text};

/// Writes the messages of a request as a list; how many there are.
pub(super) fn write(
    json: &mut Vec<u8>,
    request: &ModelRequest,
    is_openai: bool,
) -> Result<usize, ModelError> {
    let mut messages = Messages {
        json,
        written: 0,
        pending: Said::default(),
        outputs: Outputs::default(),
        is_openai,
    };
    messages.put("[");
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        messages.begin(r#"{"role":"system","content":"#);
        messages.escape(&instructions);
        messages.put("}");
    }
    for output in request.input.iter().filter(|item| is_output(item)) {
        messages.outputs.add(output_id(output), output);
    }
    for item in &request.input {
        messages.add(item)?;
    }
    messages.flush();
    messages.put("]");
    for id in messages.outputs.left() {
        tracing::debug!(call_id = id, "left out: an output of no call");
    }
    Ok(messages.written)
}

/// Calls and their outputs stand together, whatever stood between them: the protocol takes them in
/// no other way.
struct Messages<'j, 'a> {
    json: &'j mut Vec<u8>,
    written: usize,
    /// What an assistant says and calls in one go is one message.
    pending: Said<'a>,
    outputs: Outputs<'a>,
    is_openai: bool,
}

/// A message of an assistant in the making; its parts are JSON.
#[derive(Default)]
struct Said<'a> {
    content: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    calls: Vec<Call<'a>>,
}

/// A call and what answers it.
struct Call<'a> {
    id: Cow<'a, str>,
    /// The identifier that is told.
    told: Cow<'a, str>,
    name: Cow<'a, str>,
    /// In JSON.
    arguments: Cow<'a, str>,
    output: &'a Item,
}

impl<'a> Messages<'_, 'a> {
    fn add(&mut self, item: &'a Item) -> Result<(), ModelError> {
        match item.kind() {
            _ if is_output(item) => {
                let id = output_id(item);
                // What comes now was said after this output.
                if self.pending.calls.iter().any(|call| call.id == id) {
                    self.flush();
                }
                Ok(())
            }
            ItemKind::Message if is_assistants(item) => {
                self.assistant(item);
                Ok(())
            }
            ItemKind::Message => {
                self.flush();
                self.message(item)
            }
            ItemKind::FunctionCall => self.call(item, item.name(), arguments(item)),
            kind if kind == ItemKind::Compaction || is_reference(item) => {
                Err(unsupported(format!(
                    "an item of type \"{}\" stands for a part of the conversation that only the \
                     provider that made it can read",
                    item.type_name().unwrap_or_default()
                )))
            }
            kind if kind.output_kind().is_some() && item.call_id().is_some() => {
                let name = item.name().unwrap_or(kind.as_str().into());
                self.call(item, Some(name), other_arguments(item).into())
            }
            kind => {
                tracing::debug!(
                    kind = kind.as_str(),
                    "left out: Chat Completions cannot carry it"
                );
                Ok(())
            }
        }
    }

    /// What a user, the system or a developer says.
    fn message(&mut self, item: &'a Item) -> Result<(), ModelError> {
        let role = item.role().unwrap_or_default();
        let told = match &*role {
            "" => return Err(unsupported("a message does not say whose it is".to_owned())),
            // Servers other than OpenAI do not know the role.
            "developer" if !self.is_openai => &"system".into(),
            _ => &role,
        };
        let content = match item.field("content").unwrap_or("null") {
            text if text.starts_with('"') => sound_part(item, text),
            other => parts::content(other, role == "user")?.into(),
        };
        self.begin(r#"{"role":"#);
        self.quote(told);
        self.put_all([r#","content":"#, &content, "}"]);
        Ok(())
    }

    /// What an assistant says. Text after calls of the same answer belongs to the same message.
    fn assistant(&mut self, item: &'a Item) {
        let said = &self.pending;
        let has_spoken = said.content.is_some() || said.refusal.is_some();
        if has_spoken && said.calls.is_empty() {
            self.flush();
        }
        let said = &mut self.pending;
        if let Some(text) = item.only_text() {
            join(&mut said.content, Some(sound_part(item, text)));
            return;
        }
        let quoted = |text: Cow<'_, str>| Cow::Owned(json!(text).to_string());
        join(&mut said.content, item.text().map(quoted));
        join(&mut said.refusal, item.refusal().map(quoted));
    }

    /// What an assistant calls. A call that nothing answers is left out.
    fn call(
        &mut self,
        item: &'a Item,
        name: Option<Cow<'a, str>>,
        arguments: Cow<'a, str>,
    ) -> Result<(), ModelError> {
        let id = item.call_id().unwrap_or_default();
        let Some(output) = self.outputs.take(&id) else {
            tracing::debug!(call_id = &*id, "left out: a call without an output");
            return Ok(());
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(unsupported("a call names no tool".to_owned()));
        };
        if self.pending.calls.iter().any(|call| call.id == id) {
            self.flush();
        }
        let told = match id.is_empty() {
            // It goes by the place where it stands.
            true => format!("call_{}", self.written).into(),
            false => id.clone(),
        };
        self.pending.calls.push(Call {
            id,
            told,
            name,
            arguments,
            output,
        });
        Ok(())
    }

    fn flush(&mut self) {
        let said = &mut self.pending;
        let (content, refusal) = (said.content.take(), said.refusal.take());
        let mut calls = std::mem::take(&mut said.calls);
        if content.is_none() && refusal.is_none() && calls.is_empty() {
            return;
        }
        match &content {
            Some(content) => {
                self.begin(r#"{"role":"assistant","content":"#);
                self.put(content);
            }
            None if calls.is_empty() => self.begin(r#"{"role":"assistant""#),
            None => self.begin(r#"{"role":"assistant","content":null"#),
        }
        if let Some(refusal) = &refusal {
            self.put_all([r#","refusal":"#, refusal]);
        }
        for (at, call) in calls.iter().enumerate() {
            self.put(match at {
                0 => r#","tool_calls":[{"id":"#,
                _ => r#",{"id":"#,
            });
            self.quote(&call.told);
            self.put(r#","type":"function","function":{"name":"#);
            self.quote(&call.name);
            self.put_all([r#","arguments":"#, &call.arguments, "}}"]);
        }
        self.put(if calls.is_empty() { "}" } else { "]}" });
        for call in calls.drain(..) {
            let output = match item_output(call.output) {
                text if text.starts_with('"') => sound_part(call.output, text),
                other => parts::output(other).into(),
            };
            self.begin(r#"{"role":"tool","tool_call_id":"#);
            self.quote(&call.told);
            self.put_all([r#","content":"#, &output, "}"]);
        }
        // The room for calls serves the next message as well.
        self.pending.calls = calls;
    }

    /// Begins another message.
    fn begin(&mut self, json: &str) {
        if self.written > 0 {
            self.json.push(b',');
        }
        self.written += 1;
        self.put(json);
    }

    fn put(&mut self, json: &str) {
        self.json.extend_from_slice(json.as_bytes());
    }

    fn put_all<const N: usize>(&mut self, parts: [&str; N]) {
        for part in parts {
            self.put(part);
        }
    }

    /// A text of an item. One that is borrowed stands between quotes there just as it does here.
    #[expect(clippy::ptr_arg, reason = "it matters whether it is borrowed")]
    fn quote(&mut self, text: &Cow<'a, str>) {
        match text {
            Cow::Borrowed(text) => self.put_all(["\"", text, "\""]),
            Cow::Owned(text) => self.escape(text),
        }
    }

    fn escape(&mut self, text: &str) {
        // A text is always JSON.
        let _ = serde_json::to_writer(&mut *self.json, text);
    }
}

/// A part of an item's JSON without halves of characters. Items mostly have none, and say so once.
fn sound_part<'a>(item: &Item, part: &'a str) -> Cow<'a, str> {
    let is_sound = |item: &Item| matches!(sound(item.as_json()), Cow::Borrowed(_));
    match item.fact(Fact::IsSound, is_sound) {
        true => Cow::Borrowed(part),
        false => sound(part),
    }
}

/// Adds one JSON string to another, on a line of its own.
fn join<'a>(said: &mut Option<Cow<'a, str>>, more: Option<Cow<'a, str>>) {
    *said = match (said.take(), more) {
        (Some(said), Some(more)) => {
            let lines = [said, more].map(|json| text(&json).unwrap_or_default());
            Some(json!(lines.join("\n")).to_string().into())
        }
        (said, more) => said.or(more),
    };
}

/// Whether an item answers a call. Some people write it as Chat Completions does.
fn is_output(item: &Item) -> bool {
    let kind = item.kind();
    let may_lack_id = matches!(
        kind,
        ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput
    );
    may_lack_id || kind.is_output() && item.call_id().is_some() || is_tools(item)
}

fn is_tools(item: &Item) -> bool {
    item.kind() == ItemKind::Message && item.is_of_tool()
}

/// The identifier of the call that an output answers; empty where it has none.
fn output_id(output: &Item) -> Cow<'_, str> {
    output.call_id().unwrap_or_else(|| {
        let id = output.field("tool_call_id").and_then(text);
        id.unwrap_or_default().into()
    })
}

fn item_output(output: &Item) -> &str {
    let field = match is_tools(output) {
        true => "content",
        false => "output",
    };
    output.field(field).unwrap_or("null")
}

fn is_reference(item: &Item) -> bool {
    item.type_name()
        .is_some_and(|kind| kind == "item_reference")
}

/// The arguments of a function as a text of JSON, itself in JSON.
fn arguments(item: &Item) -> Cow<'_, str> {
    match item.field("arguments") {
        None | Some("null" | "\"\"") => r#""{}""#.into(),
        Some(text) if text.starts_with('"') => sound_part(item, text),
        Some(other) => json!(sound(other)).to_string().into(),
    }
}

/// What a tool that is no function was called with, as arguments of one.
fn other_arguments(item: &Item) -> String {
    let fields = ["arguments", "input", "action", "operation", "actions"];
    let given = fields.iter().find_map(|name| {
        let json = item.field(name).filter(|json| *json != "null")?;
        Some((*name, json))
    });
    let arguments = match given {
        Some(("arguments", text)) if text.starts_with('"') => return sound(text).into_owned(),
        Some((name, json)) => format!(r#"{{"{name}":{}}}"#, sound(json)),
        None => "{}".to_owned(),
    };
    json!(arguments).to_string()
}

pub(super) fn unsupported(what: String) -> ModelError {
    let message = format!("{what}; Chat Completions cannot carry that");
    ModelError::new(ModelErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn written(items: Vec<Item>) -> Value {
        let mut json = Vec::new();
        let request = ModelRequest::new(items);
        // What items noted the first time is used the second time.
        for _ in 0..2 {
            json.clear();
            write(&mut json, &request, true).unwrap();
        }
        serde_json::from_slice(&json).unwrap()
    }

    /// The same JSON with every letter of its strings escaped, keys excepted: nothing in it can be
    /// taken as it stands.
    fn escaped(item: &Item) -> Item {
        fn write(value: &Value) -> String {
            match value {
                Value::String(text) => {
                    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                    format!("\"{}\"", units.collect::<String>())
                }
                Value::Array(values) => {
                    let values: Vec<String> = values.iter().map(write).collect();
                    format!("[{}]", values.join(","))
                }
                Value::Object(fields) => {
                    let is_type = |key: &str| key == "type";
                    let field = |(key, value): (&String, &Value)| match is_type(key) {
                        true => format!("{}:{value}", json!(key)),
                        false => format!("{}:{}", json!(key), write(value)),
                    };
                    let fields: Vec<String> = fields.iter().map(field).collect();
                    format!("{{{}}}", fields.join(","))
                }
                other => other.to_string(),
            }
        }
        Item::from_json(write(&item.to_value().unwrap())).unwrap()
    }

    fn any_item() -> impl Strategy<Value = Item> {
        let (id, text) = ("[ab]?", "[a-c\"\\\\\n\u{e9}\u{1f600}]{0,6}");
        prop_oneof![
            text.prop_map(Item::user),
            text.prop_map(Item::developer),
            text.prop_map(Item::assistant),
            text.prop_map(|text| Item::output_message("msg_1", &text)),
            (id, text).prop_map(|(id, text)| Item::function_call(&id, "n\"", &text)),
            (id, text).prop_map(|(id, text)| Item::function_call_output(&id, &text)),
            (text, text).prop_map(|(one, two)| {
                let message = json!({"type": "message", "role": "assistant", "content": [
                    {"type": "output_text", "text": one}, {"type": "refusal", "refusal": two}]});
                Item::from_value(&message).unwrap()
            }),
            (id, text).prop_map(|(id, text)| {
                let said = json!({"role": "tool", "tool_call_id": id, "content": text});
                Item::from_value(&said).unwrap()
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_copied_is_what_would_be_written(items in proptest::collection::vec(any_item(), 0..12)) {
            let other = items.iter().map(escaped).collect();
            prop_assert_eq!(written(items), written(other));
        }
    }
}
