//! A conversation as messages.

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;

use serde_json::json;
use switchboard_core::__private::{replace_lone_surrogates, unquote};
use switchboard_core::items::{Chunk, ItemKind};
use switchboard_core::{Item, ModelRequest};

use super::call_outputs::{Outputs, is_output, output_id, output_json};
use super::content_parts;
use super::copied_message::CopiedMessage;
use crate::wire::has_role;
use crate::wire::model_error::ModelError;
use crate::wire::payload::Payload;
use crate::wire::request_cache::with_cache;

/// Writes the messages of a request as a list, and returns their number.
pub(super) fn write(
    payload: &mut Payload,
    request: &ModelRequest,
    is_openai: bool,
) -> Result<usize, ModelError> {
    payload.begin_list();
    let mut messages = Messages {
        payload,
        index: 0,
        skip: 0,
        written: 0,
        pending: PendingMessage::default(),
        outputs: Outputs::new(&request.input),
        is_openai,
    };
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        messages.begin(r#"{"role":"system","content":"#);
        // A string always serializes.
        let _ = serde_json::to_writer(&mut messages.payload.json, &*instructions);
        messages.put("}");
    }
    let mut chunks = request.input.chunks().peekable();
    while let Some(chunk) = chunks.next() {
        let after = chunks.peek().and_then(|next| next.elements().first());
        messages.add_chunk(&chunk, after)?;
    }
    messages.flush();
    messages.put("]");
    for id in messages.outputs.unclaimed() {
        tracing::debug!(call_id = id, "an output is left out: it has no call");
    }
    Ok(messages.written)
}

/// The messages of a request under construction. Calls and their outputs are written together, whatever
/// was between them, since the protocol accepts no other order.
struct Messages<'p, 'a> {
    payload: &'p mut Payload,
    /// The index of the current item.
    index: usize,
    /// The number of items of the next chunk that have been added already.
    skip: usize,
    /// The number of messages.
    written: usize,
    pending: PendingMessage<'a>,
    outputs: Outputs<'a>,
    is_openai: bool,
}

/// A message of the assistant that the next items may continue. Its parts are JSON.
#[derive(Default)]
struct PendingMessage<'a> {
    content: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    calls: Vec<Call<'a>>,
}

impl PendingMessage<'_> {
    fn is_empty(&self) -> bool {
        self.content.is_none() && self.refusal.is_none() && self.calls.is_empty()
    }
}

/// A call and its output.
struct Call<'a> {
    /// Empty if the call has none.
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    /// The JSON string of the arguments.
    arguments: Cow<'a, str>,
    output: &'a Item,
}

impl<'a> Messages<'_, 'a> {
    /// Adds the items of a chunk; `after` is the item behind it.
    fn add_chunk(
        &mut self,
        chunk: &Chunk<'a, Item>,
        after: Option<&'a Item>,
    ) -> Result<(), ModelError> {
        let items = chunk.elements();
        let mut at = self.skip;
        // A prefix is cached only if it does not depend on the items around the chunk.
        let mut is_independent = at == 0 && self.pending.is_empty() && self.outputs.are_in_order();
        let cached = with_cache(chunk, |cache| &cache.chat, |prefix| *prefix);
        let mut prefix = cached;
        if is_independent && cached.items > 0 {
            self.add_copied(cached.items, cached.length);
            at = cached.items;
        }
        while let Some(item) = items.get(at) {
            self.flush_before(item);
            let next = items.get(at + 1).or(after);
            let Some((count, length)) = self.copy(item, next) else {
                is_independent = false;
                self.add(item, next)?;
                self.index += 1;
                at += 1;
                continue;
            };
            at += count;
            // The next chunk may continue a message of the assistant.
            is_independent &= at < items.len() || at == items.len() && !has_role(item, "assistant");
            if is_independent {
                prefix.length += length + usize::from(prefix.items > 0);
                prefix.items += count;
            }
        }
        if prefix != cached {
            with_cache(chunk, |cache| &cache.chat, |cached| *cached = prefix);
        }
        self.skip = at - items.len();
        Ok(())
    }

    /// Adds the messages of items, one message each, which are copied when the payload is sent.
    fn add_copied(&mut self, items: usize, length: usize) {
        self.payload.add_items(self.index, items, length);
        self.index += items;
        self.written += items;
    }

    /// Adds an item, or a call and its output, that can be copied. Returns the number of items and their
    /// serialized length.
    fn copy(&mut self, item: &'a Item, next: Option<&'a Item>) -> Option<(usize, usize)> {
        if !self.pending.is_empty() {
            return None;
        }
        let message = CopiedMessage::new(item, next)?;
        if let (2, Some(output)) = (message.items, next) {
            if !self.outputs.claim_next(output) {
                return None;
            }
            self.outputs.pass(self.index + 1);
        }
        self.add_copied(message.items, message.length());
        Some((message.items, message.length()))
    }

    /// Adds an item that cannot be copied, or that may be a part of the pending message.
    fn add(&mut self, item: &'a Item, next: Option<&'a Item>) -> Result<(), ModelError> {
        match item.kind() {
            ItemKind::FunctionCall if self.add_answered_call(item, next) => Ok(()),
            ItemKind::Message if has_role(item, "assistant") => {
                self.add_assistant_message(item);
                Ok(())
            }
            _ if is_output(item) => {
                self.outputs.pass(self.index);
                // The items after this output belong to a later answer.
                let id = output_id(item);
                if self.pending.calls.iter().any(|call| call.id == id) {
                    self.flush();
                }
                Ok(())
            }
            ItemKind::Message => self.write_message(item),
            ItemKind::FunctionCall => self.add_call(item, item.name(), arguments),
            kind if kind == ItemKind::Compaction || is_reference(item) => {
                Err(unsupported(format_args!(
                    "an item of type \"{}\" stands for a part of the conversation that only the \
                     provider that made it can read",
                    item.type_name().unwrap_or_default()
                )))
            }
            kind if kind.output_kind().is_some() && item.call_id().is_some() => {
                let name = item.name().unwrap_or(kind.as_str().into());
                self.add_call(item, Some(name), |item| other_arguments(item).into())
            }
            kind => {
                tracing::debug!(
                    kind = kind.as_str(),
                    "an item is left out: Chat Completions cannot carry it"
                );
                Ok(())
            }
        }
    }

    /// Writes a message of the user, the system or a developer.
    fn write_message(&mut self, item: &'a Item) -> Result<(), ModelError> {
        let role = match item.role().unwrap_or_default() {
            role if role.is_empty() => return Err(unsupported("a message has no role")),
            // Servers other than OpenAI do not know this role.
            role if role == "developer" && !self.is_openai => "system".into(),
            role => role,
        };
        let content = match item.field("content").unwrap_or("null") {
            text if text.starts_with('"') => replace_lone_surrogates(text),
            other => content_parts::content(other, role == "user")?.into(),
        };
        let role = json!(role);
        self.begin(format_args!(r#"{{"role":{role},"content":{content}}}"#));
        Ok(())
    }

    /// Adds a message of the assistant to the pending message.
    fn add_assistant_message(&mut self, item: &'a Item) {
        let pending = &mut self.pending;
        if let Some(text) = item.text_json() {
            append_line(&mut pending.content, Some(replace_lone_surrogates(text)));
            return;
        }
        let quoted = |text: Cow<'_, str>| Cow::Owned(json!(text).to_string());
        append_line(&mut pending.content, item.text().map(quoted));
        append_line(&mut pending.refusal, item.refusal().map(quoted));
    }

    /// Adds a call of the assistant. A call without an output is left out.
    fn add_call(
        &mut self,
        call: &'a Item,
        name: Option<Cow<'a, str>>,
        arguments: impl FnOnce(&'a Item) -> Cow<'a, str>,
    ) -> Result<(), ModelError> {
        let id = call.call_id().unwrap_or_default();
        let Some(output) = self.outputs.claim(&id, self.index) else {
            tracing::debug!(call_id = &*id, "a call is left out: it has no output");
            return Ok(());
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(unsupported("a call names no tool"));
        };
        if self.pending.calls.iter().any(|call| call.id == id) {
            self.flush();
        }
        self.pending.calls.push(Call {
            id,
            name,
            arguments: arguments(call),
            output,
        });
        Ok(())
    }

    /// Writes the pending text, a call and its output, if the output is the next item. Returns `false`
    /// if it is not, or the call cannot be copied.
    fn add_answered_call(&mut self, call: &'a Item, next: Option<&'a Item>) -> bool {
        let (Some(message), Some(output)) = (CopiedMessage::new(call, next), next) else {
            return false;
        };
        if !self.pending.calls.is_empty() || !self.outputs.claim_next(output) {
            return false;
        }
        self.begin_pending(true);
        message.write(&mut self.payload.json, 1);
        self.written += 1;
        true
    }

    /// Writes the pending message unless the item continues it. Text after the calls of an answer
    /// belongs to the same message, text after text does not.
    fn flush_before(&mut self, item: &Item) {
        let is_message = item.kind() == ItemKind::Message && !is_output(item);
        if is_message && (self.pending.calls.is_empty() || !has_role(item, "assistant")) {
            self.flush();
        }
    }

    /// Writes the pending message and the outputs of its calls.
    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let calls = std::mem::take(&mut self.pending.calls);
        // No two calls of a message have the same identifier, so one at most has none.
        let generated_id = format!("call_{}", self.written);
        let sent_id = |call: &Call<'_>| match &*call.id {
            "" => json!(generated_id),
            id => json!(id),
        };
        self.begin_pending(!calls.is_empty());
        let mut separator = r#","tool_calls":["#;
        for call in &calls {
            let (id, name, arguments) = (sent_id(call), json!(call.name), &call.arguments);
            let function = format_args!(r#"{{"name":{name},"arguments":{arguments}}}"#);
            self.put(format_args!(
                r#"{separator}{{"id":{id},"type":"function","function":{function}}}"#
            ));
            separator = ",";
        }
        self.put(if calls.is_empty() { "}" } else { "]}" });
        for call in &calls {
            let content = match output_json(call.output) {
                text if text.starts_with('"') => replace_lone_surrogates(text),
                other => content_parts::output(other).into(),
            };
            let id = sent_id(call);
            self.begin(format_args!(
                r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#
            ));
        }
    }

    /// Begins the pending message.
    fn begin_pending(&mut self, has_calls: bool) {
        self.begin(r#"{"role":"assistant""#);
        let no_content = has_calls.then_some(Cow::Borrowed("null"));
        if let Some(content) = self.pending.content.take().or(no_content) {
            self.put(format_args!(r#","content":{content}"#));
        }
        if let Some(refusal) = self.pending.refusal.take() {
            self.put(format_args!(r#","refusal":{refusal}"#));
        }
    }

    /// Begins a message.
    fn begin(&mut self, json: impl fmt::Display) {
        self.payload.begin_element();
        self.written += 1;
        self.put(json);
    }

    fn put(&mut self, json: impl fmt::Display) {
        // Writing to a vector does not fail.
        let _ = write!(self.payload.json, "{json}");
    }
}

/// Appends one JSON string to another, on a new line.
fn append_line<'a>(text: &mut Option<Cow<'a, str>>, line: Option<Cow<'a, str>>) {
    *text = match (text.take(), line) {
        (Some(text), Some(line)) => {
            let lines = [text, line].map(|json| unquote(&json).unwrap_or_default().into_owned());
            Some(json!(lines.join("\n")).to_string().into())
        }
        (text, line) => text.or(line),
    };
}

fn is_reference(item: &Item) -> bool {
    item.type_name()
        .is_some_and(|kind| kind == "item_reference")
}

/// The JSON string of the arguments of a function, which are JSON themselves.
fn arguments(item: &Item) -> Cow<'_, str> {
    match item.field("arguments") {
        None | Some("null" | "\"\"") => r#""{}""#.into(),
        Some(text) if text.starts_with('"') => replace_lone_surrogates(text),
        Some(other) => json!(replace_lone_surrogates(other)).to_string().into(),
    }
}

/// The input of a tool that is not a function, as the arguments of one.
fn other_arguments(item: &Item) -> String {
    let fields = ["arguments", "input", "action", "operation", "actions"];
    let given = fields.iter().find_map(|name| {
        let json = item.field(name).filter(|json| *json != "null")?;
        Some((*name, replace_lone_surrogates(json)))
    });
    let arguments = match given {
        Some(("arguments", text)) if text.starts_with('"') => return text.into_owned(),
        Some((name, json)) => format!(r#"{{"{name}":{json}}}"#),
        None => "{}".to_owned(),
    };
    json!(arguments).to_string()
}

pub(super) fn unsupported(problem: impl fmt::Display) -> ModelError {
    ModelError::unsupported(format!("{problem}; Chat Completions cannot carry that"))
}

#[cfg(test)]
mod tests;
