//! The Chat Completions API.

#[cfg(any(test, fuzzing))]
pub(super) use answer::read;
mod answer;
mod call_outputs;
mod chunk_reader;
mod chunk_template;
mod completion_fields;
mod content_parts;
mod copied_message;
mod messages;
mod request;

use std::sync::Arc;

use chunk_reader::ChunkReader;
use http::Uri;
use switchboard_core::{ModelRequest, ModelResponse};

use super::client::Client;
use super::model_error::ModelError;
use super::payload::Payload;
use super::{Protocol, impl_model};

/// A model over the Chat Completions API of OpenAI, which most servers offer: Ollama, vLLM,
/// llama.cpp, gateways.
///
/// The protocol has no form for the reasoning of earlier answers and for the calls of a provider's
/// own tools; they are left out when a conversation is sent. Calls of tools other than functions are
/// sent as function calls.
///
/// ```no_run
/// use switchboard_core::{Agent, Runner};
/// use switchboard_models::{ChatModel, Endpoint};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let ollama = Endpoint::at("http://localhost:11434/v1").connect()?;
/// let agent: Agent = Agent::new("Helper").model(ChatModel::new(&ollama, "llama3.1"));
/// println!("{}", Runner::new(&agent).run("Hi").await?.final_text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ChatModel {
    client: Client,
    /// The address of requests.
    url: Uri,
    name: Arc<str>,
}

impl ChatModel {
    /// The model with this name at the client's server.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            url: client.url("chat/completions"),
            name: name.into(),
        }
    }
}

impl Protocol for ChatModel {
    type Reader = ChunkReader;

    fn client(&self) -> &Client {
        &self.client
    }

    fn url(&self) -> &Uri {
        &self.url
    }

    fn body(&self, request: &ModelRequest, is_streamed: bool) -> Result<Payload, ModelError> {
        request::body(self, request, is_streamed)
    }

    fn parse(&self, body: &str) -> Result<ModelResponse, ModelError> {
        answer::read(&self.name, body)
    }

    fn reader(&self, keeps_raw_usage: bool) -> ChunkReader {
        ChunkReader::new(self.name.clone(), keeps_raw_usage)
    }
}

impl_model!(ChatModel, accepts Function);
