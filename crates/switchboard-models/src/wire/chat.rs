//! OpenAI Chat Completions.

#[cfg(fuzzing)]
pub(super) use answer::read;
mod answer;
mod completion;
mod fast_path;
mod messages;
mod outputs;
mod parts;
mod request;
mod stream;

use std::fmt;
use std::sync::Arc;

use futures_core::Stream;
use stream::Answering;
use switchboard_core::{BoxError, Model, ModelEvent, ModelRequest, ModelResponse};

use super::Answer;
use super::client::{Call, Client, Path};
use super::error::ModelError;
use super::retry::Repeat;
use super::stream_reader::Listening;

/// A model behind OpenAI's Chat Completions API, which most servers speak: Ollama, vLLM, llama.cpp,
/// gateways.
///
/// The protocol has no place for reasoning of earlier answers and for what a provider's own tools
/// did; these stay behind when a conversation is sent. Calls of tools other than functions are sent
/// as calls of functions.
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
    /// The model of this name.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            name: name.into(),
        }
    }

    fn call<'a>(&self, request: &'a ModelRequest, streams: bool) -> Result<Call<'a>, ModelError> {
        let body = request::body(self, request, streams);
        Ok(Call {
            path: Path::ChatCompletions,
            body: body.map_err(|error| error.at(self.client.server()))?,
            headers: &request.settings.extra_headers,
            repeat: Repeat::Safe,
        })
    }

    async fn open(
        &self,
        request: &ModelRequest,
    ) -> Result<Answer<Listening<Answering>>, ModelError> {
        let read = |body: &[u8], head: &_| answer::read(self, body, head);
        let opened = self.client.open(self.call(request, true)?, read).await?;
        Ok(Answer::new(opened, |events| {
            Listening::new(events, Answering::new(self.clone()))
        }))
    }
}

impl Model for ChatModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let read = |body: &[u8], head: &_| answer::read(self, body, head);
        let answer = self.client.fetch(self.call(&request, false)?, read).await;
        answer.map_err(|error| super::failed(&request, error))
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let model = self.clone();
        super::pieces(request, |request| async move { model.open(&request).await })
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
