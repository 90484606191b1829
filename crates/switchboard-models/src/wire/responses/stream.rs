//! What comes back piece by piece.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::{Item, ModelEvent, RawEvent};

use super::ResponsesModel;
use super::answer::{self, Response, bad};
use crate::wire::BROKE_OFF;
use crate::wire::Pieces;
use crate::wire::client::{Events, Head};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::refused;
use crate::wire::sse::Event;

/// An event, as far as we look at it.
#[derive(Deserialize)]
struct Told<'a> {
    #[serde(rename = "type", default)]
    kind: Option<Box<str>>,
    #[serde(default)]
    delta: Option<Value>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

/// An answer under way.
pub(super) struct Answering {
    /// Gone once the answer has ended.
    events: Option<Events>,
    model: ResponsesModel,
    /// The items told so far, for servers whose last event leaves them out.
    items: Vec<(u64, Item)>,
    ready: VecDeque<ModelEvent>,
    head: Head,
}

impl Answering {
    pub(super) fn new(events: Events, model: ResponsesModel) -> Self {
        Self {
            head: events.head().clone(),
            events: Some(events),
            model,
            items: Vec::new(),
            ready: VecDeque::new(),
        }
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
            let told = match events.next().await? {
                Some(Event::Data(data)) if data.starts_with("[DONE]") => None,
                Some(Event::Data(data)) => Some(self.take(data)),
                Some(Event::Error(said)) => {
                    let said = serde_json::from_str(&said).unwrap_or(Value::String(said));
                    Some(Err(self.failed(&said)))
                }
                None => None,
            };
            let broken = || ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF);
            let taken = told.unwrap_or_else(|| Err(broken()));
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

impl Answering {
    fn take(&mut self, data: String) -> Result<(), ModelError> {
        let told: Told<'_> = serde_json::from_str(&data).map_err(|error| bad(&error))?;
        let mut piece = None;
        let mut last = None;
        match told.kind.as_deref().unwrap_or_default() {
            "response.output_text.delta" => {
                piece = told.delta.and_then(|delta| match delta {
                    Value::String(text) => Some(text),
                    _ => None,
                });
            }
            "response.output_item.done" => {
                if let Some(raw) = told.item {
                    let item = answer::item(&self.model, raw)?;
                    let at = told.output_index.unwrap_or(self.items.len() as u64);
                    self.items.push((at, item));
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                last = Some(self.settle(told.response)?);
            }
            "error" | "response.error" => {
                let said = serde_json::from_str(&data).unwrap_or_default();
                return Err(self.failed(&said));
            }
            _ => {
                if let Some(error) = told.error.filter(|error| !error.is_null()) {
                    return Err(self.failed(&error));
                }
            }
        }
        self.ready.extend(piece.map(ModelEvent::TextDelta));
        let raw = RawEvent::from_json(data).map_err(|error| bad(&error))?;
        self.ready.push_back(ModelEvent::Raw(raw));
        self.ready.extend(last);
        Ok(())
    }

    fn settle(&mut self, response: Option<&RawValue>) -> Result<ModelEvent, ModelError> {
        let raw = response.map_or("{}", RawValue::get);
        let response: Response<'_> = serde_json::from_str(raw).map_err(|error| bad(&error))?;
        let mut items = std::mem::take(&mut self.items);
        items.sort_by_key(|(at, _)| *at);
        let items = items.into_iter().map(|(_, item)| item).collect();
        let answer = answer::settle(&self.model, response, items, &self.head)?;
        Ok(ModelEvent::Completed(answer))
    }

    fn failed(&self, said: &Value) -> ModelError {
        let said = refused::told(said);
        let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
        self.model.client.told(&message, code)
    }
}
