//! A conversation as messages.

use std::borrow::Cow;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use switchboard_core::{Item, ItemKind, ModelRequest};

use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::is_assistants;
use crate::wire::lenient::{sound, text, value};

/// The JSON of the messages of a request.
pub(super) fn messages(request: &ModelRequest, is_openai: bool) -> Result<Vec<String>, ModelError> {
    let mut messages = Messages {
        done: Vec::with_capacity(request.input.len() + 1),
        pending: Said::default(),
        outputs: FxHashMap::default(),
        is_openai,
    };
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        messages
            .done
            .push(json!({"role": "system", "content": instructions}).to_string());
    }
    for output in request.input.iter().filter(|item| is_output(item)) {
        let outputs = messages.outputs.entry(output_id(output)).or_default();
        outputs.push_back(output);
    }
    for item in &request.input {
        messages.add(item)?;
    }
    messages.flush();
    for id in messages.outputs.iter().filter(|(_, left)| !left.is_empty()) {
        tracing::debug!(call_id = id.0, "left out: an output of no call");
    }
    Ok(messages.done)
}

/// Calls and their outputs stand together, whatever stood between them: the protocol takes them in
/// no other way.
struct Messages<'a> {
    done: Vec<String>,
    /// What an assistant says and calls in one go is one message.
    pending: Said,
    /// Outputs whose calls have not come yet, by the identifier of the call.
    outputs: FxHashMap<String, VecDeque<&'a Item>>,
    is_openai: bool,
}

/// A message of an assistant in the making; its parts are JSON.
#[derive(Default)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
    calls: Vec<Call>,
}

/// A call and the message that answers it.
struct Call {
    id: String,
    json: String,
    output: String,
}

impl Messages<'_> {
    fn add(&mut self, item: &Item) -> Result<(), ModelError> {
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
                self.call(item, Some(name), other_arguments(item))
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
    fn message(&mut self, item: &Item) -> Result<(), ModelError> {
        let role = item.role().unwrap_or_default();
        let role = match &*role {
            "" => return Err(unsupported("a message does not say whose it is".to_owned())),
            // Servers other than OpenAI do not know the role.
            "developer" if !self.is_openai => "system",
            role => role,
        };
        let content = content(item.field("content"), role == "user")?;
        let role = json!(role);
        self.done
            .push(format!(r#"{{"role":{role},"content":{content}}}"#));
        Ok(())
    }

    /// What an assistant says. Text after calls of the same answer belongs to the same message.
    fn assistant(&mut self, item: &Item) {
        let said = &self.pending;
        let has_spoken = said.content.is_some() || said.refusal.is_some();
        if has_spoken && said.calls.is_empty() {
            self.flush();
        }
        let said = &mut self.pending;
        let content = match item.field("content") {
            Some(content) if content.starts_with('"') => Some(sound(content).into_owned()),
            _ => item.text().map(|text| json!(text).to_string()),
        };
        join(&mut said.content, content);
        let refusal = item.refusal().map(|text| json!(text).to_string());
        join(&mut said.refusal, refusal);
    }

    /// What an assistant calls. A call that nothing answers is left out.
    fn call(
        &mut self,
        item: &Item,
        name: Option<Cow<'_, str>>,
        arguments: String,
    ) -> Result<(), ModelError> {
        let id = item.call_id().unwrap_or_default();
        let outputs = self.outputs.get_mut(&*id);
        let Some(output) = outputs.and_then(VecDeque::pop_front) else {
            tracing::debug!(call_id = &*id, "left out: a call without an output");
            return Ok(());
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(unsupported("a call names no tool".to_owned()));
        };
        if self.pending.calls.iter().any(|call| call.id == id) {
            self.flush();
        }
        let (name, told) = (json!(name), json!(told_id(&id, self.done.len())));
        let content = output_text(item_output(output));
        self.pending.calls.push(Call {
            json: format!(
                r#"{{"id":{told},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
            ),
            output: format!(r#"{{"role":"tool","tool_call_id":{told},"content":{content}}}"#),
            id: id.into_owned(),
        });
        Ok(())
    }

    fn flush(&mut self) {
        let said = std::mem::take(&mut self.pending);
        let mut message = r#"{"role":"assistant""#.to_owned();
        match (&said.content, said.calls.is_empty()) {
            (Some(content), _) => message.extend([",\"content\":", content]),
            (None, false) => message.push_str(",\"content\":null"),
            (None, true) if said.refusal.is_none() => return,
            (None, true) => {}
        }
        if let Some(refusal) = &said.refusal {
            message.extend([",\"refusal\":", refusal]);
        }
        if !said.calls.is_empty() {
            let calls: Vec<&str> = said.calls.iter().map(|call| &*call.json).collect();
            message.extend([",\"tool_calls\":[", &calls.join(","), "]"]);
        }
        message.push('}');
        self.done.push(message);
        self.done
            .extend(said.calls.into_iter().map(|call| call.output));
    }
}

/// Adds one JSON string to another, on a line of its own.
fn join(said: &mut Option<String>, more: Option<String>) {
    *said = match (said.take(), more) {
        (Some(said), Some(more)) => {
            let lines = [said, more].map(|json| text(&json).unwrap_or_default());
            Some(json!(lines.join("\n")).to_string())
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
    item.kind() == ItemKind::Message && item.role().is_some_and(|role| role == "tool")
}

/// The identifier of the call that an output answers; empty where it has none.
fn output_id(output: &Item) -> String {
    match output.call_id() {
        Some(id) => id.into_owned(),
        None => output
            .field("tool_call_id")
            .and_then(text)
            .unwrap_or_default(),
    }
}

fn item_output(output: &Item) -> Option<&str> {
    output.field(match is_tools(output) {
        true => "content",
        false => "output",
    })
}

/// A call without an identifier goes by the place where it stands.
fn told_id(id: &str, place: usize) -> Cow<'_, str> {
    match id.is_empty() {
        true => format!("call_{place}").into(),
        false => id.into(),
    }
}

fn is_reference(item: &Item) -> bool {
    item.type_name()
        .is_some_and(|kind| kind == "item_reference")
}

/// The arguments of a function as a text of JSON, itself in JSON.
fn arguments(item: &Item) -> String {
    match item.field("arguments") {
        None | Some("null" | "\"\"") => r#""{}""#.to_owned(),
        Some(text) if text.starts_with('"') => sound(text).into_owned(),
        Some(other) => json!(sound(other)).to_string(),
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

/// The output of a tool as text, in JSON. What is no text is told as JSON.
fn output_text(output: Option<&str>) -> String {
    let output = output.unwrap_or("null");
    if output.starts_with('"') {
        return sound(output).into_owned();
    }
    let told = match value(output) {
        Some(Value::Null) => String::new(),
        Some(Value::Array(parts)) => {
            let parts: Vec<String> = parts.iter().map(part_text).collect();
            parts.join("\n")
        }
        Some(other) => part_text(&other),
        None => output.to_owned(),
    };
    json!(told).to_string()
}

/// A part of an output as text. The protocol cannot carry pictures and the like there.
fn part_text(part: &Value) -> String {
    match (part["type"].as_str(), part) {
        (Some("input_text" | "output_text" | "text") | None, _) if part["text"].is_string() => {
            part["text"].as_str().unwrap_or_default().to_owned()
        }
        (Some("input_image" | "image_url" | "image" | "computer_screenshot"), _) => {
            "[a picture was left out]".to_owned()
        }
        (Some("input_file" | "file"), _) => "[a file was left out]".to_owned(),
        (Some("input_audio" | "audio"), _) => "[a sound was left out]".to_owned(),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    }
}

/// The content of a message, in JSON. Only users may say more than text.
fn content(content: Option<&str>, is_users: bool) -> Result<String, ModelError> {
    let content = content.unwrap_or("null");
    if content.starts_with('"') {
        return Ok(sound(content).into_owned());
    }
    let content =
        value(content).ok_or_else(|| unsupported("a message is nested too deeply".to_owned()))?;
    let parts = match content {
        Value::Null => Vec::new(),
        Value::Array(parts) => parts,
        other => vec![other],
    };
    let text = |part: &Value| json!({"type": "text", "text": part_text(part)});
    let parts: Vec<Value> = match is_users {
        true => parts.iter().map(part).collect::<Result<_, _>>()?,
        false => parts.iter().map(text).collect(),
    };
    Ok(match parts.is_empty() {
        true => "\"\"".to_owned(),
        false => Value::from(parts).to_string(),
    })
}

/// A part of a message in the protocol's form.
fn part(part: &Value) -> Result<Value, ModelError> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "input_text" | "output_text" | "text" => {
            let text = part["text"].as_str().unwrap_or_default();
            Ok(json!({"type": "text", "text": text}))
        }
        "" if part.is_string() => Ok(json!({"type": "text", "text": part})),
        "input_image" => {
            let Some(url) = part["image_url"].as_str() else {
                return Err(unsupported(
                    "a picture is given by a file's identifier; give its address or data"
                        .to_owned(),
                ));
            };
            let detail = match part["detail"].as_str() {
                Some("original") => "high",
                Some(detail) => detail,
                None => "auto",
            };
            Ok(json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}))
        }
        "input_audio" => Ok(json!({"type": "input_audio", "input_audio": part["input_audio"]})),
        "input_file" => {
            let mut file = serde_json::Map::new();
            for name in ["file_data", "file_id", "filename"] {
                if let Some(value) = part.get(name).filter(|value| !value.is_null()) {
                    file.insert(name.to_owned(), value.clone());
                }
            }
            match file.contains_key("file_data") || file.contains_key("file_id") {
                true => Ok(json!({"type": "file", "file": file})),
                false => Err(unsupported(
                    "a file is given by its address; give its data".to_owned(),
                )),
            }
        }
        // The protocol's own.
        "image_url" | "file" | "video_url" => Ok(part.clone()),
        other => Err(unsupported(format!(
            "a message has a part of type \"{other}\""
        ))),
    }
}

fn unsupported(what: String) -> ModelError {
    let message = format!("{what}; Chat Completions cannot carry that");
    ModelError::new(ModelErrorKind::Unsupported, message)
}
