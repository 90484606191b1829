//! The Responses API.

#[cfg(any(test, fuzzing))]
pub(super) use answer::read;
mod answer;
mod event_reader;
mod input_sanitizer;
mod request;

use std::sync::Arc;

use http::Uri;
use switchboard_core::{ModelRequest, ModelResponse};

use super::client::Client;
use super::model_error::ModelError;
use super::payload::Payload;
use super::{Protocol, impl_model};
use event_reader::ResponseReader;
use input_sanitizer::OPENAI;
pub(super) use input_sanitizer::UnchangedItems;

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
    /// The address of requests.
    url: Uri,
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
            url: client.url("responses"),
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

    fn url(&self) -> &Uri {
        &self.url
    }

    fn body(&self, request: &ModelRequest, is_streamed: bool) -> Result<Payload, ModelError> {
        request::body(self, request, is_streamed)
    }

    fn parse(&self, body: &str) -> Result<ModelResponse, ModelError> {
        answer::read(&self.origin, body)
    }

    fn reader(&self, keeps_raw_usage: bool) -> ResponseReader {
        ResponseReader::new(self.origin.clone(), keeps_raw_usage)
    }
}

impl_model!(ResponsesModel, accepts Function | Text | Hosted);
