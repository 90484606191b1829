//! The open calls of earlier responses, for requests that continue them.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::check::calls;
use crate::error::Problem;

/// The calls without an output, by response and by conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls {
    responses: FxHashMap<String, Vec<String>>,
    conversations: FxHashMap<String, Vec<String>>,
}

impl OpenCalls {
    /// The calls of earlier responses that a request must answer.
    pub(crate) fn for_request(&self, body: &Value) -> Result<Vec<String>, Problem> {
        if let Some(id) = body["previous_response_id"].as_str() {
            let open = self.responses.get(id).cloned();
            return open.ok_or_else(|| {
                let message = format!("Previous response with id '{id}' not found.");
                let param = "previous_response_id".to_owned();
                Problem::new("previous_response_not_found", param, message)
            });
        }
        let open = conversation_id(body).and_then(|id| self.conversations.get(id));
        Ok(open.cloned().unwrap_or_default())
    }

    /// Stores the calls of a response. Like OpenAI, it stores nothing if `store` is false.
    pub(crate) fn store(&mut self, body: &Value, id: &str, output: &[Value]) {
        let calls = calls::call_ids(output).map(str::to_owned);
        if let Some(conversation) = conversation_id(body) {
            let open = self
                .conversations
                .entry(conversation.to_owned())
                .or_default();
            let input = body["input"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let answered: Vec<&str> = calls::output_ids(input).collect();
            open.retain(|id| !answered.contains(&id.as_str()));
            open.extend(calls);
        } else if body["store"] != false {
            self.responses.insert(id.to_owned(), calls.collect());
        }
    }
}

fn conversation_id(body: &Value) -> Option<&str> {
    let conversation = &body["conversation"];
    conversation
        .as_str()
        .or_else(|| conversation["id"].as_str())
}
