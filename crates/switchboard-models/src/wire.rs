//! Models over HTTP.

mod a2a;
mod answer_stream;
mod audio;
mod chat;
mod client;
mod endpoint;
mod error_causes;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lenient_json;
mod model_error;
mod payload;
mod request_body;
mod request_cache;
mod responses;
mod retry_advice;
mod secret;
mod server_errors;
mod sse;

use std::borrow::Cow;

pub use a2a::{AgentCard, RemoteAgent};
use answer_stream::{EventReader, answer_stream};
pub use audio::{SpeechModel, TranscriptionModel};
pub use chat::ChatModel;
use client::Call;
pub use client::{Client, direct_http_settings};
pub use endpoint::Endpoint;
use futures_core::Stream;
use http::Uri;
pub use model_error::{ModelError, ModelErrorKind, RateLimits};
use payload::Payload;
pub use responses::ResponsesModel;
use switchboard_core::callback::{BoxError, DynError};
use switchboard_core::model::{ModelEvent, RetryAdvice, ToolKind};
use switchboard_core::{Item, Model, ModelRequest, ModelResponse};

/// A model of one of the protocols.
trait Protocol: Clone + Send + Sync + 'static {
    /// Reads the events of a streamed answer.
    type Reader: EventReader;

    fn client(&self) -> &Client;

    /// The address of requests.
    fn url(&self) -> &Uri;

    /// The body of a request.
    fn body(&self, request: &ModelRequest, is_streamed: bool) -> Result<Payload, ModelError>;

    /// Parses the body of an answer that is not streamed.
    fn parse(&self, body: &str) -> Result<ModelResponse, ModelError>;

    /// A reader of one answer, which keeps the usage as the server sent it where that is wanted.
    fn reader(&self, keeps_raw_usage: bool) -> Self::Reader;
}

async fn respond(model: &impl Protocol, request: &ModelRequest) -> Result<ModelResponse, BoxError> {
    let answer = match Call::new(model, request, false) {
        Ok(call) => model.client().fetch(model, &call).await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| model.client().report(error, request, model.url()))
}

/// Implements a model with the fields `client` and `name` over its [`Protocol`].
macro_rules! impl_model {
    ($model:ident, accepts $($kind:ident)|+) => {
        impl super::Model for $model {
            async fn respond(
                &self,
                request: super::ModelRequest,
            ) -> Result<super::ModelResponse, super::BoxError> {
                super::respond(self, &request).await
            }

            fn stream(
                &self,
                request: super::ModelRequest,
            ) -> impl super::Stream<Item = Result<super::ModelEvent, super::BoxError>> + Send {
                super::answer_stream(self, request)
            }

            fn retry_advice(
                &self,
                error: &super::DynError,
                request: &super::ModelRequest,
            ) -> super::RetryAdvice {
                super::retry_advice(error, request)
            }

            fn name(&self) -> &str {
                &self.name
            }

            fn accepts_tools(&self, kind: super::ToolKind) -> bool {
                matches!(kind, $(super::ToolKind::$kind)|+)
            }
        }

        impl std::fmt::Debug for $model {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let server = self.client.server();
                write!(f, "{}({} at {server})", stringify!($model), self.name)
            }
        }
    };
}
use impl_model;

fn retry_advice(error: &DynError, request: &ModelRequest) -> RetryAdvice {
    match error.downcast_ref::<ModelError>() {
        Some(error) => retry_advice::advice(error, request.server.as_ref()),
        None => RetryAdvice::of_error(error),
    }
}

/// The `id` of items whose provider gave none.
const PLACEHOLDER_ID: &str = "__fake_id__";

/// The `id` that an item's provider gave it.
fn own_id(item: &Item) -> Option<Cow<'_, str>> {
    item.id()
        .filter(|id| !id.is_empty() && id != PLACEHOLDER_ID)
}

/// Returns `true` if the item is a message with this role.
fn has_role(item: &Item, role: &str) -> bool {
    item.role().as_deref() == Some(role)
}
