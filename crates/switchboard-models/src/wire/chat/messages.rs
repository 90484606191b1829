//! A conversation as messages.
//!
//! They are made of the items' own bytes: what is text in an item is the same text in a message, so that
//! most of a conversation is copied once, when it is sent, and read never.

use std::borrow::Cow;

use serde_json::json;
use switchboard_core::{Item, ItemKind, ModelRequest};

use super::outputs::{Outputs, is_output, output_id, output_json};
use super::parts;
use super::usual::{self, Answered, is_sound};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::is_assistants;
use crate::wire::lenient::{sound, text};
use crate::wire::payload::Draft;

/// Writes the messages of a request as a list; how many there are.
pub(super) fn write<'a>(
    draft: &mut Draft<'a>,
    request: &'a ModelRequest,
    is_openai: bool,
) -> Result<usize, ModelError> {
    let mut messages = Messages {
        draft,
        place: 0,
        written: 0,
        pending: Said::default(),
        outputs: Outputs::of(&request.input),
        is_openai,
    };
    messages.put("[");
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        messages.begin(r#"{"role":"system","content":"#);
        messages.escape(&instructions);
        messages.put("}");
    }
    let mut items = request.input.iter();
    let mut next = items.next();
    while let Some(item) = next {
        next = items.next();
        let taken = messages.usual(item, next);
        if taken == 0 {
            messages.add(item, next)?;
        } else if taken > 1 {
            next = items.next();
        }
        messages.place += taken.max(1);
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
struct Messages<'d, 'a> {
    draft: &'d mut Draft<'a>,
    /// Where the item stands that is being added.
    place: usize,
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

impl Said<'_> {
    fn is_nothing(&self) -> bool {
        self.content.is_none() && self.refusal.is_none() && self.calls.is_empty()
    }
}

/// A call and what answers it.
struct Call<'a> {
    id: Cow<'a, str>,
    /// The identifier that is told where it has none.
    made_up: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    /// In JSON.
    arguments: Cow<'a, str>,
    output: &'a Item,
}

impl<'a> Call<'a> {
    fn told_id(&self) -> &Cow<'a, str> {
        self.made_up.as_ref().unwrap_or(&self.id)
    }
}

impl<'a> Messages<'_, 'a> {
    /// Adds an item, which stands before `next`.
    fn add(&mut self, item: &'a Item, next: Option<&'a Item>) -> Result<(), ModelError> {
        match item.kind() {
            ItemKind::FunctionCall if self.answered(item, next) => Ok(()),
            ItemKind::Message if is_assistants(item) => {
                self.assistant(item, next);
                Ok(())
            }
            _ if is_output(item) => {
                let is_of_pending = |call: &Call<'_>| call.id == output_id(item);
                self.outputs.pass(self.place);
                // What comes now was said after this output.
                if self.pending.calls.iter().any(is_of_pending) {
                    self.flush();
                }
                Ok(())
            }
            ItemKind::Message => {
                self.flush();
                match self.usual(item, next) {
                    0 => self.message(item),
                    _ => Ok(()),
                }
            }
            ItemKind::FunctionCall => {
                let output = self.output_of(item);
                self.call(output, item.name(), || arguments(item))
            }
            kind if kind == ItemKind::Compaction || is_reference(item) => {
                Err(unsupported(format!(
                    "an item of type \"{}\" stands for a part of the conversation that only the \
                     provider that made it can read",
                    item.type_name().unwrap_or_default()
                )))
            }
            kind if kind.output_kind().is_some() && item.call_id().is_some() => {
                let name = item.name().unwrap_or(kind.as_str().into());
                let output = self.output_of(item);
                self.call(output, Some(name), || other_arguments(item).into())
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
        let is_users = item.is_of_user();
        match is_users {
            true => self.begin(r#"{"role":"user","content":"#),
            false => {
                let role = self.told_role(item)?;
                self.begin(r#"{"role":""#);
                self.put_inside(&role);
                self.put(r#"","content":"#);
            }
        }
        match item.content_json().unwrap_or("null") {
            text if text.starts_with('"') => self.put_sound(item, text),
            other => self.put(&parts::content(other, is_users)?),
        }
        self.put("}");
        Ok(())
    }

    fn told_role(&self, item: &'a Item) -> Result<Cow<'a, str>, ModelError> {
        match item.role().unwrap_or_default() {
            none if none.is_empty() => {
                Err(unsupported("a message does not say whose it is".to_owned()))
            }
            // Servers other than OpenAI do not know the role.
            role if role == "developer" && !self.is_openai => Ok("system".into()),
            role => Ok(role),
        }
    }

    /// What an assistant says. Text after calls of the same answer belongs to the same message.
    fn assistant(&mut self, item: &'a Item, next: Option<&'a Item>) {
        let said = &self.pending;
        let has_spoken = said.content.is_some() || said.refusal.is_some();
        if has_spoken && said.calls.is_empty() {
            self.flush();
        }
        if self.usual(item, next) > 0 {
            return;
        }
        if let Some(text) = item.only_text() {
            join(&mut self.pending.content, Some(sound_part(item, text)));
            return;
        }
        let said = &mut self.pending;
        let quoted = |text: Cow<'_, str>| Cow::Owned(json!(text).to_string());
        join(&mut said.content, item.text().map(quoted));
        join(&mut said.refusal, item.refusal().map(quoted));
    }

    /// The identifier of a call, and the output it takes.
    fn output_of(&mut self, call: &'a Item) -> (Cow<'a, str>, Option<&'a Item>) {
        let id = call.call_id().unwrap_or_default();
        let output = self.outputs.take(&id, self.place);
        (id, output)
    }

    /// What an assistant calls. A call that nothing answers is left out.
    fn call(
        &mut self,
        (id, output): (Cow<'a, str>, Option<&'a Item>),
        name: Option<Cow<'a, str>>,
        arguments: impl FnOnce() -> Cow<'a, str>,
    ) -> Result<(), ModelError> {
        let Some(output) = output else {
            tracing::debug!(call_id = &*id, "left out: a call without an output");
            return Ok(());
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(unsupported("a call names no tool".to_owned()));
        };
        if self.pending.calls.iter().any(|call| call.id == id) {
            self.flush();
        }
        // It goes by the place where it stands.
        let made_up = || format!("call_{}", self.written).into();
        self.pending.calls.push(Call {
            made_up: id.is_empty().then(made_up),
            id,
            name,
            arguments: arguments(),
            output,
        });
        Ok(())
    }

    /// Notes an item, and with a call its output, to be written when they are sent; how many these
    /// are. They then take no room in the meantime.
    #[inline]
    fn usual(&mut self, item: &'a Item, next: Option<&'a Item>) -> usize {
        if !self.pending.is_nothing() {
            return 0;
        }
        let Some((length, items)) = usual::length(item, next) else {
            return 0;
        };
        if let (2, Some(output)) = (items, next) {
            if !self.outputs.take_next(output) {
                return 0;
            }
            self.outputs.pass(self.place + 1);
        }
        let is_first = self.written == 0;
        self.draft.run(self.place, items, length, is_first);
        self.written += items;
        items
    }

    /// Writes what an assistant said, calls, and got at once, where one follows the other: nobody
    /// needs to look for the output. Whether it is so.
    fn answered(&mut self, call: &'a Item, next: Option<&'a Item>) -> bool {
        let is_usual = usual::length(call, next).is_some();
        let (Some(answered), Some(output)) = (Answered::of(call, next), next) else {
            return false;
        };
        if !is_usual || !self.pending.calls.is_empty() || !self.outputs.take_next(output) {
            return false;
        }
        self.begin_said(true);
        answered.write(&mut self.draft.json);
        self.written += 1;
        true
    }

    #[inline]
    fn flush(&mut self) {
        if !self.pending.is_nothing() {
            self.write_pending();
        }
    }

    fn write_pending(&mut self) {
        let mut calls = std::mem::take(&mut self.pending.calls);
        self.begin_said(!calls.is_empty());
        for (at, call) in calls.iter().enumerate() {
            match at {
                0 => self.put(r#","tool_calls":[{"id":""#),
                _ => self.put(r#",{"id":""#),
            }
            self.put_inside(call.told_id());
            self.put(r#"","type":"function","function":{"name":""#);
            self.put_inside(&call.name);
            self.put(r#"","arguments":"#);
            self.put(&call.arguments);
            self.put("}}");
        }
        self.put(if calls.is_empty() { "}" } else { "]}" });
        for call in &calls {
            self.begin(r#"{"role":"tool","tool_call_id":""#);
            self.put_inside(call.told_id());
            self.put(r#"","content":"#);
            match output_json(call.output) {
                text if text.starts_with('"') => self.put_sound(call.output, text),
                other => self.put(&parts::output(other)),
            }
            self.put("}");
        }
        // The room for calls serves the next message as well.
        calls.clear();
        self.pending.calls = calls;
    }

    /// Begins a message of what an assistant said.
    fn begin_said(&mut self, has_calls: bool) {
        match self.pending.content.take() {
            Some(content) => {
                self.begin(r#"{"role":"assistant","content":"#);
                self.put(&content);
            }
            None if has_calls => self.begin(r#"{"role":"assistant","content":null"#),
            None => self.begin(r#"{"role":"assistant""#),
        }
        if let Some(refusal) = self.pending.refusal.take() {
            self.put(r#","refusal":"#);
            self.put(&refusal);
        }
    }

    /// Begins another message.
    #[inline]
    fn begin(&mut self, json: &str) {
        if self.written > 0 {
            self.draft.json.push(b',');
        }
        self.written += 1;
        self.put(json);
    }

    /// In place, so that what is always the same is written in a few large moves.
    #[inline]
    fn put(&mut self, json: &str) {
        self.draft.json.extend_from_slice(json.as_bytes());
    }

    #[inline]
    fn put_sound(&mut self, item: &Item, part: &str) {
        match is_sound(item) {
            true => self.put(part),
            false => self.put_mended(part),
        }
    }

    /// A call of its own, so that the usual way is written in place.
    #[cold]
    fn put_mended(&mut self, part: &str) {
        self.put(&sound(part));
    }

    /// A text of an item, within quotes. One that is borrowed stands there just as it does here.
    #[inline]
    #[expect(clippy::ptr_arg, reason = "it matters whether it is borrowed")]
    fn put_inside(&mut self, text: &Cow<'_, str>) {
        match text {
            Cow::Borrowed(text) => self.put(text),
            Cow::Owned(text) => {
                let start = self.draft.json.len();
                self.escape(text);
                self.draft.json.pop();
                self.draft.json.remove(start);
            }
        }
    }

    #[inline(never)]
    fn escape(&mut self, text: &str) {
        // A text is always JSON.
        let _ = serde_json::to_writer(&mut self.draft.json, text);
    }
}

/// A part of an item's JSON without halves of characters.
#[inline]
fn sound_part<'a>(item: &Item, part: &'a str) -> Cow<'a, str> {
    match is_sound(item) {
        true => Cow::Borrowed(part),
        false => sound(part),
    }
}

/// Adds one JSON string to another, on a line of its own.
#[inline]
fn join<'a>(said: &mut Option<Cow<'a, str>>, more: Option<Cow<'a, str>>) {
    *said = match (said.take(), more) {
        (Some(said), Some(more)) => {
            let lines = [said, more].map(|json| text(&json).unwrap_or_default());
            Some(json!(lines.join("\n")).to_string().into())
        }
        (said, more) => said.or(more),
    };
}

fn is_reference(item: &Item) -> bool {
    item.type_name()
        .is_some_and(|kind| kind == "item_reference")
}

/// The arguments of a function as a text of JSON, itself in JSON.
fn arguments(item: &Item) -> Cow<'_, str> {
    match item.arguments_json() {
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

    fn written(items: Vec<Item>) -> Result<Value, String> {
        let request = ModelRequest::new(items);
        let write = || {
            let mut draft = Draft::of(&request.input, usual::write);
            write(&mut draft, &request, true).map_err(|error| error.to_string())?;
            let payload = draft.finish();
            let json = payload.json();
            assert_eq!(json.len(), payload.length());
            Ok::<_, String>(json)
        };
        // What items noted the first time is used the second time.
        write()?;
        Ok(serde_json::from_slice(&write()?).unwrap())
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

    /// Conversations in which outputs mostly follow their calls.
    fn any_items() -> impl Strategy<Value = Vec<Item>> {
        let answered = |(id, text): (String, String)| {
            let output = Item::function_call_output(&id, &text);
            vec![Item::function_call(&id, "n", &text), output]
        };
        let some = prop_oneof![
            any_item().prop_map(|item| vec![item]),
            ("[ab]?", "[a-c\"]{0,6}").prop_map(answered),
        ];
        proptest::collection::vec(some, 0..12).prop_map(|items| items.concat())
    }

    /// Items as nobody makes them: fields that are empty, null, twice or of another type, and halves
    /// of characters.
    fn odd_item() -> impl Strategy<Value = Item> {
        let text = r#""(|a|b|\\n\\"é|\\ud800|\\ud83d\\ude00|x{300})""#;
        let id = || prop_oneof![4 => r#""[ab]""#, 1 => r#""(|\\u0061|\\ud800|cé)"|null|7"#];
        let other = r#"null|7|\[\]|\{\}|\[\{"type":"input_text","text":"p"\}\]"#;
        let value = || prop_oneof![4 => text, 1 => other];
        let part = (
            r#""(output_text","text|text","refusal":null,"text|refusal","refusal)""#,
            text,
        )
            .prop_map(|(kind, text)| format!(r#"{{"type":{kind}:{text}}}"#));
        let parts = prop::collection::vec(part, 0..3);
        let parts = parts.prop_map(|parts| format!("[{}]", parts.join(",")));
        let content = prop_oneof![3 => value(), 2 => parts];
        let role = r"user|us\\u0065r|assistant|assistant|tool|system";
        let arguments = prop_oneof![4 => text, 1 => r"null|7|\[\]"];
        let kind = "function_call|custom_tool_call|reasoning";
        let more = || {
            prop_oneof![
                3 => Just(String::new()),
                1 => value().prop_map(|value| format!(r#","content":{value},"output":{value}"#)),
                1 => text.prop_map(|text| format!(r#","role":"user","arguments":{text}"#)),
            ]
        };
        let json = prop_oneof![
            (role, content, id(), more()).prop_map(|(role, content, id, more)| {
                format!(r#"{{"role":"{role}", "content" : {content},"tool_call_id":{id}{more}}}"#)
            }),
            (kind, id(), r#""n(\\u0061)?""#, arguments, more()).prop_map(
                |(kind, id, name, given, more)| format!(
                    r#"{{"type":"{kind}","call_id":{id},"name":{name},"arguments": {given}{more}}}"#
                )
            ),
            ("(function|custom_tool)_call_output", id(), value(), more()).prop_map(
                |(kind, id, output, more)| format!(
                    r#"{{"type":"{kind}","output":{output},"call_id":{id}{more}}}"#
                )
            ),
        ];
        json.prop_map(|json| Item::from_json(json).unwrap())
    }

    fn odd_items() -> impl Strategy<Value = Vec<Item>> {
        let mostly_answered = |item: Item| match item.call_id() {
            Some(id) if item.kind() == ItemKind::FunctionCall => {
                let output = Item::function_call_output(&id, "o");
                vec![item, output]
            }
            _ => vec![item],
        };
        let some = prop_oneof![
            odd_item().prop_map(|item| vec![item]),
            odd_item().prop_map(mostly_answered),
        ];
        prop::collection::vec(some, 0..12).prop_map(|items| items.concat())
    }

    /// The same item without halves of characters and with no field twice, escaped.
    fn mended(item: &Item) -> Item {
        let value = crate::wire::lenient::value(item.as_json()).unwrap();
        escaped(&Item::from_value(&value).unwrap())
    }

    proptest! {
        #[test]
        fn odd_items_are_written_as_long_as_was_noted(items in odd_items()) {
            let mended: Vec<Item> = items.iter().map(mended).collect();
            let stray = vec![Item::function_call_output("none", "")];
            let looked_for = [stray, items.clone()].concat();
            let written = written(items);
            prop_assert_eq!(&written, &self::written(mended));
            prop_assert_eq!(&written, &self::written(looked_for));
        }

        /// An output of no call is left out; for its sake all the others are looked for.
        #[test]
        fn outputs_are_found_in_both_ways(items in any_items()) {
            let stray = Item::function_call_output("none", "");
            let looked_for = [vec![stray], items.clone()].concat();
            prop_assert_eq!(written(items), written(looked_for));
        }

        #[test]
        fn what_is_copied_is_what_would_be_written(items in any_items()) {
            let other = items.iter().map(escaped).collect();
            prop_assert_eq!(written(items), written(other));
        }
    }
}
