//! Reads the events of a streamed response.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use switchboard_core::model::ModelEvent;
use switchboard_core::{Item, ModelResponse};

use super::ResponsesModel;
use super::answer::{self, Ended, ResponseFields};
use crate::wire::BROKE_OFF;
use crate::wire::client::ResponseHeaders;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::lenient::{
    fields, fields_or_none, is_error, no_object, raw, text, value, value_or_null,
};
use crate::wire::stream_reader::EventReader;

/// The fields of events. Missing texts are empty; the others are JSON.
struct EventFields<'a> {
    kind: Cow<'a, str>,
    delta: Cow<'a, str>,
    item_id: Cow<'a, str>,
    output_index: Option<u64>,
    item: Option<&'a str>,
    response: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> EventFields<'a> {
    /// `None` if `json` is not one object.
    fn parse(json: &'a str) -> Option<Self> {
        let names = &[
            "type",
            "delta",
            "item_id",
            "output_index",
            "item",
            "response",
            "error",
        ];
        let [kind, delta, item_id, output_index, item, response, error] = fields(json, names)?;
        Some(Self {
            kind: text(kind),
            delta: text(delta),
            item_id: text(item_id),
            output_index: output_index.and_then(|index| index.parse().ok()),
            item,
            response,
            error,
        })
    }
}

/// An output item that events have named.
#[derive(Default)]
struct NamedItem {
    output_index: Option<u64>,
    id: Arc<str>,
    call_id: Arc<str>,
    tool: Arc<str>,
}

/// Builds an answer from its events.
pub(in crate::wire) struct ResponseReader {
    model: ResponsesModel,
    named: Vec<NamedItem>,
    /// The finished items, for servers whose last event leaves them out.
    finished: BTreeMap<u64, Item>,
}

impl EventReader for ResponseReader {
    fn read(
        &mut self,
        data: Arc<str>,
        headers: &ResponseHeaders,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError> {
        let Some(event) = EventFields::parse(&data) else {
            return no_object(&data).map(|()| None);
        };
        let mut ended = None;
        match &*event.kind {
            "response.output_item.added" => self.add_named(&event),
            "response.output_item.done" => self.add_finished(&event)?,
            "response.completed" => ended = Some(Ended::Completed),
            "response.incomplete" => ended = Some(Ended::Incomplete),
            "response.failed" | "response.cancelled" => ended = Some(Ended::Failed),
            "error" | "response.error" => {
                return Err(error_body::failure(&value(&data).unwrap_or_default()));
            }
            "" => {
                let error = value_or_null(event.error);
                if is_error(&error) {
                    return Err(error_body::failure(&error));
                }
            }
            _ => ready.extend(self.delta(&event)),
        }
        let answer = ended
            .map(|ended| self.answer(event.response, ended, headers))
            .transpose()?;
        ready.push_back(ModelEvent::Raw(raw(data)?));
        Ok(answer)
    }

    /// Only an event can complete an answer.
    fn finish(
        &mut self,
        _is_done: bool,
        _headers: &ResponseHeaders,
    ) -> Result<ModelResponse, ModelError> {
        Err(ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF))
    }
}

impl ResponseReader {
    pub(super) fn new(model: ResponsesModel) -> Self {
        Self {
            model,
            named: Vec::new(),
            finished: BTreeMap::new(),
        }
    }

    /// The event for a delta of text, reasoning or arguments.
    fn delta(&mut self, event: &EventFields<'_>) -> Option<ModelEvent> {
        if event.delta.is_empty() {
            return None;
        }
        match &*event.kind {
            "response.output_text.delta" => {
                let item = self.named_item(event).id.clone();
                Some(ModelEvent::text_delta(item, &*event.delta))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                Some(ModelEvent::ReasoningDelta {
                    item: self.named_item(event).id.clone(),
                    text: event.delta.clone().into_owned(),
                })
            }
            "response.function_call_arguments.delta" => {
                let call = self.named_item(event);
                Some(ModelEvent::ArgumentsDelta {
                    item: call.id.clone(),
                    call_id: call.call_id.clone(),
                    tool: call.tool.clone(),
                    text: event.delta.clone().into_owned(),
                })
            }
            _ => None,
        }
    }

    fn add_named(&mut self, event: &EventFields<'_>) {
        let [id, call_id, name] = fields_or_none(event.item, &["id", "call_id", "name"]);
        let id = text(id);
        self.named.push(NamedItem {
            output_index: event.output_index,
            id: if id.is_empty() {
                self.default_id(event).into()
            } else {
                id.into()
            },
            call_id: text(call_id).into(),
            tool: text(name).into(),
        });
    }

    /// The last item with the delta's identifier or index. A delta with neither belongs to the last.
    fn named_item(&mut self, event: &EventFields<'_>) -> &NamedItem {
        let (id, index) = (&*event.item_id, event.output_index);
        let found = self.named.iter().rposition(|item| match index {
            Some(_) => item.output_index == index || *item.id == *id,
            None => id.is_empty() || *item.id == *id,
        });
        let at = found.unwrap_or_else(|| {
            self.named.push(NamedItem {
                output_index: index,
                id: self.default_id(event).into(),
                ..NamedItem::default()
            });
            self.named.len() - 1
        });
        let item = &mut self.named[at];
        if !id.is_empty() && *item.id != *id {
            item.id = id.into();
        }
        item
    }

    /// The name of an item without an identifier.
    fn default_id(&self, event: &EventFields<'_>) -> String {
        let at = event.output_index.unwrap_or(self.named.len() as u64);
        format!("item_{at}")
    }

    /// Keeps a finished item. Of two with the same index the last counts.
    fn add_finished(&mut self, event: &EventFields<'_>) -> Result<(), ModelError> {
        let Some(json) = event.item else {
            return Ok(());
        };
        let item = answer::item(&self.model, json)?;
        let last = self.finished.last_key_value();
        let next = last.map_or(0, |(last, _)| last.saturating_add(1));
        self.finished
            .insert(event.output_index.unwrap_or(next), item);
        Ok(())
    }

    fn answer(
        &mut self,
        response: Option<&str>,
        ended: Ended,
        headers: &ResponseHeaders,
    ) -> Result<ModelResponse, ModelError> {
        let response = response.and_then(ResponseFields::of).unwrap_or_default();
        let items = std::mem::take(&mut self.finished).into_values().collect();
        answer::settle(&self.model, &response, ended, items, headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// The events that a reader makes of some data, without raw events; `None` for an error.
    fn events<'d>(data: impl IntoIterator<Item = &'d str>) -> Option<Vec<ModelEvent>> {
        static MODEL: LazyLock<ResponsesModel> = LazyLock::new(|| {
            let client = Endpoint::at("http://localhost:1/v1").connect().unwrap();
            ResponsesModel::new(&client, "m")
        });
        let (mut reader, mut ready) = (ResponseReader::new(MODEL.clone()), VecDeque::new());
        for data in data {
            let read = reader.read(data.into(), &ResponseHeaders::default(), &mut ready);
            read.ok()?;
        }
        ready.retain(|event| !matches!(event, ModelEvent::Raw(_)));
        Some(ready.into())
    }

    #[test]
    fn deltas_name_their_item_even_if_fields_are_missing() {
        let call = r#""type":"function_call","call_id":"c","name":"t""#;
        for (added, delta, item) in [
            (
                r#""output_index":1,"item":{"id":"fc",CALL}"#,
                r#""item_id":"fc","output_index":1"#,
                "fc",
            ),
            (r#""item":{"id":"fc",CALL}"#, r#""item_id":"fc""#, "fc"),
            (r#""item":{"id":"fc",CALL}"#, r#""item_id":null"#, "fc"),
            (
                r#""output_index":1,"item":{"id":"fc",CALL}"#,
                r#""output_index":1"#,
                "fc",
            ),
            (
                r#""output_index":1,"item":{"id":"x",CALL}"#,
                r#""item_id":"fc","output_index":1"#,
                "fc",
            ),
            (
                r#""output_index":1,"item":{CALL}"#,
                r#""output_index":1"#,
                "item_1",
            ),
            (r#""item":{CALL}"#, r#""x":1"#, "item_0"),
        ] {
            let added = added.replace("CALL", call);
            let added = format!(r#"{{"type":"response.output_item.added",{added}}}"#);
            let delta = format!(
                r#"{{"type":"response.function_call_arguments.delta","delta":"{{}}",{delta}}}"#
            );
            let expected = ModelEvent::ArgumentsDelta {
                item: item.into(),
                call_id: "c".into(),
                tool: "t".into(),
                text: "{}".to_owned(),
            };
            assert_eq!(
                events([&*added, &*delta]),
                Some(vec![expected]),
                "{added} {delta}"
            );
        }
        let alone = r#"{"type":"response.output_text.delta","delta":"a"}"#;
        let expected = ModelEvent::text_delta("item_0", "a");
        assert_eq!(events([alone]), Some(vec![expected]));
    }

    proptest! {
        /// A duplicate field forces the lenient reader.
        #[test]
        fn both_readers_agree_on_events(
            kind in "(response\\.(output_text\\.delta|reasoning_text\\.delta|function_call_arguments\\.delta|created|output_item\\.done|refusal\\.delta)|x|error|)",
            delta in prop_oneof![
                any::<String>().prop_map(|text| serde_json::json!(text).to_string()),
                "(null|1|\\{\\}|\"\\\\ud800\"|\"\\\\u00e9\")",
            ],
            space in "( |\n)?",
        ) {
            let strict = format!(r#"{space}{{"type":"{kind}","delta":{delta}}}"#);
            let twice = format!(r#"{space}{{"type":"","type":"{kind}","delta":{delta}}}"#);
            prop_assert_eq!(events([&*strict]), events([&*twice]));
        }
    }
}
