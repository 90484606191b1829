//! The events of a response, made from the events of a run.
//!
//! A run may have many model calls, tools and handoffs; the response has one beginning, one end, its own numbers of
//! events and its own places of items, whatever the models behind it sent. The client sees the words of the agents
//! and the calls of its own tools. Calls of the team's tools and handoffs are not items of the response, as clients
//! would try to carry them out; the field `switchboard` of the response has the handoffs, and each item the `agent`
//! that made it.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::approval::Interruption;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, HandoffStatus, ItemEvent};

use super::input::exported_call_id;
use super::now;
use crate::api::Waiting;
use crate::event_log::LoggedEvent;
use crate::team::ServedTeam;

/// Makes the events of a response.
#[derive(Clone)]
pub(super) struct OutputEvents {
    team: ServedTeam,
    conversation: Arc<str>,
    /// The response without its output.
    response: Value,
    output: Vec<Value>,
    open: Vec<OpenMessage>,
    handoffs: Vec<Value>,
    waiting: Vec<Value>,
    sequence: u64,
    /// The start of identifiers of items.
    item_prefix: String,
    is_ended: bool,
}

/// A message whose text is being streamed.
#[derive(Clone)]
struct OpenMessage {
    /// The model's identifier of the message.
    model_id: Arc<str>,
    output_index: usize,
    text: String,
}

impl OutputEvents {
    /// `response` has all fields of a response that has not begun.
    pub(super) fn new(team: ServedTeam, conversation: Arc<str>, response: Value) -> Self {
        let id = response["id"].as_str().unwrap_or_default();
        let item_prefix = id.split_once('_').map_or(id, |(_, key)| key);
        let item_prefix = item_prefix.chars().take(16).collect();
        Self {
            team,
            conversation,
            response,
            output: Vec::new(),
            open: Vec::new(),
            handoffs: Vec::new(),
            waiting: Vec::new(),
            sequence: 0,
            item_prefix,
            is_ended: false,
        }
    }

    /// The events before the first one of the run.
    pub(super) fn begin(&mut self) -> Vec<Value> {
        ["response.created", "response.in_progress"]
            .map(|kind| self.event(kind, json!({"response": self.response()})))
            .into()
    }

    /// The response as it is now.
    pub(super) fn response(&self) -> Value {
        let mut response = self.response.clone();
        response["output"] = Value::Array(self.output.clone());
        response["switchboard"]["handoffs"] = Value::Array(self.handoffs.clone());
        response["switchboard"]["waiting"] = Value::Array(self.waiting.clone());
        response
    }

    /// Returns `true` once the last event was made.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn event(&mut self, kind: &str, mut fields: Value) -> Value {
        fields["type"] = kind.into();
        fields["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        fields
    }

    /// Translates an event of the run.
    pub(super) fn translate(&mut self, logged: &LoggedEvent) -> Vec<Value> {
        let event = &*logged.event;
        let mut events = Vec::new();
        if self.is_ended {
            return events;
        }
        match &event.kind {
            EventKind::AgentUpdated { .. } => {
                self.response["switchboard"]["agent"] = (*event.agent).into();
            }
            EventKind::TextDelta { item, text, .. } => {
                let at = self.opened(item, &event.agent, &mut events);
                self.add_text(at, text, &mut events);
            }
            // The next attempt writes the message again.
            EventKind::ModelRetry { .. } => self.close_all("incomplete", &mut events),
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text,
                item,
                ..
            } => {
                let id = item.item().id().unwrap_or_default();
                self.finish_message(
                    &id,
                    text.as_deref().unwrap_or_default(),
                    &event.agent,
                    &mut events,
                );
            }
            EventKind::Handoff(handoff) => {
                self.handoffs.push(json!({
                    "from": &*handoff.from, "to": &*handoff.to, "status": handoff.status,
                }));
                if handoff.status == HandoffStatus::Taken {
                    self.response["switchboard"]["agent"] = (*handoff.to).into();
                }
            }
            EventKind::RunFinished { output, usage, .. } => {
                self.close_all("completed", &mut events);
                self.add_final_output(output, &event.agent, &mut events);
                self.end("completed", usage, &mut events);
            }
            EventKind::RunInterrupted {
                interruptions,
                usage,
                ..
            } => {
                self.close_all("completed", &mut events);
                self.interrupted(interruptions, usage, &mut events);
            }
            EventKind::RunStopped { usage, .. } => {
                self.close_all("incomplete", &mut events);
                self.response["incomplete_details"] = json!({"reason": "cancelled"});
                self.end("incomplete", usage, &mut events);
            }
            EventKind::RunFailed { message, usage, .. } => {
                self.close_all("incomplete", &mut events);
                if let Some(cut_off) = logged.cut_off {
                    self.response["incomplete_details"] = json!({"reason": cut_off.as_str()});
                    self.end("incomplete", usage, &mut events);
                } else {
                    self.response["error"] = json!({"code": "server_error", "message": message});
                    self.end("failed", usage, &mut events);
                }
            }
            _ => {}
        }
        events
    }

    /// The last events of a run whose own events were dropped, as the client was too slow.
    pub(super) fn fail(&mut self, message: &str) -> Vec<Value> {
        let mut events = Vec::new();
        self.close_all("incomplete", &mut events);
        self.response["error"] = json!({"code": "server_error", "message": message});
        self.end("failed", &Usage::default(), &mut events);
        events
    }

    fn item_id(&self, kind: &str) -> String {
        format!("{kind}_{}{:04x}", self.item_prefix, self.output.len())
    }

    /// The index of the open message with the model's identifier; it is opened if need be.
    fn opened(&mut self, model_id: &Arc<str>, agent: &str, events: &mut Vec<Value>) -> usize {
        if let Some(at) = self.open.iter().position(|open| open.model_id == *model_id) {
            return at;
        }
        let output_index = self.output.len();
        let item = json!({
            "type": "message", "id": self.item_id("msg"), "status": "in_progress",
            "role": "assistant", "content": [], "agent": agent,
        });
        let item_id = item["id"].clone();
        self.output.push(item.clone());
        events.push(self.event(
            "response.output_item.added",
            json!({"output_index": output_index, "item": item}),
        ));
        events.push(self.event(
            "response.content_part.added",
            json!({"item_id": item_id, "output_index": output_index, "content_index": 0,
                   "part": text_part("")}),
        ));
        self.open.push(OpenMessage {
            model_id: model_id.clone(),
            output_index,
            text: String::new(),
        });
        self.open.len() - 1
    }

    fn add_text(&mut self, at: usize, text: &str, events: &mut Vec<Value>) {
        if text.is_empty() {
            return;
        }
        let Some(open) = self.open.get_mut(at) else {
            return;
        };
        open.text.push_str(text);
        let output_index = open.output_index;
        let item_id = self.output[output_index]["id"].clone();
        events.push(self.event(
            "response.output_text.delta",
            json!({"item_id": item_id, "output_index": output_index, "content_index": 0,
                   "delta": text, "logprobs": []}),
        ));
    }

    /// Ends the message that the model has completed.
    fn finish_message(&mut self, id: &str, text: &str, agent: &str, events: &mut Vec<Value>) {
        let open = self.open.iter().position(|open| *open.model_id == *id);
        let open = open.or_else(|| (!self.open.is_empty()).then_some(0));
        if let Some(at) = open {
            let streamed = &self.open[at].text;
            match text.strip_prefix(streamed.as_str()).map(ToOwned::to_owned) {
                Some(rest) => {
                    self.add_text(at, &rest, events);
                    self.close(at, "completed", events);
                    return;
                }
                // What was streamed is not what was kept.
                None => self.close(at, "incomplete", events),
            }
        }
        if !text.is_empty() {
            let at = self.opened(&"".into(), agent, events);
            self.add_text(at, text, events);
            self.close(at, "completed", events);
        }
    }

    fn close(&mut self, at: usize, status: &str, events: &mut Vec<Value>) {
        let open = self.open.remove(at);
        let output_index = open.output_index;
        let item = &mut self.output[output_index];
        item["status"] = status.into();
        item["content"] = json!([text_part(&open.text)]);
        let item = item.clone();
        let place =
            json!({"item_id": item["id"], "output_index": output_index, "content_index": 0});
        let mut done = place.clone();
        done["text"] = open.text.as_str().into();
        done["logprobs"] = json!([]);
        events.push(self.event("response.output_text.done", done));
        let mut done = place;
        done["part"] = text_part(&open.text);
        events.push(self.event("response.content_part.done", done));
        events.push(self.event(
            "response.output_item.done",
            json!({"output_index": output_index, "item": item}),
        ));
    }

    fn close_all(&mut self, status: &str, events: &mut Vec<Value>) {
        while !self.open.is_empty() {
            self.close(0, status, events);
        }
    }

    /// Adds the final output where no message has it, as with an output that a tool has made.
    fn add_final_output(&mut self, output: &Value, agent: &str, events: &mut Vec<Value>) {
        let last = self
            .output
            .last()
            .and_then(|item| item["content"][0]["text"].as_str());
        let is_said = last.is_some_and(|text| match output {
            Value::String(output) => output == text,
            output => serde_json::from_str::<Value>(text).is_ok_and(|said| said == *output),
        });
        if !is_said {
            let text = match output {
                Value::String(text) => text.clone(),
                output => output.to_string(),
            };
            self.finish_message("", &text, agent, events);
        }
    }

    /// Ends a response whose run waits: for tools of the client, or for people.
    fn interrupted(&mut self, waiting: &[Interruption], usage: &Usage, events: &mut Vec<Value>) {
        let (calls, others): (Vec<&Interruption>, Vec<&Interruption>) = waiting
            .iter()
            .partition(|waiting| self.team.is_client_call(waiting));
        for call in &calls {
            self.add_call(call, events);
        }
        let waiting = others.into_iter().map(Waiting::from);
        self.waiting = waiting
            .filter_map(|waiting| serde_json::to_value(waiting).ok())
            .collect();
        if calls.is_empty() {
            self.response["incomplete_details"] = json!({"reason": "waiting"});
            self.end("incomplete", usage, events);
        } else {
            self.end("completed", usage, events);
        }
    }

    fn add_call(&mut self, call: &Interruption, events: &mut Vec<Value>) {
        let output_index = self.output.len();
        let call_id = exported_call_id(&self.conversation, &call.call_id);
        let mut item = json!({
            "type": "function_call", "id": self.item_id("fc"), "call_id": call_id,
            "name": &*call.tool, "arguments": "", "status": "in_progress", "agent": &*call.agent,
        });
        events.push(self.event(
            "response.output_item.added",
            json!({"output_index": output_index, "item": item}),
        ));
        events.push(self.event(
            "response.function_call_arguments.delta",
            json!({"item_id": item["id"], "output_index": output_index, "delta": &*call.arguments}),
        ));
        events.push(self.event(
            "response.function_call_arguments.done",
            json!({"item_id": item["id"], "output_index": output_index, "name": &*call.tool,
                   "arguments": &*call.arguments}),
        ));
        item["arguments"] = (*call.arguments).into();
        item["status"] = "completed".into();
        self.output.push(item.clone());
        events.push(self.event(
            "response.output_item.done",
            json!({"output_index": output_index, "item": item}),
        ));
    }

    fn end(&mut self, status: &str, usage: &Usage, events: &mut Vec<Value>) {
        self.is_ended = true;
        self.response["status"] = status.into();
        if status == "completed" {
            self.response["completed_at"] = now().into();
        }
        self.response["usage"] = json!({
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total_tokens(),
        });
        let response = self.response();
        events.push(self.event(&format!("response.{status}"), json!({"response": response})));
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
