//! Request bodies, put together from bytes that are there already.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::{Items, ModelRequest};

use super::payload::Payload;

/// The field that is ours alone: an answer in a form we did not ask for could not be read.
const RESERVED: &str = "stream";

/// What the fields around the conversation take, mostly.
const ROOM: usize = 2 << 10;

/// A conversation from this size on is put together while it is sent.
const LARGE: usize = 4 << 10;

/// A JSON object in the making.
pub(super) struct Body<'a> {
    json: Vec<u8>,
    /// A large conversation, how many bytes it takes, and where it belongs.
    large: Option<(Items, usize, usize)>,
    /// Fields the user wants as they say, whatever we would write; a null leaves one out.
    overrides: [&'a BTreeMap<String, Value>; 2],
}

impl<'a> Body<'a> {
    /// An object; fields of the later map win.
    pub(super) fn new(overrides: [&'a BTreeMap<String, Value>; 2]) -> Self {
        Self::sized(0, overrides)
    }

    /// An object with room for as many bytes of a conversation.
    pub(super) fn sized(size: usize, overrides: [&'a BTreeMap<String, Value>; 2]) -> Self {
        let size = if size < LARGE { size } else { 0 };
        let mut json = Vec::with_capacity(size + ROOM);
        json.push(b'{');
        Self {
            json,
            large: None,
            overrides,
        }
    }

    /// A field with a value.
    pub(super) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if self.begins(name) {
            // Strings, numbers and maps with text keys are always JSON.
            let _ = serde_json::to_writer(&mut self.json, value);
        }
    }

    /// A field where there is a value.
    pub(super) fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// A field where there is a number. What is none, such as NaN, has no form in JSON.
    pub(super) fn number(&mut self, name: &str, value: Option<f64>) {
        match value {
            Some(value) if !value.is_finite() => {
                tracing::warn!(name, "a setting is no number and is left out");
            }
            value => self.optional(name, value.as_ref()),
        }
    }

    /// A field whose value are items, `size` bytes with a comma after each.
    pub(super) fn items(&mut self, name: &str, items: &Items, size: usize) {
        if !self.begins(name) {
            return;
        }
        self.json.push(b'[');
        if size < LARGE {
            self.json.reserve(size + ROOM);
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    self.json.push(b',');
                }
                self.json.extend_from_slice(item.as_json().as_bytes());
            }
        } else {
            self.large = Some((items.clone(), size.saturating_sub(1), self.json.len()));
        }
        self.json.push(b']');
    }

    /// A field whose value `write` writes, about as many bytes as `size`. It is asked also where the
    /// user has another value for the field.
    pub(super) fn written<T>(
        &mut self,
        name: &str,
        size: usize,
        write: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> T {
        let is_ours = self.begins(name);
        let start = self.json.len();
        self.json.reserve(size + ROOM);
        let told = write(&mut self.json);
        if !is_ours {
            self.json.truncate(start);
        }
        told
    }

    /// The finished object.
    pub(super) fn finish(mut self) -> Payload {
        let [first, last] = self.overrides;
        let kept = first.iter().filter(|(name, _)| !last.contains_key(*name));
        for (name, value) in kept.chain(last).filter(|(_, value)| !value.is_null()) {
            if name == RESERVED {
                tracing::warn!(name, "a field of the body cannot be set and is left out");
                continue;
            }
            self.key(name);
            let _ = serde_json::to_writer(&mut self.json, value);
        }
        self.json.push(b'}');
        match self.large {
            Some((items, size, at)) => Payload::around(self.json, at, items, size),
            None => Payload::ready(self.json),
        }
    }

    /// Writes the name of a field of ours, which is plain text.
    fn begins(&mut self, name: &str) -> bool {
        let is_overridden =
            name != RESERVED && self.overrides.iter().any(|map| map.contains_key(name));
        if !is_overridden {
            self.json
                .extend_from_slice(if self.json.len() > 1 { b",\"" } else { b"\"" });
            self.json.extend_from_slice(name.as_bytes());
            self.json.extend_from_slice(b"\":");
        }
        !is_overridden
    }

    fn key(&mut self, name: &str) {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        let _ = serde_json::to_writer(&mut self.json, name);
        self.json.push(b':');
    }
}

/// A function a model may call.
pub(super) struct Offered<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: &'a RawValue,
    pub(super) strict: bool,
}

/// The tools and the handoffs of a request: to a model both are functions.
pub(super) fn offered(request: &ModelRequest) -> impl Iterator<Item = Offered<'_>> {
    let tools = request.tools.iter().map(|tool| Offered {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        strict: tool.strict,
    });
    let handoffs = request.handoffs.iter().map(|handoff| Offered {
        name: &handoff.tool_name,
        description: &handoff.tool_description,
        parameters: &handoff.input_json_schema,
        strict: handoff.strict,
    });
    tools.chain(handoffs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use switchboard_core::Item;

    #[test]
    fn the_users_fields_win() {
        let map =
            |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).unwrap() };
        let client = map(json!({"a": 1, "store": false, "stream": false}));
        let settings = map(json!({"a": 2, "input": "x", "user": null}));
        let mut body = Body::new([&client, &settings]);
        body.field("model", "m\"");
        let item = Item::from_json("{}").unwrap();
        body.items("input", &vec![item.clone()].into(), 3);
        body.items("items", &vec![item.clone(), item].into(), 6);
        body.written("a", 1, |json| json.push(b'7'));
        body.written("n", 1, |json| json.push(b'7'));
        body.optional("store", Some(&true));
        body.optional("top_p", None::<&f64>);
        body.number("temperature", Some(f64::NAN));
        body.number("frequency_penalty", Some(0.5));
        body.field("user", "u");
        body.field("stream", &true);
        let text = String::from_utf8(body.finish().json()).unwrap();
        assert_eq!(
            text,
            r#"{"model":"m\"","items":[{},{}],"n":7,"frequency_penalty":0.5,"stream":true,"store":false,"a":2,"input":"x"}"#
        );
    }
}
