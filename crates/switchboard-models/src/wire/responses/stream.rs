//! What comes back piece by piece.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use switchboard_core::{Item, ModelEvent, RawEvent};

use super::ResponsesModel;
use super::answer::{self, Ended};
use crate::wire::BROKE_OFF;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::lenient::{Object, bad, is_error, no_object, value};
use crate::wire::listening::Reader;
use crate::wire::refused;

/// An answer under way.
pub(super) struct Answering {
    model: ResponsesModel,
    /// The items told so far, for servers whose last event leaves them out.
    items: BTreeMap<u64, Item>,
}

impl Reader for Answering {
    fn take(
        &mut self,
        data: String,
        head: &Head,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(told) = Object::of(&data) else {
            return no_object(&data);
        };
        let kind = told.text("type").unwrap_or_default();
        let mut piece = None;
        let mut last = None;
        match &*kind {
            "response.output_text.delta" => piece = told.text("delta"),
            "response.output_item.done" => self.add(&told)?,
            "response.completed" => last = Some(self.settle(&told, Ended::Completed, head)?),
            "response.incomplete" => last = Some(self.settle(&told, Ended::Incomplete, head)?),
            "response.failed" | "response.cancelled" => {
                last = Some(self.settle(&told, Ended::Failed, head)?);
            }
            "error" | "response.error" => {
                return Err(self.failed(&value(&data).unwrap_or_default()));
            }
            "" if is_error(&told.value("error")) => {
                return Err(self.failed(&told.value("error")));
            }
            _ => {}
        }
        ready.extend(piece.map(ModelEvent::TextDelta));
        let raw = RawEvent::from_json(data).map_err(|error| bad(&error))?;
        ready.push_back(ModelEvent::Raw(raw));
        ready.extend(last);
        Ok(())
    }

    /// Only its last event ends an answer.
    fn end(
        &mut self,
        _is_done: bool,
        _head: &Head,
        _ready: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        Err(ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF))
    }

    fn failed(&self, said: &Value) -> ModelError {
        let said = refused::told(said);
        let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
        self.model.client.told(&message, code)
    }
}

impl Answering {
    pub(super) fn new(model: ResponsesModel) -> Self {
        Self {
            model,
            items: BTreeMap::new(),
        }
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

    fn settle(
        &mut self,
        told: &Object<'_>,
        ended: Ended,
        head: &Head,
    ) -> Result<ModelEvent, ModelError> {
        let response = told.get("response").and_then(Object::of);
        let items = std::mem::take(&mut self.items).into_values().collect();
        let response = response.unwrap_or_default();
        let answer = answer::settle(&self.model, &response, ended, items, head)?;
        Ok(ModelEvent::Completed(answer))
    }
}
