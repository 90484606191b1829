//! What comes back piece by piece.

use std::collections::VecDeque;

use serde_json::Value;
use switchboard_core::{ModelEvent, RawEvent};

use super::ChatModel;
use super::answer::{Call, Said, arguments, bad, text};
use crate::wire::client::{Events, Head};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::refused;
use crate::wire::sse::Event;
use crate::wire::{BROKE_OFF, Pieces};

/// An answer under way.
pub(super) struct Answering {
    /// Gone once the answer has ended.
    events: Option<Events>,
    model: ChatModel,
    said: Said,
    ready: VecDeque<ModelEvent>,
    head: Head,
}

impl Answering {
    pub(super) fn new(events: Events, model: ChatModel) -> Self {
        Self {
            head: events.head().clone(),
            events: Some(events),
            model,
            said: Said::default(),
            ready: VecDeque::new(),
        }
    }

    fn take(&mut self, data: String) -> Result<(), ModelError> {
        let chunk: Value = serde_json::from_str(&data).map_err(|error| bad(&error))?;
        if !matches!(chunk["error"], Value::Null) {
            return Err(self.failed(&chunk));
        }
        if self.said.id.is_empty() {
            text(&chunk["id"]).clone_into(&mut self.said.id);
        }
        if chunk["usage"].is_object() {
            self.said.usage = chunk["usage"].clone();
        }
        let choices = chunk["choices"].as_array().into_iter().flatten();
        // One answer was asked for; servers that number it otherwise are not understood.
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or_default() == 0) {
            let delta = &choice["delta"];
            let before = self.said.text.len();
            self.said.add(delta);
            if self.said.text.len() > before {
                let more = self.said.text[before..].to_owned();
                self.ready.push_back(ModelEvent::TextDelta(more));
            }
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                self.said.add_call(call);
            }
            let finish = text(&choice["finish_reason"]);
            if !finish.is_empty() {
                self.said.finish = Some(finish.to_owned());
            }
        }
        let raw = RawEvent::from_json(data).map_err(|error| bad(&error))?;
        self.ready.push_back(ModelEvent::Raw(raw));
        Ok(())
    }

    /// The stream has ended: so has the answer, if the server said why it stopped.
    fn end(&mut self, is_done: bool) -> Result<(), ModelError> {
        let said = std::mem::take(&mut self.said);
        if said.finish.is_none() && (!is_done || said.is_nothing()) {
            return Err(ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF));
        }
        let answer = said.settle(&self.model, &self.head)?;
        self.ready.push_back(ModelEvent::Completed(answer));
        Ok(())
    }

    fn failed(&self, said: &Value) -> ModelError {
        let said = refused::told(said);
        let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
        self.model.client.told(&message, code)
    }
}

impl Pieces for Answering {
    async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(events) = &mut self.events else {
                return Ok(None);
            };
            let taken = match events.next().await {
                Ok(Some(Event::Data(data))) if data.starts_with("[DONE]") => self.end(true),
                Ok(Some(Event::Data(data))) => self.take(data),
                Ok(Some(Event::Error(said))) => {
                    let said = serde_json::from_str(&said).unwrap_or(Value::String(said));
                    Err(self.failed(&said))
                }
                Ok(None) => self.end(false),
                // All that could still come is what the answer cost.
                Err(_) if self.said.finish.is_some() => self.end(true),
                Err(error) => return Err(error),
            };
            taken.map_err(|error| match &self.events {
                Some(events) => events.at(error),
                None => error,
            })?;
            if matches!(self.ready.back(), Some(ModelEvent::Completed(_)))
                && let Some(events) = self.events.take()
            {
                events.drain();
            }
        }
    }
}

impl Said {
    fn is_nothing(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    /// Takes a piece of a call. Servers number calls from 0, or all with 0, or not at all.
    fn add_call(&mut self, piece: &Value) {
        let function = &piece["function"];
        let (id, name) = (text(&piece["id"]), text(&function["name"]));
        let index = piece["index"].as_u64();
        let is_other = |call: &Call| !id.is_empty() && !call.id.is_empty() && call.id != id;
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            // A name after arguments begins another call.
            None => self
                .calls
                .len()
                .checked_sub(1)
                .filter(|last| name.is_empty() || self.calls[*last].arguments.is_empty()),
        };
        let at = match known {
            Some(at) if !is_other(&self.calls[at]) => at,
            _ => {
                self.calls.push(Call {
                    index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(&arguments(&function["arguments"]));
    }
}
