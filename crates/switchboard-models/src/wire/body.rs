//! Request bodies, put together from bytes that are there already.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::{Items, ModelRequest};

use super::payload::{Draft, Payload, WriteItems};

/// The field that is ours alone: an answer in a form we did not ask for could not be read.
const RESERVED: &str = "stream";

/// A JSON object in the making.
pub(super) struct Body<'a> {
    draft: Draft<'a>,
    /// Fields the user wants as they say, whatever we would write; a null leaves one out.
    overrides: [&'a BTreeMap<String, Value>; 2],
}

impl<'a> Body<'a> {
    /// An object around a conversation, whose items `write` writes; fields of the later map win.
    pub(super) fn around(
        items: &'a Items,
        write: WriteItems,
        overrides: [&'a BTreeMap<String, Value>; 2],
    ) -> Self {
        let mut draft = Draft::of(items, write);
        draft.json.push(b'{');
        Self { draft, overrides }
    }

    /// A field with a value.
    pub(super) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if self.begins(name) {
            // Strings, numbers and maps with text keys are always JSON.
            let _ = serde_json::to_writer(&mut self.draft.json, value);
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

    /// A field whose value `write` writes. It is asked also where the user has another value for the
    /// field.
    pub(super) fn written<T>(&mut self, name: &str, write: impl FnOnce(&mut Draft<'a>) -> T) -> T {
        let is_ours = self.begins(name);
        let start = self.draft.end();
        let told = write(&mut self.draft);
        if !is_ours {
            self.draft.back_to(start);
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
            let _ = serde_json::to_writer(&mut self.draft.json, value);
        }
        self.draft.json.push(b'}');
        self.draft.finish()
    }

    /// Writes the name of a field of ours, which is plain text.
    fn begins(&mut self, name: &str) -> bool {
        let is_overridden =
            name != RESERVED && self.overrides.iter().any(|map| map.contains_key(name));
        if !is_overridden {
            self.draft
                .json
                .extend_from_slice(if self.draft.json.len() > 1 {
                    b",\""
                } else {
                    b"\""
                });
            self.draft.json.extend_from_slice(name.as_bytes());
            self.draft.json.extend_from_slice(b"\":");
        }
        !is_overridden
    }

    fn key(&mut self, name: &str) {
        if self.draft.json.len() > 1 {
            self.draft.json.push(b',');
        }
        let _ = serde_json::to_writer(&mut self.draft.json, name);
        self.draft.json.push(b':');
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
    use crate::wire::payload::as_they_are;
    use serde_json::json;
    use switchboard_core::Item;

    #[test]
    fn the_users_fields_win() {
        let map =
            |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).unwrap() };
        let client = map(json!({"a": 1, "store": false, "stream": false}));
        let settings = map(json!({"a": 2, "input": "x", "user": null}));
        let items = vec![Item::user("x".repeat(500))].into();
        let mut body = Body::around(&items, as_they_are, [&client, &settings]);
        body.field("model", "m\"");
        body.written("input", Draft::all);
        body.written("a", |draft| draft.json.push(b'7'));
        body.written("n", |draft| draft.json.push(b'7'));
        body.optional("store", Some(&true));
        body.optional("top_p", None::<&f64>);
        body.number("temperature", Some(f64::NAN));
        body.number("frequency_penalty", Some(0.5));
        body.field("user", "u");
        body.field("stream", &true);
        let text = String::from_utf8(body.finish().json()).unwrap();
        assert_eq!(
            text,
            r#"{"model":"m\"","n":7,"frequency_penalty":0.5,"stream":true,"store":false,"a":2,"input":"x"}"#
        );
    }
}
