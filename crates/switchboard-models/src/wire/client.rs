//! The HTTP client: sends requests and reads their responses.

mod events;
mod requests;
mod response_headers;
mod setup;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use events::Events;
pub(crate) use requests::Path;
use requests::{AnswerForm, RequestTemplates};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
pub(crate) use response_headers::ResponseHeaders;
#[cfg(fuzzing)]
pub(crate) use response_headers::parse_as_any_header;
use serde_json::Value;
pub(crate) use setup::{display_address, is_openai};
use switchboard_core::model::ModelRetry;
use switchboard_core::{ModelResponse, ModelSettings};

use crate::wire::Protocol;
use crate::wire::endpoint::Endpoint;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::payload::{Payload, WrongLength};
use crate::wire::retry::{self, Repeat};
use crate::wire::secret::Secret;

/// Some servers send it before a body.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    http: reqwest::Client,
    base: Url,
    /// The server's name in errors: scheme, host and port.
    server: String,
    templates: RequestTemplates,
    body_fields: BTreeMap<String, Value>,
    secrets: Vec<Secret>,
    max_retries: u32,
    max_response_bytes: usize,
    is_openai: bool,
}

/// One request.
pub(crate) struct Call {
    pub(crate) path: Path,
    pub(crate) body: Payload,
    /// The request's settings, for its extra headers.
    pub(crate) settings: Arc<ModelSettings>,
    pub(crate) repeat: Repeat,
}

/// The response to a request for a stream.
pub(crate) enum Opened {
    Events(Box<Events>),
    /// The whole answer, from a server that does not stream.
    Whole(ModelResponse),
}

/// A builder of HTTP clients that trust the system's certificates and follow no redirects.
///
/// # Errors
/// If TLS cannot be set up.
pub fn http_client_builder() -> Result<reqwest::ClientBuilder, ModelError> {
    Ok(builder_with_tls(tls::config(None)?))
}

fn builder_with_tls(tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
}

impl Client {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, ModelError> {
        let server = display_address(&endpoint.base_url);
        let configuration = |message: String| {
            ModelError::new(ModelErrorKind::Configuration, message).with_server(&server)
        };
        let base = setup::parse_address(&endpoint.base_url)
            .map_err(|message| ModelError::new(ModelErrorKind::Configuration, message))?;
        let mut builder = builder_with_tls(tls::config(endpoint.certificates.as_deref())?)
            .connect_timeout(endpoint.connect_timeout)
            .read_timeout(endpoint.read_timeout);
        if let Some(total) = endpoint.total_timeout {
            builder = builder.timeout(total);
        }
        if let Some(proxy) = &endpoint.proxy {
            builder = builder.proxy(setup::proxy(proxy.expose()).map_err(configuration)?);
        }
        let cannot_set_up = |error: reqwest::Error| {
            let error = error_chain(&error.without_url());
            configuration(format!("the HTTP client cannot be set up: {error}"))
        };
        let http = builder.build().map_err(cannot_set_up)?;
        let headers = setup::headers(endpoint).map_err(configuration)?;
        let templates = RequestTemplates::new(&http, &base, &headers).map_err(cannot_set_up)?;
        Ok(Self(Arc::new(Inner {
            http,
            templates,
            is_openai: is_openai(&base),
            secrets: setup::endpoint_secrets(endpoint, &base),
            base,
            server,
            body_fields: endpoint.body.clone(),
            max_retries: endpoint.retries,
            max_response_bytes: endpoint.max_response_bytes,
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

    /// Extra fields of every request's body.
    pub(crate) fn body_fields(&self) -> &BTreeMap<String, Value> {
        &self.0.body_fields
    }

    /// Sends a request, with retries, and parses the whole answer.
    pub(in crate::wire) async fn fetch(
        &self,
        model: &impl Protocol,
        call: &Call,
    ) -> Result<ModelResponse, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match self.send(call, AnswerForm::Whole).await {
                Ok((response, headers)) => {
                    match self.read_whole(model, response, &headers, Vec::new()).await {
                        Ok(answer) => return Ok(answer),
                        Err(error) => error.with_headers(&headers),
                    }
                }
                Err(error) => error,
            };
            let retry = self.plan_retry(error, call, attempt)?;
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
        let (response, headers) = self.send(call, AnswerForm::Events).await?;
        let opened = self.read_first(model, response, &headers).await;
        opened.map_err(|error| error.with_headers(&headers))
    }

    async fn read_first(
        &self,
        model: &impl Protocol,
        mut response: Response,
        headers: &ResponseHeaders,
    ) -> Result<Opened, ModelError> {
        let first_bytes = read_first_bytes(&mut response).await?;
        // Content types are not reliable: what comes decides whether it is a stream.
        match first_bytes.trim_ascii_start().first() {
            Some(b'{' | b'[') => {
                let answer = self.read_whole(model, response, headers, first_bytes);
                return Ok(Opened::Whole(answer.await?));
            }
            Some(b'<') => return Err(not_a_stream(&response)),
            _ => {}
        }
        let limit = self.0.max_response_bytes;
        let mut events = Events::new(response, headers.clone(), &first_bytes, limit)?;
        let first = events.next().await?.ok_or_else(|| {
            let message = "the stream ended before its first event";
            ModelError::new(ModelErrorKind::Interrupted, message)
        })?;
        if let Some(error) = error_body::from_event(&first) {
            return Err(error);
        }
        events.put_back(first);
        Ok(Opened::Events(Box::new(events)))
    }

    /// The retry after a failed attempt, or the error if the request is not to be retried.
    pub(crate) fn plan_retry(
        &self,
        error: ModelError,
        call: &Call,
        attempt: u32,
    ) -> Result<ModelRetry, ModelError> {
        let error = self.complete_error(error, &call.settings);
        let Some(delay) = retry::delay(&error, call.repeat, attempt, self.0.max_retries) else {
            return Err(error.with_attempts(attempt));
        };
        tracing::warn!(%error, attempt, ?delay, "a model request failed and is retried");
        Ok(ModelRetry::new(attempt + 1, delay, error.to_string()))
    }

    async fn send(
        &self,
        call: &Call,
        form: AnswerForm,
    ) -> Result<(Response, ResponseHeaders), ModelError> {
        let mut request = self.0.templates.request(call.path, form);
        for (name, value) in &call.settings.extra_headers {
            setup::add_header(request.headers_mut(), name, value)
                .map_err(|message| ModelError::new(ModelErrorKind::Configuration, message))?;
        }
        *request.body_mut() = Some(call.body.body());
        let sent = self.0.http.execute(request).await;
        let response = sent.map_err(|error| transport_error(error, false))?;
        let headers = ResponseHeaders::parse(response.headers());
        if response.status().is_success() {
            return Ok((response, headers));
        }
        let error = self.status_error(response, call).await;
        Err(error.with_headers(&headers))
    }

    /// The error for a non-2xx response.
    async fn status_error(&self, mut response: Response, call: &Call) -> ModelError {
        let status = response.status();
        if status.is_redirection()
            && let Some(location) = response.headers().get(LOCATION)
            && let Ok(location) = location.to_str()
            && let Ok(target) = self.0.base.join(location)
        {
            let target = display_address(target.as_str());
            let message = format!("the server redirects to {target}, which is not followed");
            return ModelError::new(ModelErrorKind::Request, message).with_status(status.as_u16());
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
        let mut secrets = setup::header_secrets(&call.settings);
        secrets.extend_from_slice(&self.0.secrets);
        error_body::from_status(status.as_u16(), &body, &secrets)
    }

    /// Reads the rest of a body whose first bytes have been read, and parses it.
    async fn read_whole(
        &self,
        model: &impl Protocol,
        mut response: Response,
        headers: &ResponseHeaders,
        mut body: Vec<u8>,
    ) -> Result<ModelResponse, ModelError> {
        let limit = self.0.max_response_bytes;
        while body.len() <= limit {
            match response.chunk().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => {
                    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&body);
                    return model.parse(body, headers);
                }
                Err(error) => return Err(transport_error(error, true)),
            }
        }
        Err(too_large(limit))
    }

    /// Adds the server to an error and removes secrets from it.
    pub(crate) fn complete_error(&self, error: ModelError, settings: &ModelSettings) -> ModelError {
        error
            .scrubbed(&self.0.secrets)
            .scrubbed(&setup::header_secrets(settings))
            .with_server(&self.0.server)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.server)
    }
}

fn too_large(limit: usize) -> ModelError {
    let message = format!(
        "the response is larger than {limit} bytes; allow more with Endpoint::max_response_bytes"
    );
    ModelError::new(ModelErrorKind::TooLarge, message)
}

/// Reads until a byte other than white space has come.
async fn read_first_bytes(response: &mut Response) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    while bytes.trim_ascii_start().is_empty() && bytes.len() < MAX_ERROR_BODY {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(transport_error(error, true)),
        }
    }
    Ok(bytes)
}

fn not_a_stream(response: &Response) -> ModelError {
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("unknown");
    let message = format!("a stream was requested, but the response is of type {content_type}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// The error for a failed connection. Without the URL, which may hold a key.
fn transport_error(error: reqwest::Error, has_begun: bool) -> ModelError {
    let error = error.without_url();
    let details = error_chain(&error);
    if causes(&error).any(|cause| cause.is::<WrongLength>()) {
        let message = format!("the request cannot be sent: {WrongLength}");
        return ModelError::new(ModelErrorKind::Unsupported, message).with_source(error);
    }
    // The server's address was checked before, so the scheme is that of the environment's proxy.
    if error.is_connect()
        && (details.contains("unsupported scheme") || details.contains("scheme is not http"))
    {
        return ModelError::new(
            ModelErrorKind::Configuration,
            "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY) cannot be used: only \
             proxies at http:// and https:// are supported; name another with Endpoint::proxy, or \
             leave this server out with NO_PROXY",
        );
    }
    let (kind, message) = if error.is_timeout() {
        (ModelErrorKind::Timeout, "the server took too long")
    } else if has_begun {
        (ModelErrorKind::Interrupted, "the answer broke off")
    } else if error.is_connect() {
        (ModelErrorKind::Connection, "the server cannot be reached")
    } else {
        (
            ModelErrorKind::Connection,
            "the server closed the connection before it answered",
        )
    };
    let is_unsent = !has_begun && error.is_connect();
    let error = ModelError::new(kind, format!("{message}: {details}")).with_source(error);
    if is_unsent { error.unsent() } else { error }
}

/// An error and its causes, in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    for cause in causes(error).map(ToString::to_string) {
        if !chain.contains(&cause) {
            chain.push_str(": ");
            chain.push_str(&cause);
        }
    }
    chain
}

fn causes<'a>(
    error: &'a dyn std::error::Error,
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}

#[cfg(test)]
mod tests {
    use fake_provider::FakeProvider;
    use switchboard_core::Item;
    use switchboard_core::items::Items;

    use super::*;
    use crate::ResponsesModel;
    use crate::wire::payload::{PayloadBuilder, write_unchanged};

    #[tokio::test]
    async fn a_request_of_a_wrong_length_is_not_retried() {
        let provider = FakeProvider::start().await.unwrap();
        let client = Endpoint::at(provider.url()).key("k").connect().unwrap();
        let items: Items = vec![Item::user("Hi")].into();
        let length = items[0].as_json().len();
        for stated in [length - 1, length + 1] {
            let mut payload = PayloadBuilder::new(&items, write_unchanged);
            payload.add_items(0, 1, stated);
            let call = Call {
                path: Path::Responses,
                body: payload.build(),
                settings: Arc::default(),
                repeat: Repeat::Safe,
            };
            let model = ResponsesModel::new(&client, "m");
            let failed = client.fetch(&model, &call).await.unwrap_err();
            assert_eq!(failed.kind(), ModelErrorKind::Unsupported, "{failed}");
            assert_eq!(failed.attempts(), 1);
            assert!(failed.to_string().contains("please report it"), "{failed}");
        }
        assert!(provider.requests().is_empty());
    }
}
