//! The HTTP client: sends requests and reads their responses.

mod bytes_call;
mod connection_settings;
mod event_stream;
mod response_body;
mod response_headers;
mod tls;
mod transport_error;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub(crate) use bytes_call::BytesCall;
pub(crate) use connection_settings::{display_address, is_openai, parse_address};
use connection_settings::{display_target, display_url};
pub(crate) use event_stream::Events;
use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use http::{Method, Request, Uri};
pub(crate) use response_body::ResponseBody;
pub(crate) use response_headers::ResponseHeaders;
use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelFailure, ModelRetry, ServerState};
use switchboard_core::{ModelRequest, ModelResponse, ModelSettings};
use transport_error::transport_error;
use url::Url;

use crate::http_client::{
    HttpClient, HttpError, HttpResponse, HttpSettings, Proxies, RequestBody, TimeLimits,
};
use crate::wire::endpoint::Endpoint;
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::payload::Payload;
use crate::wire::secret::{Secret, endpoint_secrets, request_secrets};
use crate::wire::{Protocol, retry_advice, server_errors};

/// The number of bytes read of the body of a non-2xx response.
const MAX_ERROR_BODY: usize = 64 << 10;

/// The longest wait for the body of a non-2xx response.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of one server. It keeps a pool of connections, which clones share.
///
/// Made by [`Endpoint::connect`].
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: HttpClient,
    /// The server's address, without user name and password.
    base: Url,
    /// The headers of every request.
    headers: HeaderMap,
    /// The server's name in errors: scheme, host and port.
    server: String,
    endpoint: Endpoint,
    secrets: Vec<Secret>,
    is_openai: bool,
}

/// One request.
pub(crate) struct Call {
    url: Uri,
    body: Arc<Payload>,
    is_streamed: bool,
    /// The request's settings, for its extra headers and retries.
    settings: Arc<ModelSettings>,
    server: Option<ServerState>,
    /// The secrets of the request itself.
    secrets: Vec<Secret>,
}

impl Call {
    /// The HTTP request for a model request.
    pub(in crate::wire) fn new(
        model: &impl Protocol,
        request: &ModelRequest,
        is_streamed: bool,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            url: model.url().clone(),
            body: Arc::new(model.body(request, is_streamed)?),
            is_streamed,
            settings: request.settings.clone(),
            server: request.server.clone(),
            secrets: request_secrets(request),
        })
    }
}

/// The parts of a request that decide on its retries.
#[derive(Default)]
struct RetryContext<'a> {
    is_streamed: bool,
    /// Set if the run retries the request by its own settings.
    is_retried_by_run: bool,
    server: Option<&'a ServerState>,
    secrets: &'a [Secret],
}

/// The response to a request for a stream.
pub(crate) enum Opened {
    Events(Box<Events>),
    /// The whole answer, from a server that does not stream.
    Whole(ModelResponse),
}

/// Settings of an HTTP client that trusts the system's certificates and uses no proxy.
///
/// # Errors
/// If TLS cannot be set up.
pub fn direct_http_settings() -> Result<HttpSettings, ModelError> {
    Ok(HttpSettings {
        tls: tls::config(None)?,
        proxies: Proxies::None,
        connect_timeout: None,
        limits: TimeLimits::default(),
    })
}

impl Client {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, ModelError> {
        let server = display_address(&endpoint.base_url);
        let configuration = |message: String| {
            ModelError::configuration(message).with(|error| error.server = server.clone())
        };
        let mut base = connection_settings::parse_address(&endpoint.base_url)
            .map_err(ModelError::configuration)?;
        let proxies = match &endpoint.proxy {
            Some(proxy) => {
                Proxies::At(connection_settings::proxy(proxy.expose()).map_err(configuration)?)
            }
            None => Proxies::System,
        };
        let http = HttpClient::new(HttpSettings {
            tls: tls::config(endpoint.certificates.as_deref())?,
            proxies,
            connect_timeout: Some(endpoint.connect_timeout),
            limits: TimeLimits {
                read: Some(endpoint.read_timeout),
                total: endpoint.total_timeout,
            },
        });
        let is_openai = is_openai(&base);
        let secrets = endpoint_secrets(endpoint, &base);
        let authorization = connection_settings::take_credentials(&mut base);
        let headers =
            connection_settings::headers(endpoint, authorization).map_err(configuration)?;
        Ok(Self(Arc::new(Inner {
            http,
            base,
            headers,
            is_openai,
            secrets,
            server,
            endpoint: endpoint.clone(),
        })))
    }

    /// Returns `true` for OpenAI itself, not for compatible servers.
    pub(crate) fn is_openai(&self) -> bool {
        self.0.is_openai
    }

    /// The server's name in errors and origins: scheme, host and port.
    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    /// The address of requests to this path.
    pub(crate) fn url(&self, path: &str) -> Uri {
        connection_settings::request_uri(&self.0.base, path).unwrap_or_default()
    }

    /// Extra fields of every request's body.
    pub(crate) fn body_fields(&self) -> &BTreeMap<String, Value> {
        &self.0.endpoint.body
    }

    /// Sends a request, with retries, and parses the whole answer.
    pub(in crate::wire) async fn fetch(
        &self,
        model: &impl Protocol,
        call: &Call,
    ) -> Result<ModelResponse, ModelError> {
        let mut attempt = 1;
        loop {
            let answer = async {
                let mut body = self.send(call).await?;
                let answer = body.read_whole(model, Bytes::new()).await;
                answer.map_err(|error| error.with_headers(body.headers()))
            };
            let retry = match answer.await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.plan_retry(error, call, attempt)?,
            };
            tokio::time::sleep(retry.delay).await;
            attempt = retry.attempt;
        }
    }

    /// Sends a request for a stream once and reads up to the first event. If that event reports a
    /// failure it is the error, so that the request can still be retried.
    pub(in crate::wire) async fn open(
        &self,
        model: &impl Protocol,
        call: &Call,
    ) -> Result<Opened, ModelError> {
        let body = self.send(call).await?;
        let headers = body.headers();
        let opened = body.read_first(model, &self.0.secrets).await;
        opened.map_err(|error| error.with_headers(headers))
    }

    /// The retry after a failed attempt, or the error if the request is not to be retried. Where the
    /// request has settings for retries, the run retries it.
    pub(crate) fn plan_retry(
        &self,
        error: ModelError,
        call: &Call,
        attempt: u32,
    ) -> Result<ModelRetry, ModelError> {
        let error = error.with(|error| error.server = display_url(&call.url));
        let context = RetryContext {
            is_streamed: call.is_streamed,
            is_retried_by_run: call.settings.retry.is_some(),
            server: call.server.as_ref(),
            secrets: &call.secrets,
        };
        self.retry(error, attempt, &context)
    }

    fn retry(
        &self,
        error: ModelError,
        attempt: u32,
        context: &RetryContext<'_>,
    ) -> Result<ModelRetry, ModelError> {
        let error = self.complete_error(error, context.secrets);
        let advice = retry_advice::advice(&error, context.server);
        let mut failure = ModelFailure::new(&error, advice);
        failure.attempt = attempt;
        failure.is_streamed = context.is_streamed;
        failure.server = context.server;
        let delay = if context.is_retried_by_run {
            None
        } else {
            self.0.endpoint.retries.delay(&failure)
        };
        let Some(delay) = delay else {
            return Err(error.with(|error| error.attempts = attempt));
        };
        tracing::warn!(%error, attempt, ?delay, "a model request failed and is retried");
        Ok(ModelRetry::new(attempt + 1, delay, error.to_string()))
    }

    /// The HTTP request for one attempt.
    fn request(&self, call: &Call) -> Result<Request<RequestBody>, ModelError> {
        let mut request = self.post(&call.url, call.body.body());
        if call.is_streamed {
            let accept = HeaderValue::from_static("text/event-stream");
            request.headers_mut().insert(ACCEPT, accept);
        }
        for (name, value) in &call.settings.extra_headers {
            connection_settings::add_header(request.headers_mut(), name, value)
                .map_err(ModelError::configuration)?;
        }
        Ok(request)
    }

    /// A request with the headers of every request.
    fn post(&self, url: &Uri, body: RequestBody) -> Request<RequestBody> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = self.0.headers.clone();
        request
    }

    async fn send(&self, call: &Call) -> Result<ResponseBody, ModelError> {
        let sent = self.0.http.send(self.request(call)?);
        let response = self.success(sent, &call.secrets).await?;
        let limit = self.0.endpoint.max_response_bytes;
        let keeps_raw_usage = call.settings.preserve_raw_usage == Some(true);
        Ok(ResponseBody::new(response, limit, keeps_raw_usage))
    }

    /// Awaits the response to a request that is sent. A non-2xx response is an error.
    ///
    /// Takes the client's future and not the request, which is large and would be part of this future.
    async fn success(
        &self,
        sent: impl Future<Output = Result<HttpResponse, HttpError>>,
        secrets: &[Secret],
    ) -> Result<HttpResponse, ModelError> {
        let response = sent.await.map_err(|error| transport_error(error, false))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let headers = ResponseHeaders::parse(response.headers());
        // Boxed to keep the future of a request that succeeds small.
        let error = Box::pin(self.status_error(response, secrets)).await;
        Err(error.with_headers(headers))
    }

    /// The error for a non-2xx response.
    async fn status_error(&self, mut response: HttpResponse, secrets: &[Secret]) -> ModelError {
        let status = response.status();
        if status.is_redirection()
            && let Some(location) = response.headers().get(LOCATION)
            && let Ok(location) = location.to_str()
            && let Ok(target) = self.0.base.join(location)
        {
            let target = display_target(&target);
            let message = format!("the server redirects to {target}, which is not followed");
            return ModelError::new(ModelErrorKind::Redirect, message)
                .with(|error| error.status = Some(status.as_u16()));
        }
        // Read errors and the timeout are ignored: the bytes that have come are quoted.
        let mut body = Vec::new();
        let read = async {
            while body.len() < MAX_ERROR_BODY
                && let Ok(Some(bytes)) = response.chunk().await
            {
                body.extend_from_slice(&bytes);
            }
        };
        let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
        body.truncate(MAX_ERROR_BODY);
        let secrets = [secrets, &*self.0.secrets].concat();
        server_errors::from_status(status.as_u16(), &body, &secrets)
    }

    /// Completes the error of a request and adds its usage to that of the run.
    pub(crate) fn report(&self, error: ModelError, request: &ModelRequest, url: &Uri) -> BoxError {
        if let Some(usage) = error.usage() {
            request.add_usage(usage);
        }
        let error = error.with(|error| {
            error.earlier_attempts = request.earlier_attempts();
            error.server = display_url(url);
        });
        self.complete_error(error, &request_secrets(request)).into()
    }

    /// Adds the server to an error that does not name it, and removes secrets from it.
    fn complete_error(&self, error: ModelError, secrets: &[Secret]) -> ModelError {
        let error = error.with(|error| {
            if error.server.is_empty() {
                error.server = self.0.server.clone();
            }
            error.key_variable = self.0.endpoint.key_variable.clone();
        });
        error.scrubbed(&self.0.secrets).scrubbed(secrets)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.server)
    }
}

#[cfg(test)]
mod tests {
    use fake_provider::FakeProvider;
    use switchboard_core::Item;
    use switchboard_core::items::Items;

    use super::*;
    use crate::ResponsesModel;
    use crate::wire::payload::write_unchanged;

    #[tokio::test]
    async fn a_request_of_a_wrong_length_is_not_retried() {
        let provider = FakeProvider::start().await.unwrap();
        let client = Endpoint::at(provider.url()).key("k").connect().unwrap();
        let model = ResponsesModel::new(&client, "m");
        let items: Items = vec![Item::user("Hi")].into();
        let length = items[0].as_json().len();
        for stated in [length - 1, length + 1] {
            let mut payload = Payload::new(&items, write_unchanged);
            payload.add_items(0, 1, stated);
            let call = Call {
                url: model.url().clone(),
                body: Arc::new(payload),
                is_streamed: false,
                settings: Arc::default(),
                server: None,
                secrets: Vec::new(),
            };
            let failed = client.fetch(&model, &call).await.unwrap_err();
            assert_eq!(failed.kind(), ModelErrorKind::Unsupported, "{failed}");
            assert_eq!(failed.attempts(), 1);
            assert!(failed.to_string().contains("please report it"), "{failed}");
        }
        assert!(provider.requests().is_empty());
    }
}
