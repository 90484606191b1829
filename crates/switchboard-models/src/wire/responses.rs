//! OpenAI Responses.

#[cfg(fuzzing)]
pub(super) use answer::read;
mod answer;
mod request;
mod stream;

use std::fmt;
use std::sync::Arc;

use futures_core::Stream;
use switchboard_core::{BoxError, Model, ModelEvent, ModelRequest, ModelResponse, ServerState};

use super::Answer;
use super::client::{Call, Client, Path};
use super::error::ModelError;
use super::history::OPENAI;
use super::retry::Repeat;
use super::stream_reader::Listening;
use stream::Answering;

/// A model behind OpenAI's Responses API, at OpenAI or at a server that speaks it.
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
    /// Where its reasoning comes from.
    origin: Arc<str>,
}

impl ResponsesModel {
    /// The model of this name.
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

    fn call<'a>(&self, request: &'a ModelRequest, streams: bool) -> Result<Call<'a>, ModelError> {
        let body = request::body(self, request, streams);
        Ok(Call {
            path: Path::Responses,
            body: body.map_err(|error| error.at(self.client.server()))?,
            headers: &request.settings.extra_headers,
            repeat: match &request.server {
                Some(ServerState::Conversation(_)) => Repeat::Stateful,
                _ => Repeat::Safe,
            },
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

impl Model for ResponsesModel {
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
