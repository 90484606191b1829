//! A conversation as messages.
//!
//! They are made of the items' own bytes: what is text in an item is the same text in a message, so that
//! most of a conversation is copied once, when it is sent, and read never.

use std::borrow::Cow;

use serde_json::json;
use switchboard_core::__private::{Chunk, Form};
use switchboard_core::{Item, ItemKind, ModelRequest};

use super::fast_path::{self, Answered, is_sound};
use super::outputs::{Outputs, is_output, output_id, output_json};
use super::parts;
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
        taken: 0,
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
    let mut stretches = request.input.chunks().peekable();
    while let Some(stretch) = stretches.next() {
        let after = stretches.peek().and_then(|next| next.elements.first());
        messages.stretch(&stretch, after)?;
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
    /// How many items of the next stretch went with the last one.
    taken: usize,
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
    /// Adds the items of a stretch that are not yet added; `after` is the item that comes next.
    fn stretch(
        &mut self,
        stretch: &Chunk<'a, Item>,
        after: Option<&'a Item>,
    ) -> Result<(), ModelError> {
        let items = stretch.elements;
        let mut at = self.taken;
        // As long as nothing depends on what stands before or after, it is worth a note.
        let mut is_alone = at == 0 && self.pending.is_nothing() && self.outputs.are_in_order();
        let known = stretch.usual(Form::Chat);
        let mut usual = known;
        if is_alone && known.elements > 0 {
            self.run(known.elements, known.length);
            at = known.elements;
            self.place += at;
        }
        while let Some(item) = items.get(at) {
            let next = items.get(at + 1).or(after);
            let Some((length, taken)) = self.usual(item, next) else {
                is_alone = false;
                self.add(item, next)?;
                self.place += 1;
                at += 1;
                continue;
            };
            at += taken;
            self.place += taken;
            // What an assistant says may go on with what comes next.
            is_alone &= at < items.len() || at == items.len() && !is_assistants(item);
            if is_alone {
                usual.length += length + usize::from(usual.elements > 0);
                usual.elements += taken;
            }
        }
        if usual != known {
            stretch.note(Form::Chat, usual);
        }
        self.taken = at - items.len();
        Ok(())
    }

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
                    Some(_) => Ok(()),
                    None => self.message(item),
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
        if is_users {
            self.begin(r#"{"role":"user","content":"#)
        } else {
            let role = self.told_role(item)?;
            self.begin(r#"{"role":""#);
            self.put_inside(&role);
            self.put(r#"","content":"#);
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
        if self.usual(item, next).is_some() {
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

    /// Notes an item, and with a call its output, to be written when they are sent; how many bytes and
    /// how many items these are. They then take no room in the meantime.
    #[inline]
    fn usual(&mut self, item: &'a Item, next: Option<&'a Item>) -> Option<(usize, usize)> {
        if !self.pending.is_nothing() {
            return None;
        }
        let (length, items) = fast_path::length(item, next)?;
        if let (2, Some(output)) = (items, next) {
            if !self.outputs.take_next(output) {
                return None;
            }
            self.outputs.pass(self.place + 1);
        }
        self.run(items, length);
        Some((length, items))
    }

    /// Notes so many items, one message each.
    fn run(&mut self, items: usize, length: usize) {
        let is_first = self.written == 0;
        self.draft.run(self.place, items, length, is_first);
        self.written += items;
    }

    /// Writes what an assistant said, calls, and got at once, where one follows the other: nobody
    /// needs to look for the output. Whether it is so.
    fn answered(&mut self, call: &'a Item, next: Option<&'a Item>) -> bool {
        let is_usual = fast_path::length(call, next).is_some();
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
        if is_sound(item) {
            self.put(part)
        } else {
            self.put_mended(part)
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
    if is_sound(item) {
        Cow::Borrowed(part)
    } else {
        sound(part)
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
mod tests;
