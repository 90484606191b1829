//! Models over HTTP.

mod chat;
mod client;
mod endpoint;
mod error;
mod error_body;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lenient;
mod payload;
mod request_cache;
mod request_object;
mod responses;
mod retry;
mod secret;
mod sse;
mod stream_reader;

pub use chat::ChatModel;
use client::{Call, ResponseHeaders};
pub use client::{Client, http_client_builder};
pub use endpoint::Endpoint;
pub use error::{ModelError, ModelErrorKind, RateLimits};
pub use responses::ResponsesModel;
use stream_reader::EventReader;
use switchboard_core::callback::BoxError;
use switchboard_core::{ModelRequest, ModelResponse};

/// The message of an error for a stream that ended before its answer did.
const BROKE_OFF: &str = "the answer broke off before its end";

/// A model of one of the protocols.
trait Protocol: Clone + Unpin + Send + Sync + 'static {
    /// Reads the events of a streamed answer.
    type Reader: EventReader;

    fn client(&self) -> &Client;

    /// The HTTP request for a model request.
    fn call(&self, request: &ModelRequest, is_streamed: bool) -> Result<Call, ModelError>;

    /// Parses the body of an answer that is not streamed.
    fn parse(&self, body: &[u8], headers: &ResponseHeaders) -> Result<ModelResponse, ModelError>;

    fn reader(&self) -> Self::Reader;
}

async fn respond(model: &impl Protocol, request: ModelRequest) -> Result<ModelResponse, BoxError> {
    let answer = match model.call(&request, false) {
        Ok(call) => model.client().fetch(model, &call).await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| report(model, &request, error))
}

/// Completes the error of a request and adds its usage to that of the run.
fn report(model: &impl Protocol, request: &ModelRequest, error: ModelError) -> BoxError {
    if let Some(usage) = error.usage() {
        request.add_usage(usage);
    }
    let client = model.client();
    client.complete_error(error, &request.settings).into()
}

/// The `id` of items whose provider gave none.
const PLACEHOLDER_ID: &str = "__fake_id__";

/// Returns `true` if the item is a message with this role.
fn has_role(item: &switchboard_core::Item, role: &str) -> bool {
    item.role().as_deref() == Some(role)
}
