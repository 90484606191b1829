//! Reads the events of a streamed response.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use switchboard_core::model::ModelEvent;
use switchboard_core::{Item, ModelResponse};

use super::answer::{self, Ended, ResponseFields};
use crate::wire::answer_stream::EventReader;
use crate::wire::lenient_json::{
    field, json_object, no_object, non_empty, parse, raw, raw_usage, text, value,
};
use crate::wire::model_error::ModelError;
use crate::wire::server_errors::{self, broke_off, check_error};

json_object! {
    /// The fields of an event.
    struct EventFields { kind = "type", delta, item_id, output_index, item, response, error }
}

impl EventFields<'_> {
    fn output_index(&self) -> Option<u64> {
        self.output_index?.parse().ok()
    }
}

json_object! {
    /// The fields of an item that name it.
    struct NamedFields { id, call_id, name }
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
    /// The origin that reasoning items are marked with.
    origin: Arc<str>,
    named: Vec<NamedItem>,
    /// The finished items, for servers whose last event leaves them out.
    finished: BTreeMap<u64, Item>,
    /// Set if the answer keeps the usage as the server sent it.
    keeps_raw_usage: bool,
}

impl EventReader for ResponseReader {
    fn read(
        &mut self,
        data: Arc<str>,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError> {
        let Some(event) = parse::<EventFields<'_>>(&data) else {
            return no_object(&data).map(|()| None);
        };
        let mut answer = None;
        match &*text(event.kind) {
            "response.output_item.added" => self.add_named(&event),
            "response.output_item.done" => self.add_finished(&event)?,
            "response.completed" => answer = Some(self.answer(&event, Ended::Completed)?),
            "response.incomplete" => answer = Some(self.answer(&event, Ended::Incomplete)?),
            "response.failed" | "response.cancelled" => {
                answer = Some(self.answer(&event, Ended::Failed)?);
            }
            "error" | "response.error" => {
                return Err(server_errors::failure(&value(&data).unwrap_or_default()));
            }
            "" => check_error(event.error)?,
            kind => ready.extend(self.delta(kind, &event)),
        }
        ready.push_back(ModelEvent::Raw(raw(data)?));
        Ok(answer)
    }

    /// Only an event can complete an answer.
    fn finish(&mut self, _is_done: bool) -> Result<ModelResponse, ModelError> {
        Err(broke_off())
    }
}

impl ResponseReader {
    pub(super) fn new(origin: Arc<str>, keeps_raw_usage: bool) -> Self {
        Self {
            origin,
            named: Vec::new(),
            finished: BTreeMap::new(),
            keeps_raw_usage,
        }
    }

    /// The event for a delta of text, reasoning or arguments.
    fn delta(&mut self, kind: &str, event: &EventFields<'_>) -> Option<ModelEvent> {
        let text = text(event.delta);
        if text.is_empty() {
            return None;
        }
        match kind {
            "response.output_text.delta" => {
                let item = self.named_item(event).id.clone();
                Some(ModelEvent::text_delta(item, text))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                Some(ModelEvent::ReasoningDelta {
                    item: self.named_item(event).id.clone(),
                    text: text.into_owned(),
                })
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let call = self.named_item(event);
                Some(ModelEvent::ArgumentsDelta {
                    item: call.id.clone(),
                    call_id: call.call_id.clone(),
                    tool: call.tool.clone(),
                    text: text.into_owned(),
                })
            }
            _ => None,
        }
    }

    fn add_named(&mut self, event: &EventFields<'_>) {
        let item = event
            .item
            .and_then(parse::<NamedFields<'_>>)
            .unwrap_or_default();
        let id = non_empty(item.id).unwrap_or_else(|| self.default_id(event).into());
        self.named.push(NamedItem {
            output_index: event.output_index(),
            id: id.into(),
            call_id: text(item.call_id).into(),
            tool: text(item.name).into(),
        });
    }

    /// The last item with the delta's identifier or index. A delta with neither belongs to the last.
    fn named_item(&mut self, event: &EventFields<'_>) -> &NamedItem {
        let (id, index) = (&*text(event.item_id), event.output_index());
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
        let at = event.output_index().unwrap_or(self.named.len() as u64);
        format!("item_{at}")
    }

    /// Keeps a finished item. Of two with the same index the last counts.
    fn add_finished(&mut self, event: &EventFields<'_>) -> Result<(), ModelError> {
        let Some(json) = event.item else {
            return Ok(());
        };
        let item = answer::item(&self.origin, json)?;
        let last = self.finished.last_key_value();
        let next = last.map_or(0, |(last, _)| last.saturating_add(1));
        let index = event.output_index().unwrap_or(next);
        self.finished.insert(index, item);
        Ok(())
    }

    fn answer(
        &mut self,
        event: &EventFields<'_>,
        ended: Ended,
    ) -> Result<ModelResponse, ModelError> {
        let response = event.response.and_then(parse::<ResponseFields<'_>>);
        let response = response.unwrap_or_default();
        let items = std::mem::take(&mut self.finished).into_values().collect();
        let mut answer = answer::settle(&self.origin, &response, ended, items)?;
        if self.keeps_raw_usage {
            let usage = event.response.and_then(|response| field(response, "usage"));
            answer.raw_usage = raw_usage(usage);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The events that a reader makes of some data, without raw events; `None` for an error.
    fn events<'d>(data: impl IntoIterator<Item = &'d str>) -> Option<Vec<ModelEvent>> {
        let mut reader = ResponseReader::new("http://localhost:1/m".into(), false);
        let mut ready = VecDeque::new();
        for data in data {
            let read = reader.read(data.into(), &mut ready);
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
