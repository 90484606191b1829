//! The Responses API.

#[cfg(fuzzing)]
pub(super) use answer::read;
mod answer;
mod input;
mod request;
mod stream;

use std::fmt;
use std::sync::Arc;

use futures_core::Stream;
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelEvent, ServerState};
use switchboard_core::{Model, ModelRequest, ModelResponse};

use super::Protocol;
use super::client::{Call, Client, Path, ResponseHeaders};
use super::error::ModelError;
use super::retry::Repeat;
use super::stream_reader::AnswerStream;
use input::OPENAI;
pub(super) use input::UnchangedItems;
use stream::ResponseReader;

/// A model over the Responses API, at OpenAI or at a compatible server.
///
/// ```no_run
/// use switchboard_core::{Agent, Runner};
/// use switchboard_models::{Endpoint, ResponsesModel};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let openai = Endpoint::from_env().connect()?;
/// let agent: Agent = Agent::new("Helper").model(ResponsesModel::new(&openai, "gpt-5.2"));
/// println!("{}", Runner::new(&agent).run("Hi").await?.final_text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ResponsesModel {
    client: Client,
    name: Arc<str>,
    /// The origin that its reasoning items are marked with.
    origin: Arc<str>,
}

impl ResponsesModel {
    /// The model with this name at the client's server.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let origin = if client.is_openai() {
            OPENAI.into()
        } else {
            format!("{}/{name}", client.server()).into()
        };
        Self {
            client: client.clone(),
            name,
            origin,
        }
    }
}

impl Protocol for ResponsesModel {
    type Reader = ResponseReader;

    fn client(&self) -> &Client {
        &self.client
    }

    fn call(&self, request: &ModelRequest, is_streamed: bool) -> Result<Call, ModelError> {
        Ok(Call {
            path: Path::Responses,
            body: request::body(self, request, is_streamed)?,
            settings: request.settings.clone(),
            repeat: match &request.server {
                Some(ServerState::Conversation(_)) => Repeat::Stateful,
                _ => Repeat::Safe,
            },
        })
    }

    fn parse(&self, body: &[u8], headers: &ResponseHeaders) -> Result<ModelResponse, ModelError> {
        answer::read(self, body, headers)
    }

    fn reader(&self) -> ResponseReader {
        ResponseReader::new(self.clone())
    }
}

impl Model for ResponsesModel {
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

impl fmt::Debug for ResponsesModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ResponsesModel({} at {})",
            self.name,
            self.client.server()
        )
    }
}
