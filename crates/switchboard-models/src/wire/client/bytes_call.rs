//! Requests whose bodies are bytes, such as those of the audio endpoints and of A2A.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Uri};
use switchboard_core::model::ModelRetry;

use super::{Client, ResponseBody, RetryContext};
use crate::http_client::bytes_body;
use crate::wire::model_error::ModelError;

/// A request with a body of bytes, or without one.
pub(crate) struct BytesCall {
    /// Set if nothing is sent but the address.
    pub(crate) is_get: bool,
    pub(crate) url: Uri,
    pub(crate) content_type: HeaderValue,
    pub(crate) accept: HeaderValue,
    pub(crate) added_header: Option<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl Client {
    /// Sends a request once.
    pub(in crate::wire) async fn send_bytes(
        &self,
        call: &BytesCall,
    ) -> Result<ResponseBody, ModelError> {
        let mut request = self.post(&call.url, bytes_body(call.body.clone()));
        if call.is_get {
            *request.method_mut() = Method::GET;
        }
        let headers = request.headers_mut();
        headers.insert(ACCEPT, call.accept.clone());
        if let Some((name, value)) = &call.added_header {
            headers.insert(name, value.clone());
        }
        if call.is_get {
            headers.remove(CONTENT_TYPE);
        } else {
            headers.insert(CONTENT_TYPE, call.content_type.clone());
        }
        let sent = self.0.http.send(request);
        let response = self.success(sent, &[]).await?;
        let limit = self.0.endpoint.max_response_bytes;
        Ok(ResponseBody::new(response, limit, false))
    }

    /// Fetches a document of JSON, of at most `limit` bytes.
    pub(in crate::wire) async fn get(
        &self,
        url: &Uri,
        limit: usize,
    ) -> Result<ResponseBody, ModelError> {
        let mut request = self.post(url, bytes_body(Bytes::new()));
        *request.method_mut() = Method::GET;
        request.headers_mut().remove(CONTENT_TYPE);
        let response = self.success(self.0.http.send(request), &[]).await?;
        Ok(ResponseBody::new(response, limit, false))
    }

    /// The longest time of one attempt.
    pub(in crate::wire) fn total_timeout(&self) -> Option<Duration> {
        self.0.endpoint.total_timeout
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
