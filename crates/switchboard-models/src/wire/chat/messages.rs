//! A conversation as messages.

use serde_json::{Value, json};
use switchboard_core::{Item, ItemKind, ModelRequest};

use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::is_assistants;

/// The JSON of the messages of a request.
pub(super) fn messages(request: &ModelRequest, is_openai: bool) -> Result<Vec<String>, ModelError> {
    let mut messages = Messages {
        done: Vec::with_capacity(request.input.len() + 1),
        pending: None,
        is_openai,
    };
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        messages
            .done
            .push(json!({"role": "system", "content": instructions}).to_string());
    }
    for item in &request.input {
        messages.add(item)?;
    }
    messages.flush();
    Ok(messages.done)
}

struct Messages {
    done: Vec<String>,
    /// What an assistant says and calls in one go is one message.
    pending: Option<Said>,
    is_openai: bool,
}

/// A message of an assistant in the making; its parts are JSON.
#[derive(Default)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
    calls: Vec<String>,
}

impl Messages {
    fn add(&mut self, item: &Item) -> Result<(), ModelError> {
        match item.kind() {
            ItemKind::Message if is_assistants(item) => self.assistant(item),
            ItemKind::Message => {
                self.flush();
                self.message(item)
            }
            ItemKind::FunctionCall => {
                let arguments = item.field("arguments").filter(|json| *json != "\"\"");
                self.call(item, item.field("name"), arguments.map(str::to_owned));
                Ok(())
            }
            kind if kind == ItemKind::Compaction || is_reference(item) => {
                Err(unsupported(format!(
                    "an item of type \"{}\" stands for a part of the conversation that only the \
                     provider that made it can read",
                    item.type_name().unwrap_or_default()
                )))
            }
            kind if kind.is_output() && item.call_id().is_some() => {
                self.flush();
                self.output(item);
                Ok(())
            }
            kind if kind.output_kind().is_some() && item.call_id().is_some() => {
                let name = json!(kind.as_str()).to_string();
                let name = item.field("name").unwrap_or(&name).to_owned();
                self.call(item, Some(&name), Some(other_arguments(item)));
                Ok(())
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
            // Servers other than OpenAI do not know the role.
            "developer" if !self.is_openai => "system",
            role => role,
        };
        let content = item.field("content").unwrap_or("\"\"");
        let content = match content.starts_with('[') {
            false => content.to_owned(),
            true => {
                let parts: Vec<Value> = serde_json::from_str(content)
                    .map_err(|error| unsupported(format!("a message cannot be read: {error}")))?;
                let only_text = role != "user";
                let parts = parts
                    .iter()
                    .filter(|part| !only_text || part["text"].is_string());
                let parts: Result<Vec<Value>, _> = parts.map(part).collect();
                Value::from(parts?).to_string()
            }
        };
        let role = json!(role);
        self.done
            .push(format!(r#"{{"role":{role},"content":{content}}}"#));
        Ok(())
    }

    /// What an assistant says. Text after calls of the same answer belongs to the same message.
    fn assistant(&mut self, item: &Item) -> Result<(), ModelError> {
        let has_spoken = |said: &Said| said.content.is_some() || said.refusal.is_some();
        if self.pending.as_ref().is_some_and(has_spoken) {
            self.flush();
        }
        let said = self.pending.get_or_insert_default();
        match item.field("content") {
            Some(content) if content.starts_with('"') => said.content = Some(content.to_owned()),
            _ => {
                let text = item.text().map(|text| json!(text).to_string());
                said.content = text;
                said.refusal = item.refusal().map(|text| json!(text).to_string());
            }
        }
        Ok(())
    }

    fn call(&mut self, item: &Item, name: Option<&str>, arguments: Option<String>) {
        let id = item.field("call_id").unwrap_or("\"\"");
        let name = name.unwrap_or("\"\"");
        let arguments = arguments.unwrap_or_else(|| r#""{}""#.to_owned());
        let said = self.pending.get_or_insert_default();
        said.calls.push(format!(
            r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
        ));
    }

    fn output(&mut self, item: &Item) {
        let id = item.field("call_id").unwrap_or("\"\"");
        let content = match item.field("output") {
            Some(text) if text.starts_with('"') => text.to_owned(),
            Some(parts) if parts.starts_with('[') => text_of(parts),
            Some(other) => json!(other).to_string(),
            None => "\"\"".to_owned(),
        };
        self.done.push(format!(
            r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#
        ));
    }

    fn flush(&mut self) {
        let Some(said) = self.pending.take() else {
            return;
        };
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
            message.extend([",\"tool_calls\":[", &said.calls.join(","), "]"]);
        }
        message.push('}');
        self.done.push(message);
    }
}

fn is_reference(item: &Item) -> bool {
    item.type_name()
        .is_some_and(|kind| kind == "item_reference")
}

/// What a tool that is no function was called with, as arguments of one.
fn other_arguments(item: &Item) -> String {
    let fields = ["arguments", "input", "action", "operation", "actions"];
    let given = fields
        .iter()
        .find_map(|name| Some((*name, item.field(name)?)));
    let arguments = match given {
        Some(("arguments", text)) if text.starts_with('"') => return text.to_owned(),
        Some((name, json)) => format!(r#"{{"{name}":{json}}}"#),
        None => "{}".to_owned(),
    };
    json!(arguments).to_string()
}

/// The text among the parts of an output; pictures and files cannot be carried.
fn text_of(parts: &str) -> String {
    let parts: Vec<Value> = serde_json::from_str(parts).unwrap_or_default();
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    match texts.is_empty() {
        true => json!("[an output that is no text was left out]").to_string(),
        false => json!(texts.join("\n")).to_string(),
    }
}

/// A part of a message in the protocol's form.
fn part(part: &Value) -> Result<Value, ModelError> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "input_text" | "output_text" | "text" => Ok(json!({"type": "text", "text": part["text"]})),
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
