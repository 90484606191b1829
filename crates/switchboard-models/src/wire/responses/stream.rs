//! What comes back piece by piece.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::__private::{keep, object};
use switchboard_core::{Item, ModelEvent};

use super::ResponsesModel;
use super::answer::{self, Ended};
use crate::wire::BROKE_OFF;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::lenient::{Object, is_error, no_object, raw, value};
use crate::wire::stream_reader::Reader;

/// What most events are: a piece of something.
#[derive(Default)]
struct Piece<'a> {
    kind: Option<Cow<'a, str>>,
    delta: Option<Cow<'a, str>>,
}

impl<'a> Piece<'a> {
    /// `None` where there is more to an event, or it must be read with more care.
    fn of(json: &'a str) -> Option<Self> {
        let mut read = Self::default();
        object(json, |scanner, key| match key {
            b"type" => keep(&mut read.kind, scanner.text()),
            b"delta" => keep(&mut read.delta, scanner.text()),
            _ => scanner.ignore(),
        })?;
        let says_more = read.kind.as_deref().is_none_or(says_more);
        (!says_more).then_some(read)
    }
}

const TEXT: &str = "response.output_text.delta";

/// Whether an event of this kind is more than a piece.
fn says_more(kind: &str) -> bool {
    matches!(
        kind,
        "" | "error"
            | "response.cancelled"
            | "response.completed"
            | "response.error"
            | "response.failed"
            | "response.incomplete"
            | "response.output_item.done"
    )
}

/// An answer under way.
pub(super) struct Answering {
    model: ResponsesModel,
    /// The items told so far, for servers whose last event leaves them out.
    items: BTreeMap<u64, Item>,
}

impl Reader for Answering {
    fn take(
        &mut self,
        data: Arc<str>,
        head: &Head,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(piece) = Piece::of(&data) {
            if let (Some(TEXT), Some(delta)) = (piece.kind.as_deref(), piece.delta) {
                ready.push_back(ModelEvent::text_delta("message", delta));
            }
            ready.push_back(ModelEvent::Raw(raw(data)?));
            return Ok(());
        }
        let Some(told) = Object::of(&data) else {
            return no_object(&data);
        };
        let kind = told.text("type").unwrap_or_default();
        let mut piece = None;
        let mut last = None;
        match &*kind {
            TEXT => piece = told.text("delta"),
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
        ready.extend(piece.map(|text| ModelEvent::text_delta("message", text)));
        ready.push_back(ModelEvent::Raw(raw(data)?));
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
        let said = error_body::told(said);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn told(data: &str) -> Option<Vec<ModelEvent>> {
        static MODEL: LazyLock<ResponsesModel> = LazyLock::new(|| {
            let client = Endpoint::at("http://localhost:1/v1").connect().unwrap();
            ResponsesModel::new(&client, "m")
        });
        let mut ready = VecDeque::new();
        let taken = Answering::new(MODEL.clone()).take(data.into(), &Head::default(), &mut ready);
        taken.ok().map(|()| ready.into())
    }

    proptest! {
        /// A field that is there twice is not usual; the rest of the event is the same.
        #[test]
        fn usual_events_mean_what_they_mean_to_the_lenient_reader(
            kind in "(response\\.(output_text\\.delta|created|output_item\\.done|refusal\\.delta)|x|error|)",
            delta in prop_oneof![
                any::<String>().prop_map(|text| serde_json::json!(text).to_string()),
                "(null|1|\\{\\}|\"\\\\ud800\"|\"\\\\u00e9\")",
            ],
            space in "( |\n)?",
        ) {
            let usual = format!(r#"{space}{{"type":"{kind}","delta":{delta}}}"#);
            let twice = format!(r#"{space}{{"type":"","type":"{kind}","delta":{delta}}}"#);
            let texts = |events: Option<Vec<ModelEvent>>| events.map(|events| {
                let raw = |event: &ModelEvent| matches!(event, ModelEvent::Raw(_));
                (events.iter().position(raw), events.len(), match &events[0] {
                    ModelEvent::TextDelta { text, .. } => Some(text.clone()),
                    _ => None,
                })
            });
            prop_assert_eq!(texts(told(&usual)), texts(told(&twice)));
        }
    }
}
