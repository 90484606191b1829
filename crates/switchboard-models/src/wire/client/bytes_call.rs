//! Requests whose bodies are bytes, such as those of the audio endpoints.

use bytes::Bytes;
use http::Uri;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use switchboard_core::model::ModelRetry;

use super::{Client, ResponseBody, RetryContext};
use crate::http_client::bytes_body;
use crate::wire::model_error::ModelError;

/// A request with a body of bytes.
pub(crate) struct BytesCall {
    pub(crate) url: Uri,
    pub(crate) content_type: HeaderValue,
    pub(crate) accept: HeaderValue,
    pub(crate) body: Bytes,
}

impl Client {
    /// Sends a request once.
    pub(in crate::wire) async fn send_bytes(
        &self,
        call: &BytesCall,
    ) -> Result<ResponseBody, ModelError> {
        let mut request = self.post(&call.url, bytes_body(call.body.clone()));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, call.content_type.clone());
        headers.insert(ACCEPT, call.accept.clone());
        let sent = self.0.http.send(request);
        let response = self.success(sent, &[]).await?;
        let limit = self.0.endpoint.max_response_bytes;
        Ok(ResponseBody::new(response, limit, false))
    }

    /// Adds the server to an error and removes secrets from it.
    pub(in crate::wire) fn complete(&self, error: ModelError) -> ModelError {
        self.complete_error(error, &[])
    }

    /// The retry after a failed attempt, or the error if the request is not to be retried.
    pub(in crate::wire) fn plan_bytes_retry(
        &self,
        error: ModelError,
        attempt: u32,
    ) -> Result<ModelRetry, ModelError> {
        self.retry(error, attempt, &RetryContext::default())
    }
}
