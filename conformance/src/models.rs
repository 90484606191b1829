//! Where a scenario's model comes from, and what it was asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::Stream;
use serde_json::Value;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    BoxError, Item, Model, ModelEvent, ModelHandle, ModelRequest, ModelResponse,
};

use crate::types::Answer;
use crate::wire::Wire;

/// Where the models of scenarios come from.
pub(crate) enum Models {
    /// They answer from the script in this process.
    Scripted,
    /// They are clients of a provider that answers from the script.
    Wire(Wire),
}

impl Models {
    /// A model that follows the script. `key` is the name of this one run of the case.
    pub(crate) fn model(&self, script: &[Answer], key: &str) -> Result<Recorded, String> {
        let model = match self {
            Self::Scripted => scripted(script)?.into(),
            Self::Wire(wire) => wire.model(script, key)?,
        };
        Ok(Recorded::new(model))
    }
}

fn scripted(script: &[Answer]) -> Result<ScriptedModel, String> {
    let mut model = ScriptedModel::new();
    for answer in script {
        model = match answer.said()? {
            Err(error) => model.fail(error),
            Ok(output) => {
                let items = output.iter().map(Item::from_value);
                let items: Result<Vec<Item>, _> = items.collect();
                model.respond_with(ModelResponse::new(
                    items.map_err(|error| error.to_string())?,
                ))
            }
        };
    }
    Ok(model)
}

impl Answer {
    /// The items of the answer, or the error.
    pub(crate) fn said(&self) -> Result<Result<Vec<Value>, &str>, String> {
        match (&self.output, &self.error) {
            (_, Some(error)) => Ok(Err(error)),
            (Some(output), None) => Ok(Ok(output.iter().map(in_type_order).collect())),
            (None, None) => Err("an answer must have an output or an error".to_owned()),
        }
    }
}

/// The reference reads a model's answer into types, which write their fields in their own order.
/// That shows where a nested record is read back in pieces.
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
            let all = first.chain(rest);
            Value::Object(
                all.map(|(name, value)| (name.clone(), in_type_order(value)))
                    .collect(),
            )
        }
        Value::Array(list) => list.iter().map(in_type_order).collect(),
        other => other.clone(),
    }
}

/// A model that keeps what it is asked.
#[derive(Clone)]
pub(crate) struct Recorded {
    model: ModelHandle,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Recorded {
    fn new(model: ModelHandle) -> Self {
        let requests = Arc::default();
        Self { model, requests }
    }

    /// What it was asked, call by call.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.noted().clone()
    }

    fn noted(&self) -> MutexGuard<'_, Vec<ModelRequest>> {
        // Nothing panics while the lock is held.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Recorded {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.noted().push(request.clone());
        self.model.respond(request).await
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        self.noted().push(request.clone());
        self.model.stream(request)
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}
