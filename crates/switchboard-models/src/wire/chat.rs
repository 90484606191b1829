//! The Chat Completions API.

#[cfg(fuzzing)]
pub(super) use answer::read;
mod answer;
mod call_outputs;
mod chunk_template;
mod completion;
mod fast_path;
mod messages;
mod parts;
mod request;
mod stream;

use std::fmt;
use std::sync::Arc;

use futures_core::Stream;
use stream::ChunkReader;
use switchboard_core::callback::BoxError;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Model, ModelRequest, ModelResponse};

use super::Protocol;
use super::client::{Call, Client, Path, ResponseHeaders};
use super::error::ModelError;
use super::retry::Repeat;
use super::stream_reader::AnswerStream;

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
    name: Arc<str>,
}

impl ChatModel {
    /// The model with this name at the client's server.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            name: name.into(),
        }
    }
}

impl Protocol for ChatModel {
    type Reader = ChunkReader;

    fn client(&self) -> &Client {
        &self.client
    }

    fn call(&self, request: &ModelRequest, is_streamed: bool) -> Result<Call, ModelError> {
        Ok(Call {
            path: Path::ChatCompletions,
            body: request::body(self, request, is_streamed)?,
            settings: request.settings.clone(),
            repeat: Repeat::Safe,
        })
    }

    fn parse(&self, body: &[u8], headers: &ResponseHeaders) -> Result<ModelResponse, ModelError> {
        answer::read(self, body, headers)
    }

    fn reader(&self) -> ChunkReader {
        ChunkReader::new(self.clone())
    }
}

impl Model for ChatModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        super::respond(self, request).await
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        AnswerStream::new(self, request)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatModel({} at {})", self.name, self.client.server())
    }
}
