//! The JSON object of a request.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::ModelRequest;
use switchboard_core::items::Items;
use switchboard_core::model::{HandoffSpec, ToolChoice, ToolInput};

use super::payload::{Payload, WriteItem};

/// The field that users cannot set: it decides how the answer is read.
const RESERVED: &str = "stream";

/// A request's JSON object under construction.
pub(super) struct RequestBody<'a> {
    payload: Payload,
    /// Fields that replace ours; a null leaves the field out. The later map wins.
    overrides: [&'a BTreeMap<String, Value>; 2],
}

impl<'a> RequestBody<'a> {
    /// An object for a conversation, whose items `write` writes.
    pub(super) fn new(
        items: &Items,
        write: WriteItem,
        overrides: [&'a BTreeMap<String, Value>; 2],
    ) -> Self {
        let mut payload = Payload::new(items, write);
        payload.json.push(b'{');
        Self { payload, overrides }
    }

    /// Adds a field.
    pub(super) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if !self.is_overridden(name) {
            self.write_field(name, value);
        }
    }

    /// Adds a field if there is a value.
    pub(super) fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// Adds the key of the prompt cache: that of the settings, or for OpenAI itself the one of the
    /// conversation. Other servers may reject a field that they do not know.
    pub(super) fn prompt_cache_key(&mut self, request: &ModelRequest, is_openai: bool) {
        let name = "prompt_cache_key";
        let is_wanted = is_openai || request.settings.prompt_cache_key.is_some();
        // One that is not sent is not made.
        if is_wanted && !self.is_overridden(name) {
            self.optional(name, request.prompt_cache_key().as_ref());
        }
    }

    /// Adds a field if there is a number. NaN and infinities are not JSON and are left out.
    pub(super) fn number(&mut self, name: &str, value: Option<f64>) {
        match value {
            Some(value) if !value.is_finite() => {
                tracing::warn!(name, "a setting is not a finite number and is left out");
            }
            value => self.optional(name, value.as_ref()),
        }
    }

    /// Adds a field whose value `write` writes. `write` runs even if the field is overridden.
    pub(super) fn written<T>(&mut self, name: &str, write: impl FnOnce(&mut Payload) -> T) -> T {
        let start = self.payload.end();
        self.write_key(name);
        let result = write(&mut self.payload);
        if self.is_overridden(name) {
            self.payload.truncate(start);
        }
        result
    }

    /// Adds the tools and the settings that need tools. `tool` gives a function the form of the protocol,
    /// and `named` is the choice of one function.
    pub(super) fn tools<'r, T: Serialize>(
        &mut self,
        request: &'r ModelRequest,
        tool: impl Fn(FunctionSpec<'r>) -> T,
        named: impl Fn(&str) -> Value,
    ) {
        let functions = request.tools.iter().map(|spec| match &spec.input {
            ToolInput::Text { format } => SentTool::Custom(CustomSpec {
                r#type: "custom",
                name: &spec.name,
                description: &spec.description,
                format: format.as_deref(),
            }),
            _ => SentTool::Function(tool(FunctionSpec {
                r#type: None,
                name: &spec.name,
                description: &spec.description,
                parameters: &spec.parameters,
                strict: spec.strict,
            })),
        });
        let hosted = request.hosted_tools.iter();
        let hosted = hosted.map(|tool| SentTool::Hosted(tool.config()));
        let handoffs = handoffs(&request.handoffs);
        let handoffs = handoffs.map(|function| SentTool::Function(tool(function)));
        let tools: Vec<SentTool<'r, T>> = functions.chain(hosted).chain(handoffs).collect();
        // A prompt at the provider may have tools of its own.
        if tools.is_empty() && request.prompt.is_none() {
            return;
        }
        let settings = &request.settings;
        let choice = settings
            .tool_choice
            .as_ref()
            .and_then(|choice| match choice {
                ToolChoice::Named(_) if tools.is_empty() => None,
                ToolChoice::Named(name) => Some(named(name)),
                other => Some(json!(other)),
            });
        if !tools.is_empty() {
            self.field("tools", &tools);
        }
        self.optional("tool_choice", choice.as_ref());
        self.optional("parallel_tool_calls", settings.parallel_tool_calls.as_ref());
    }

    /// Finishes the object.
    pub(super) fn build(mut self) -> Payload {
        let [first, last] = self.overrides;
        let kept = first.iter().filter(|(name, _)| !last.contains_key(*name));
        for (name, value) in kept.chain(last).filter(|(_, value)| !value.is_null()) {
            if name == RESERVED {
                tracing::warn!(name, "a field of the body cannot be set and is left out");
            } else {
                self.write_field(name, value);
            }
        }
        self.payload.json.push(b'}');
        self.payload
    }

    fn is_overridden(&self, name: &str) -> bool {
        name != RESERVED && self.overrides.iter().any(|map| map.contains_key(name))
    }

    fn write_field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.write_key(name);
        // Values of ours and JSON values always serialize.
        let _ = serde_json::to_writer(&mut self.payload.json, value);
    }

    fn write_key(&mut self, name: &str) {
        if self.payload.json.len() > 1 {
            self.payload.json.push(b',');
        }
        let _ = serde_json::to_writer(&mut self.payload.json, name);
        self.payload.json.push(b':');
    }
}

/// A JSON object of the fields that have a value.
pub(super) fn object<const N: usize>(fields: [(&str, Option<impl Serialize>); N]) -> Value {
    let given = fields.into_iter().filter(|(_, value)| value.is_some());
    json!(BTreeMap::from_iter(given))
}

/// A tool or a handoff, which are both functions to a model.
#[derive(Serialize)]
pub(super) struct FunctionSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) r#type: Option<&'static str>,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a RawValue,
    strict: bool,
}

/// A free-form tool.
#[derive(Serialize)]
struct CustomSpec<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
}

/// An entry of the list of tools.
#[derive(Serialize)]
#[serde(untagged)]
enum SentTool<'a, T> {
    Function(T),
    Custom(CustomSpec<'a>),
    /// A tool that the provider runs, as it was configured.
    Hosted(&'a Value),
}

fn handoffs(handoffs: &[HandoffSpec]) -> impl Iterator<Item = FunctionSpec<'_>> {
    handoffs.iter().map(|handoff| FunctionSpec {
        r#type: None,
        name: &handoff.tool_name,
        description: &handoff.tool_description,
        parameters: &handoff.input_json_schema,
        strict: handoff.strict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::payload::write_unchanged;
    use switchboard_core::Item;

    #[test]
    fn fields_of_the_user_override_ours() {
        let map =
            |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).unwrap() };
        let client = map(json!({"a": 1, "store": false, "stream": false}));
        let settings = map(json!({"a": 2, "input": "x", "user": null}));
        let items = vec![Item::user("x".repeat(500))].into();
        let mut body = RequestBody::new(&items, write_unchanged, [&client, &settings]);
        body.field("model", "m\"");
        body.written("input", |payload| payload.add_items(0, 1, 500));
        body.written("a", |payload| payload.json.push(b'7'));
        body.written("n", |payload| payload.json.push(b'7'));
        body.optional("store", Some(&true));
        body.optional("top_p", None::<&f64>);
        body.number("temperature", Some(f64::NAN));
        body.number("frequency_penalty", Some(0.5));
        body.field("user", "u");
        body.field("stream", &true);
        let text = String::from_utf8(body.build().into_json()).unwrap();
        assert_eq!(
            text,
            r#"{"model":"m\"","n":7,"frequency_penalty":0.5,"stream":true,"store":false,"a":2,"input":"x"}"#
        );
    }
}
