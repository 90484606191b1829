//! Renders the events of one output item, from `output_item.added` to `output_item.done`.

use serde_json::{Map, Value, json};

use super::events::Events;
use super::pieces;

/// Writes the events of the item at `index`.
pub(super) fn item(events: &mut Events<'_>, index: usize, item: &Value) {
    events.push(
        "response.output_item.added",
        json!({"output_index": index, "item": in_progress(item)}),
    );
    let id = match item["id"].as_str() {
        Some(id) => id.to_owned(),
        None => format!("item_{index}"),
    };
    Writer { events, index, id }.content(item);
    events.push(
        "response.output_item.done",
        json!({"output_index": index, "item": item}),
    );
}

/// Begins a message, with a first piece of text.
pub(super) fn begin_text(events: &mut Events<'_>) {
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
                         "status": "in_progress", "content": []});
    events.push(
        "response.output_item.added",
        json!({"output_index": 0, "item": message}),
    );
    let mut writer = Writer {
        events,
        index: 0,
        id: "msg_1".to_owned(),
    };
    writer.push(
        "content_part.added",
        json!({"content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
    );
    writer.push(
        "output_text.delta",
        json!({"content_index": 0, "delta": "and on ", "logprobs": []}),
    );
}

/// An item without its content.
fn in_progress(item: &Value) -> Value {
    let mut started = item.clone();
    if started.get("status").is_some() {
        started["status"] = json!("in_progress");
    }
    let empty: &[(&str, Value)] = match item["type"].as_str().unwrap_or_default() {
        "message" => &[("content", json!([]))],
        "function_call" => &[("arguments", json!(""))],
        "mcp_call" => &[
            ("arguments", json!("")),
            ("output", Value::Null),
            ("error", Value::Null),
        ],
        "custom_tool_call" => &[("input", json!(""))],
        "code_interpreter_call" => &[("code", json!("")), ("outputs", Value::Null)],
        "reasoning" => &[("summary", json!([])), ("content", json!([]))],
        "image_generation_call" => &[("result", Value::Null)],
        "mcp_list_tools" => &[("tools", json!([]))],
        "shell_call_output" => &[("output", json!([]))],
        _ => &[],
    };
    for (field, value) in empty {
        if started.get(field).is_some() {
            started[*field] = value.clone();
        }
    }
    if let Some(commands) = started.pointer_mut("/action/commands") {
        *commands = json!([]);
    }
    started
}

struct Writer<'a, 'r> {
    events: &'a mut Events<'r>,
    index: usize,
    id: String,
}

impl Writer<'_, '_> {
    /// Writes a `response.{kind}` event of this item.
    fn push(&mut self, kind: &str, fields: Value) {
        let mut all = Map::new();
        all.insert("item_id".to_owned(), json!(self.id));
        all.insert("output_index".to_owned(), json!(self.index));
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        self.events.push(&format!("response.{kind}"), all.into());
    }

    fn content(&mut self, item: &Value) {
        match item["type"].as_str().unwrap_or_default() {
            "message" => self.message(item),
            "reasoning" => self.reasoning(item),
            "function_call" => self.field(item, "function_call_arguments", "arguments"),
            "custom_tool_call" => self.field(item, "custom_tool_call_input", "input"),
            "mcp_call" => {
                self.stages("mcp_call", &["in_progress"]);
                self.field(item, "mcp_call_arguments", "arguments");
                self.stages("mcp_call", &[completed_or_failed(item)]);
            }
            "mcp_list_tools" => {
                self.stages(
                    "mcp_list_tools",
                    &["in_progress", completed_or_failed(item)],
                );
            }
            "code_interpreter_call" => {
                self.stages("code_interpreter_call", &["in_progress"]);
                self.field(item, "code_interpreter_call_code", "code");
                self.stages("code_interpreter_call", &["interpreting", "completed"]);
            }
            kind @ ("web_search_call" | "file_search_call") => {
                self.stages(kind, &["in_progress", "searching", "completed"]);
            }
            "image_generation_call" => self.image(item),
            "shell_call" => self.commands(item),
            "shell_call_output" => self.command_outputs(item),
            "compaction" => self.stages("compaction", &["compacting"]),
            _ => {}
        }
    }

    fn stages(&mut self, kind: &str, stages: &[&str]) {
        for stage in stages {
            self.push(&format!("{kind}.{stage}"), json!({}));
        }
    }

    /// Writes a text field of the item, in pieces and then whole.
    fn field(&mut self, item: &Value, kind: &str, field: &str) {
        let Some(text) = item[field].as_str() else {
            return;
        };
        for piece in pieces(text, self.events.reply.piece) {
            self.push(&format!("{kind}.delta"), json!({"delta": piece}));
        }
        self.push(&format!("{kind}.done"), json!({field: text}));
    }

    fn message(&mut self, item: &Value) {
        let parts = item["content"].as_array().into_iter().flatten();
        for (at, part) in parts.enumerate() {
            let (kind, field) = match part["type"].as_str().unwrap_or_default() {
                "output_text" => ("output_text", "text"),
                "refusal" => ("refusal", "refusal"),
                _ => continue,
            };
            let mut empty = part.clone();
            empty[field] = json!("");
            if empty.get("annotations").is_some() {
                empty["annotations"] = json!([]);
            }
            self.push(
                "content_part.added",
                json!({"content_index": at, "part": empty}),
            );
            self.part(part, at, kind, field);
            self.push(
                "content_part.done",
                json!({"content_index": at, "part": part}),
            );
        }
    }

    fn part(&mut self, part: &Value, at: usize, kind: &str, field: &str) {
        let text = part[field].as_str().unwrap_or_default();
        let with_logprobs = |mut fields: Value| {
            if kind == "output_text" {
                fields["logprobs"] = json!([]);
            }
            fields
        };
        for piece in pieces(text, self.events.reply.piece) {
            let fields = with_logprobs(json!({"content_index": at, "delta": piece}));
            self.push(&format!("{kind}.delta"), fields);
        }
        let annotations = part["annotations"].as_array().into_iter().flatten();
        for (number, annotation) in annotations.enumerate() {
            self.push(
                "output_text.annotation.added",
                json!({"content_index": at, "annotation_index": number, "annotation": annotation}),
            );
        }
        let fields = with_logprobs(json!({"content_index": at, field: text}));
        self.push(&format!("{kind}.done"), fields);
    }

    fn reasoning(&mut self, item: &Value) {
        for (at, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
            let empty = json!({"type": "summary_text", "text": ""});
            self.push(
                "reasoning_summary_part.added",
                json!({"summary_index": at, "part": empty}),
            );
            self.texts("reasoning_summary_text", "summary_index", at, part);
            self.push(
                "reasoning_summary_part.done",
                json!({"summary_index": at, "part": part}),
            );
        }
        for (at, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            self.texts("reasoning_text", "content_index", at, part);
        }
    }

    fn texts(&mut self, kind: &str, index: &str, at: usize, part: &Value) {
        let text = part["text"].as_str().unwrap_or_default();
        for piece in pieces(text, self.events.reply.piece) {
            self.push(&format!("{kind}.delta"), json!({index: at, "delta": piece}));
        }
        self.push(&format!("{kind}.done"), json!({index: at, "text": text}));
    }

    fn image(&mut self, item: &Value) {
        self.stages("image_generation_call", &["in_progress", "generating"]);
        if let Some(image) = item["result"].as_str() {
            self.push(
                "image_generation_call.partial_image",
                json!({"partial_image_index": 0, "partial_image_b64": image}),
            );
        }
        self.stages("image_generation_call", &["completed"]);
    }

    fn commands(&mut self, item: &Value) {
        let commands = item["action"]["commands"].as_array().into_iter().flatten();
        for (at, command) in commands.enumerate() {
            let command = command.as_str().unwrap_or_default();
            self.command("added", at, "command", "");
            for piece in pieces(command, self.events.reply.piece) {
                self.command("delta", at, "delta", piece);
            }
            self.command("done", at, "command", command);
        }
    }

    /// Writes an event of a command. These have the index of the item, but not its identifier.
    fn command(&mut self, stage: &str, at: usize, field: &str, text: &str) {
        let kind = format!("response.shell_call_command.{stage}");
        let fields = json!({"output_index": self.index, "command_index": at, field: text});
        self.events.push(&kind, fields);
    }

    fn command_outputs(&mut self, item: &Value) {
        let outputs = item["output"].as_array().into_iter().flatten();
        for (at, output) in outputs.enumerate() {
            for field in ["stdout", "stderr"] {
                let text = output[field].as_str().unwrap_or_default();
                for piece in pieces(text, self.events.reply.piece) {
                    self.push(
                        "shell_call_output_content.delta",
                        json!({"command_index": at, "delta": {field: piece}}),
                    );
                }
            }
            self.push(
                "shell_call_output_content.done",
                json!({"command_index": at, "output": [output]}),
            );
        }
    }
}

fn completed_or_failed(item: &Value) -> &'static str {
    if item["error"].is_null() {
        "completed"
    } else {
        "failed"
    }
}
