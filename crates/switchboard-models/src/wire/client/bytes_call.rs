//! Requests whose bodies are bytes, such as those of the audio endpoints.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};
use switchboard_core::model::ModelRetry;

use super::{Client, ResponseBody, RetryContext};
use crate::wire::model_error::ModelError;

/// A request with a body of bytes.
pub(crate) struct BytesCall {
    pub(crate) url: Arc<Url>,
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
        let mut request = Request::new(Method::POST, Url::clone(&call.url));
        *request.headers_mut() = self.0.template.headers().clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, call.content_type.clone());
        headers.insert(ACCEPT, call.accept.clone());
        *request.body_mut() = Some(call.body.clone().into());
        let sent = self.0.http.execute(request);
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
