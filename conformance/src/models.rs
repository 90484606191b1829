//! The models of scenarios, and a record of their requests.

use std::sync::{Arc, Mutex};

use futures_core::Stream;
use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelEvent, ModelHandle, ToolKind, Usage};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Item, Model, ModelRequest, ModelResponse};

use crate::case::ScriptedReply;
use crate::lock::lock;
use crate::wire::Wire;

/// The kind of model that scenarios run with.
pub(crate) enum ModelSource {
    /// Models that reply from the script in this process.
    Scripted,
    /// HTTP clients of a provider that replies from the script.
    Wire(Wire),
}

impl ModelSource {
    /// A model that follows the script. `key` identifies this run of the case.
    pub(crate) fn model(
        &self,
        script: &[ScriptedReply],
        key: &str,
    ) -> Result<RecordingModel, String> {
        let model = match self {
            Self::Scripted => scripted(script)?.into(),
            Self::Wire(wire) => wire.model(script, key)?,
        };
        Ok(RecordingModel::new(model))
    }
}

fn scripted(script: &[ScriptedReply]) -> Result<ScriptedModel, String> {
    let mut model = ScriptedModel::new();
    for reply in script {
        model = match reply.response()? {
            Err(error) => model.fail(&error),
            Ok(response) => model.respond_with(response),
        };
    }
    Ok(model)
}

impl ScriptedReply {
    /// The output items, or the error that the model replies with. The outer error is a reply that has
    /// neither.
    pub(crate) fn output(&self) -> Result<Result<Vec<Value>, &str>, String> {
        match (&self.output, &self.error) {
            (_, Some(error)) => Ok(Err(error)),
            (Some(output), None) => Ok(Ok(output.iter().map(in_type_order).collect())),
            (None, None) => Err("an answer must have an output or an error".to_owned()),
        }
    }

    /// The response, or the error that the model replies with. The outer error is an invalid reply.
    pub(crate) fn response(&self) -> Result<Result<ModelResponse, String>, String> {
        let output = match self.output()? {
            Err(error) => return Ok(Err(error.to_owned())),
            Ok(output) => output,
        };
        let items = output
            .iter()
            .map(Item::from_value)
            .collect::<Result<_, _>>();
        let items: Vec<Item> = items.map_err(|error| error.to_string())?;
        let mut response = ModelResponse::new(items).usage(Usage {
            requests: 1,
            input_tokens: self.usage.input,
            cached_tokens: self.usage.cached,
            output_tokens: self.usage.output,
            reasoning_tokens: self.usage.reasoning,
            ..Usage::default()
        });
        response.response_id = self.response_id.as_deref().map(Into::into);
        Ok(Ok(response))
    }
}

/// Orders the fields as the reference does: it parses the output into types and serializes them again.
/// The order is visible in nested history.
fn in_type_order(item: &Value) -> Value {
    let order: &[&str] = match item["type"].as_str().unwrap_or_default() {
        "message" => &["id", "content", "role", "status", "type"],
        "output_text" => &["annotations", "text", "type", "logprobs"],
        "refusal" => &["refusal", "type"],
        "function_call" => &["arguments", "call_id", "name", "type", "id"],
        "reasoning" => &[
            "id",
            "summary",
            "type",
            "content",
            "encrypted_content",
            "status",
        ],
        "summary_text" => &["text", "type"],
        _ => &[],
    };
    match item {
        Value::Object(fields) => {
            let first = order.iter().filter_map(|name| fields.get_key_value(*name));
            let rest = fields
                .iter()
                .filter(|(name, _)| !order.contains(&name.as_str()));
            first
                .chain(rest)
                .map(|(name, value)| (name.clone(), in_type_order(value)))
                .collect()
        }
        Value::Array(list) => list.iter().map(in_type_order).collect(),
        other => other.clone(),
    }
}

/// A model that records its requests.
#[derive(Clone)]
pub(crate) struct RecordingModel {
    model: ModelHandle,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl RecordingModel {
    fn new(model: ModelHandle) -> Self {
        Self {
            model,
            requests: Arc::default(),
        }
    }

    /// The requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }
}

impl Model for RecordingModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        lock(&self.requests).push(request.clone());
        self.model.respond(request).await
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        lock(&self.requests).push(request.clone());
        self.model.stream(request)
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn accepts_tools(&self, kind: ToolKind) -> bool {
        self.model.accepts_tools(kind)
    }
}
