//! What the provider remembers for requests that build on earlier ones.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::check::calls;
use crate::error::Problem;

/// The calls that wait for an output, by the response or the conversation they are in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    responses: FxHashMap<String, Vec<String>>,
    conversations: FxHashMap<String, Vec<String>>,
}

impl Memory {
    /// The calls that a request may and must answer beside those it holds itself.
    pub(crate) fn open_calls(&self, body: &Value) -> Result<Vec<String>, Problem> {
        if let Some(id) = body["previous_response_id"].as_str() {
            let open = self.responses.get(id).cloned();
            return open.ok_or_else(|| {
                let message = format!("Previous response with id '{id}' not found.");
                let param = "previous_response_id".to_owned();
                Problem::new("previous_response_not_found", param, message)
            });
        }
        let known = conversation_id(body).and_then(|id| self.conversations.get(id));
        Ok(known.cloned().unwrap_or_default())
    }

    /// Remembers what was answered. As with OpenAI, nothing is kept of a response that was not to be
    /// stored.
    pub(crate) fn keep(&mut self, body: &Value, id: &str, output: &[Value]) {
        let made = calls::call_ids(output).map(str::to_owned);
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
            open.extend(made);
        } else if body["store"] != false {
            self.responses.insert(id.to_owned(), made.collect());
        }
    }
}

fn conversation_id(body: &Value) -> Option<&str> {
    let conversation = &body["conversation"];
    conversation
        .as_str()
        .or_else(|| conversation["id"].as_str())
}
