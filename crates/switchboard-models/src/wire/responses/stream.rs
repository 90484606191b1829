//! What comes back piece by piece.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use switchboard_core::{Item, ModelEvent, RawEvent};

use super::ResponsesModel;
use super::answer::{self, Ended};
use crate::wire::BROKE_OFF;
use crate::wire::Pieces;
use crate::wire::client::{Events, Head};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::lenient::{Object, bad, is_error, no_object, value};
use crate::wire::refused;
use crate::wire::sse::Event;

/// An answer under way.
pub(super) struct Answering {
    /// Gone once the answer has ended.
    events: Option<Events>,
    model: ResponsesModel,
    /// The items told so far, for servers whose last event leaves them out.
    items: BTreeMap<u64, Item>,
    ready: VecDeque<ModelEvent>,
    head: Head,
}

impl Answering {
    pub(super) fn new(events: Events, model: ResponsesModel) -> Self {
        Self {
            head: events.head().clone(),
            events: Some(events),
            model,
            items: BTreeMap::new(),
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
                    let said = value(&said).unwrap_or(Value::String(said));
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
        let Some(told) = Object::of(&data) else {
            return no_object(&data);
        };
        let kind = told.text("type").unwrap_or_default();
        let mut piece = None;
        let mut last = None;
        match &*kind {
            "response.output_text.delta" => piece = told.text("delta"),
            "response.output_item.done" => self.add(&told)?,
            "response.completed" => last = Some(self.settle(&told, Ended::Completed)?),
            "response.incomplete" => last = Some(self.settle(&told, Ended::Incomplete)?),
            "response.failed" | "response.cancelled" => {
                last = Some(self.settle(&told, Ended::Failed)?);
            }
            "error" | "response.error" => {
                return Err(self.failed(&value(&data).unwrap_or_default()));
            }
            "" if is_error(&told.value("error")) => {
                return Err(self.failed(&told.value("error")));
            }
            _ => {}
        }
        self.ready.extend(piece.map(ModelEvent::TextDelta));
        let raw = RawEvent::from_json(data).map_err(|error| bad(&error))?;
        self.ready.push_back(ModelEvent::Raw(raw));
        self.ready.extend(last);
        Ok(())
    }

    /// Keeps an item. Of two in the same place the last counts.
    fn add(&mut self, told: &Object<'_>) -> Result<(), ModelError> {
        let Some(json) = told.get("item") else {
            return Ok(());
        };
        let item = answer::item(&self.model, json)?;
        let next = self
            .items
            .keys()
            .next_back()
            .map_or(0, |last| last.saturating_add(1));
        let at = told.value("output_index").as_u64().unwrap_or(next);
        self.items.insert(at, item);
        Ok(())
    }

    fn settle(&mut self, told: &Object<'_>, ended: Ended) -> Result<ModelEvent, ModelError> {
        let response = told.get("response").and_then(Object::of);
        let items = std::mem::take(&mut self.items).into_values().collect();
        let response = response.unwrap_or_default();
        let answer = answer::settle(&self.model, &response, ended, items, &self.head)?;
        Ok(ModelEvent::Completed(answer))
    }

    fn failed(&self, said: &Value) -> ModelError {
        let said = refused::told(said);
        let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
        self.model.client.told(&message, code)
    }
}
