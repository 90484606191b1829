//! The JSON form of an event: one flat object.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::Value;
use serde_json::value::RawValue;

use super::event::{EventKind, StreamEvent};
use crate::model::RawEvent;

/// The fields that every event has.
#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    agent: Arc<str>,
    turn: u32,
}

/// The derived form is `{"text_delta": {...}}`; the fields are moved up beside `type`. Serde's own
/// flat forms cannot be used: they lose the bytes of items.
impl Serialize for StreamEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let EventKind::Unknown(event) = &self.kind {
            return event.serialize(serializer);
        }
        let nested = serde_json::to_string(&self.kind).map_err(ser::Error::custom)?;
        let fields = nested
            .strip_suffix("}}")
            .and_then(|rest| rest.split_once("\":{"))
            .map(|(_, fields)| fields)
            .ok_or_else(|| ser::Error::custom("the event has no JSON form"))?;
        let envelope = Envelope {
            kind: self.kind.name().into(),
            agent: self.agent.clone(),
            turn: self.turn,
        };
        let mut flat = serde_json::to_string(&envelope).map_err(ser::Error::custom)?;
        if !fields.is_empty() {
            flat.pop();
            flat.push(',');
            flat.push_str(fields);
            flat.push('}');
        }
        RawValue::from_string(flat)
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StreamEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flat = Box::<RawValue>::deserialize(deserializer)?;
        let envelope: Envelope<'_> = serde_json::from_str(flat.get()).map_err(de::Error::custom)?;
        let nested = format!("{{{}:{flat}}}", Value::from(&*envelope.kind));
        let kind = match serde_json::from_str(&nested) {
            Ok(kind) => kind,
            Err(error)
                if error
                    .to_string()
                    .starts_with(&format!("unknown variant `{}`", envelope.kind)) =>
            {
                EventKind::Unknown(RawEvent::from_read(flat.get().into()))
            }
            Err(error) => return Err(de::Error::custom(error)),
        };
        Ok(Self {
            kind,
            agent: envelope.agent,
            turn: envelope.turn,
        })
    }
}
