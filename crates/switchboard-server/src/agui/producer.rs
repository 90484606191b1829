//! The messages, calls and steps of one producer of events: the run itself, or a subagent.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::stream::{EventKind, ItemEvent, StreamEvent};

use super::event::AguiEvent;

/// The result of a call whose response was cut off, so that no call of a client's list stays without one.
const CUT_OFF: &str = "The call was not made: the model's response was cut off.";

/// Makes the events of one producer. Whatever it has begun is closed by [`Producer::leave`].
pub(super) struct Producer {
    /// The start of identifiers of messages.
    message_prefix: String,
    messages: u64,
    step: Option<Arc<str>>,
    text: Option<OpenText>,
    reasoning: Option<Arc<str>>,
    calls: Vec<OpenCall>,
    /// The calls that were told, and those whose results were.
    told: HashSet<Arc<str>>,
    answered: HashSet<Arc<str>>,
    last_text: String,
}

/// A message whose text is being streamed.
struct OpenText {
    /// The model's identifier of the message.
    model_id: Arc<str>,
    id: Arc<str>,
    text: String,
}

/// A call whose arguments are being streamed.
struct OpenCall {
    id: Arc<str>,
    arguments: String,
}

impl Producer {
    /// No other producer has the prefix.
    pub(super) fn new(message_prefix: String) -> Self {
        Self {
            message_prefix,
            messages: 0,
            step: None,
            text: None,
            reasoning: None,
            calls: Vec::new(),
            told: HashSet::new(),
            answered: HashSet::new(),
            last_text: String::new(),
        }
    }

    /// Translates an event that is not the last one.
    pub(super) fn translate(&mut self, event: &StreamEvent, events: &mut Vec<AguiEvent>) {
        match &event.kind {
            EventKind::AgentUpdated { .. } => self.enter(&event.agent, events),
            EventKind::TextDelta { item, text, .. } => {
                self.close_reasoning(events);
                self.enter(&event.agent, events);
                self.open_text(item, &event.agent, events);
                self.add_text(text, events);
            }
            EventKind::ReasoningDelta { text, .. } => {
                self.enter(&event.agent, events);
                self.add_reasoning(text, events);
            }
            EventKind::ArgumentsDelta {
                call_id,
                tool,
                text,
                ..
            } if !call_id.is_empty() => {
                self.close_reasoning(events);
                self.enter(&event.agent, events);
                self.add_arguments(call_id, tool, text, events);
            }
            // The next attempt writes everything again.
            EventKind::ModelRetry { .. } => self.cut_off(events),
            EventKind::Item {
                name, text, item, ..
            } => self.take_item(
                *name,
                text.as_deref().unwrap_or_default(),
                item.item(),
                &event.agent,
                events,
            ),
            EventKind::ToolEnded {
                call_id, output, ..
            } => {
                let output = match output {
                    Value::String(text) => text.clone(),
                    output => output.to_string(),
                };
                self.add_result(call_id, output, events);
            }
            EventKind::ToolProgress {
                call_id,
                tool,
                progress,
                ..
            } => {
                let value = json!({"call_id": &**call_id, "tool": &**tool, "progress": progress});
                events.push(custom("switchboard.tool_progress", value));
            }
            EventKind::Handoff(handoff) => {
                let value = serde_json::to_value(handoff).unwrap_or_default();
                events.push(custom("switchboard.handoff", value));
            }
            _ => {}
        }
    }

    fn message_id(&mut self) -> Arc<str> {
        self.messages += 1;
        format!("msg_{}_{}", self.message_prefix, self.messages).into()
    }

    /// Begins the step of an agent, and ends the one before.
    pub(super) fn enter(&mut self, agent: &Arc<str>, events: &mut Vec<AguiEvent>) {
        if agent.is_empty() || self.step.as_ref() == Some(agent) {
            return;
        }
        self.leave(events);
        self.step = Some(agent.clone());
        events.push(AguiEvent::StepStarted {
            step_name: agent.clone(),
        });
    }

    pub(super) fn leave(&mut self, events: &mut Vec<AguiEvent>) {
        self.close_text(events);
        self.close_reasoning(events);
        self.close_calls(events);
        if let Some(step_name) = self.step.take() {
            events.push(AguiEvent::StepFinished { step_name });
        }
    }

    fn take_item(
        &mut self,
        name: ItemEvent,
        text: &str,
        item: &Item,
        agent: &Arc<str>,
        events: &mut Vec<AguiEvent>,
    ) {
        match name {
            ItemEvent::MessageOutputCreated => {
                self.close_reasoning(events);
                self.enter(agent, events);
                self.finish_text(text, agent, events);
            }
            ItemEvent::ToolCalled | ItemEvent::HandoffRequested => {
                let (Some(id), Some(tool)) = (item.call_id(), item.name()) else {
                    return;
                };
                self.close_reasoning(events);
                self.enter(agent, events);
                let arguments = item.arguments().unwrap_or_default();
                self.finish_call(&id, &tool, &arguments, events);
            }
            ItemEvent::ToolOutput | ItemEvent::HandoffOccurred => {
                if let (Some(id), Some(output)) = (item.call_id(), item.output_text()) {
                    self.add_result(&id, output.into_owned(), events);
                }
            }
            ItemEvent::ReasoningItemCreated => self.close_reasoning(events),
            _ => {}
        }
    }

    fn open_text(&mut self, model_id: &Arc<str>, agent: &Arc<str>, events: &mut Vec<AguiEvent>) {
        if let Some(open) = &self.text {
            if open.model_id == *model_id {
                return;
            }
            self.close_text(events);
        }
        let id = self.message_id();
        events.push(AguiEvent::TextMessageStart {
            message_id: id.clone(),
            role: "assistant",
            name: agent.clone(),
        });
        self.text = Some(OpenText {
            model_id: model_id.clone(),
            id,
            text: String::new(),
        });
    }

    fn add_text(&mut self, text: &str, events: &mut Vec<AguiEvent>) {
        if let Some(open) = self.text.as_mut().filter(|_| !text.is_empty()) {
            open.text.push_str(text);
            events.push(AguiEvent::TextMessageContent {
                message_id: open.id.clone(),
                delta: text.to_owned(),
            });
        }
    }

    /// Ends the message that the model has completed.
    fn finish_text(&mut self, text: &str, agent: &Arc<str>, events: &mut Vec<AguiEvent>) {
        if let Some(open) = &self.text {
            if let Some(rest) = text.strip_prefix(&*open.text).map(ToOwned::to_owned) {
                self.add_text(&rest, events);
                self.close_text(events);
                return;
            }
            // What was streamed is not what was kept.
            self.close_text(events);
        }
        if !text.is_empty() {
            self.open_text(&"".into(), agent, events);
            self.add_text(text, events);
            self.close_text(events);
        }
    }

    pub(super) fn close_text(&mut self, events: &mut Vec<AguiEvent>) {
        if let Some(open) = self.text.take() {
            self.last_text = open.text;
            events.push(AguiEvent::TextMessageEnd {
                message_id: open.id,
            });
        }
    }

    fn add_reasoning(&mut self, text: &str, events: &mut Vec<AguiEvent>) {
        if text.is_empty() {
            return;
        }
        let id = match &self.reasoning {
            Some(id) => id.clone(),
            None => {
                let id = self.message_id();
                self.reasoning = Some(id.clone());
                events.push(AguiEvent::ReasoningStart {
                    message_id: id.clone(),
                });
                events.push(AguiEvent::ReasoningMessageStart {
                    message_id: id.clone(),
                    role: "reasoning",
                });
                id
            }
        };
        events.push(AguiEvent::ReasoningMessageContent {
            message_id: id,
            delta: text.to_owned(),
        });
    }

    pub(super) fn close_reasoning(&mut self, events: &mut Vec<AguiEvent>) {
        if let Some(message_id) = self.reasoning.take() {
            events.push(AguiEvent::ReasoningMessageEnd {
                message_id: message_id.clone(),
            });
            events.push(AguiEvent::ReasoningEnd { message_id });
        }
    }

    fn add_arguments(
        &mut self,
        id: &Arc<str>,
        tool: &Arc<str>,
        text: &str,
        events: &mut Vec<AguiEvent>,
    ) {
        if self.told.insert(id.clone()) {
            events.push(AguiEvent::ToolCallStart {
                tool_call_id: id.clone(),
                tool_call_name: tool.clone(),
            });
            self.calls.push(OpenCall {
                id: id.clone(),
                arguments: String::new(),
            });
        }
        let open = self.calls.iter_mut().find(|call| call.id == *id);
        if let Some(open) = open.filter(|_| !text.is_empty()) {
            open.arguments.push_str(text);
            events.push(AguiEvent::ToolCallArgs {
                tool_call_id: id.clone(),
                delta: text.to_owned(),
            });
        }
    }

    /// Ends a call that the model has completed.
    pub(super) fn finish_call(
        &mut self,
        id: &str,
        tool: &str,
        arguments: &str,
        events: &mut Vec<AguiEvent>,
    ) {
        let id: Arc<str> = id.into();
        if self.told.contains(&id) && !self.calls.iter().any(|call| call.id == id) {
            return;
        }
        let streamed = self.calls.iter().find(|call| call.id == id);
        let streamed = streamed.map_or("", |call| &call.arguments);
        let rest = arguments.strip_prefix(streamed).unwrap_or_default();
        let rest = rest.to_owned();
        self.add_arguments(&id, &tool.into(), &rest, events);
        self.calls.retain(|call| call.id != id);
        events.push(AguiEvent::ToolCallEnd { tool_call_id: id });
    }

    fn close_calls(&mut self, events: &mut Vec<AguiEvent>) {
        for call in std::mem::take(&mut self.calls) {
            events.push(AguiEvent::ToolCallEnd {
                tool_call_id: call.id.clone(),
            });
            self.add_result(&call.id, CUT_OFF.to_owned(), events);
        }
    }

    fn add_result(&mut self, id: &str, content: String, events: &mut Vec<AguiEvent>) {
        let id: Arc<str> = id.into();
        if !self.answered.insert(id.clone()) {
            return;
        }
        let message_id = self.message_id();
        events.push(AguiEvent::ToolCallResult {
            message_id,
            tool_call_id: id,
            content,
            role: "tool",
        });
    }

    /// Closes what the model has not completed.
    pub(super) fn cut_off(&mut self, events: &mut Vec<AguiEvent>) {
        self.close_text(events);
        self.close_reasoning(events);
        self.close_calls(events);
    }

    /// Adds the final output where no message has it, as with an output that a tool has made.
    pub(super) fn add_final_output(
        &mut self,
        output: &Value,
        agent: &Arc<str>,
        events: &mut Vec<AguiEvent>,
    ) {
        self.close_text(events);
        let is_said = match output {
            Value::String(output) => *output == self.last_text,
            output => {
                serde_json::from_str::<Value>(&self.last_text).is_ok_and(|said| said == *output)
            }
        };
        if !is_said {
            let text = match output {
                Value::String(text) => text.clone(),
                output => output.to_string(),
            };
            self.enter(agent, events);
            self.finish_text(&text, agent, events);
        }
    }
}

fn custom(name: &'static str, value: Value) -> AguiEvent {
    AguiEvent::Custom { name, value }
}
