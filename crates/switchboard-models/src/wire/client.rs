//! Sending requests and reading what comes back.

mod head;
mod tls;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub(crate) use head::Head;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;

use crate::wire::endpoint::Endpoint;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::refused;
use crate::wire::retry::{self, Repeat};
use crate::wire::secret::{Secret, scrubbed};
use crate::wire::sse::{Event, Splitter};

/// How much of a refusal is read.
const LONGEST_REFUSAL: usize = 64 << 10;

/// How long a server may take to end a stream whose answer has ended.
const LONGEST_DRAIN: Duration = Duration::from_secs(2);

/// A connection to a provider, or rather as many as are needed at a time: connections are kept
/// and used again. Clones share them.
///
/// It is made by [`Endpoint::connect`].
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    base: Url,
    /// The server as errors name it.
    server: String,
    headers: HeaderMap,
    body: BTreeMap<String, Value>,
    secrets: Vec<Secret>,
    retries: u32,
    largest_answer: usize,
    is_openai: bool,
}

/// One request.
pub(crate) struct Call<'a> {
    /// What comes after the endpoint's address.
    pub(crate) path: &'static str,
    pub(crate) body: Bytes,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) repeat: Repeat,
}

impl Client {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, ModelError> {
        let base = address(&endpoint.base_url)?;
        let server = shown(&endpoint.base_url);
        let configuration =
            |message: String| ModelError::new(ModelErrorKind::Configuration, message).at(&server);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(endpoint.certificates.as_deref())?)
            .connect_timeout(endpoint.connect_timeout)
            .read_timeout(endpoint.read_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
        if let Some(total) = endpoint.total_timeout {
            builder = builder.timeout(total);
        }
        if let Some(proxy) = &endpoint.proxy {
            let proxy = reqwest::Proxy::all(proxy.expose())
                .map_err(|_| configuration("the proxy's address is none".to_owned()))?;
            builder = builder.proxy(proxy);
        }
        let http = builder.build().map_err(|error| {
            configuration(format!("the client cannot be made: {}", chain(&error)))
        })?;
        let headers = headers(endpoint).map_err(configuration)?;
        let mut secrets: Vec<Secret> = endpoint.key.iter().cloned().collect();
        secrets.extend(endpoint.headers.iter().map(|(_, value)| value.clone()));
        Ok(Self(Arc::new(Inner {
            http,
            is_openai: base.scheme() == "https" && base.host_str() == Some("api.openai.com"),
            base,
            server,
            headers,
            body: endpoint.body.clone(),
            secrets,
            retries: endpoint.retries,
            largest_answer: endpoint.largest_answer,
        })))
    }

    /// Whether this is OpenAI itself and not merely a server that speaks like it.
    pub(crate) fn is_openai(&self) -> bool {
        self.0.is_openai
    }

    /// The server as errors and origins name it.
    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    /// Fields of every body.
    pub(crate) fn body_fields(&self) -> &BTreeMap<String, Value> {
        &self.0.body
    }

    /// Sends a request and reads the whole answer, which `read` must understand.
    pub(crate) async fn fetch<T>(
        &self,
        call: Call<'_>,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let mut attempt = 1;
        loop {
            let failed = match self.fetch_once(&call, &read).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error.at(&self.0.server),
            };
            attempt = self.before_next(failed, call.repeat, attempt).await?;
        }
    }

    async fn fetch_once<T>(
        &self,
        call: &Call<'_>,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let (response, head) = self.send(call, "application/json").await?;
        let body = self.whole(response, self.0.largest_answer).await;
        let body = body.map_err(|error| error.with_head(&head))?;
        read(&body, &head).map_err(|error| error.with_head(&head))
    }

    /// Sends a request whose answer comes event by event. It is sent again only as long as no
    /// event has come.
    pub(crate) async fn open(&self, call: Call<'_>) -> Result<Events, ModelError> {
        let mut attempt = 1;
        loop {
            let failed = match self.open_once(&call).await {
                Ok(events) => return Ok(events),
                Err(error) => error.at(&self.0.server),
            };
            attempt = self.before_next(failed, call.repeat, attempt).await?;
        }
    }

    async fn open_once(&self, call: &Call<'_>) -> Result<Events, ModelError> {
        let (response, head) = self.send(call, "text/event-stream").await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        if kind.contains("json") || kind.contains("html") {
            let body = self.whole(response, LONGEST_REFUSAL).await?;
            let error = match refused::said(&body) {
                Some((message, code)) => {
                    let message = scrubbed(&message, &self.0.secrets).into_owned();
                    ModelError::new(ModelErrorKind::Failed, message).with_code(code)
                }
                None => ModelError::new(
                    ModelErrorKind::BadAnswer,
                    format!("a stream was asked for, and the answer is of type {kind}"),
                ),
            };
            return Err(error.with_head(&head));
        }
        let mut events = Events {
            response,
            splitter: Splitter::new(self.0.largest_answer),
            ready: VecDeque::new(),
            left: self.0.largest_answer,
            has_ended: false,
            head,
            client: self.clone(),
        };
        match events.next().await? {
            Some(first) => events.ready.push_front(first),
            None => return Err(events.broken("the stream ended before it began")),
        }
        Ok(events)
    }

    /// Waits, where the request is to be sent again; the number of that attempt.
    async fn before_next(
        &self,
        failed: ModelError,
        repeat: Repeat,
        attempt: u32,
    ) -> Result<u32, ModelError> {
        let Some(pause) = retry::pause(&failed, repeat, attempt, self.0.retries) else {
            return Err(failed.after_attempts(attempt));
        };
        tracing::warn!(error = %failed, attempt, ?pause, "a model could not answer; asking again");
        tokio::time::sleep(pause).await;
        Ok(attempt + 1)
    }

    async fn send(
        &self,
        call: &Call<'_>,
        accept: &'static str,
    ) -> Result<(Response, Head), ModelError> {
        let inner = &*self.0;
        let mut url = inner.base.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), call.path);
        url.set_path(&path);
        let mut headers = inner.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        for (name, value) in call.headers {
            let (name, value) = header(name, value)
                .map_err(|message| ModelError::new(ModelErrorKind::Configuration, message))?;
            headers.insert(name, value);
        }
        let request = inner
            .http
            .post(url)
            .headers(headers)
            .body(call.body.clone());
        let response = request
            .send()
            .await
            .map_err(|error| transport(error, false))?;
        let head = Head::of(response.headers());
        let status = response.status();
        if status.is_success() {
            return Ok((response, head));
        }
        let body = self
            .whole(response, LONGEST_REFUSAL)
            .await
            .unwrap_or_default();
        let error = refused::by(status.as_u16(), &body, &inner.secrets);
        Err(error.with_head(&head))
    }

    async fn whole(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(|error| transport(error, true))?
        {
            if body.len() + part.len() > limit {
                return Err(too_large(limit));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// An error that the server told of in an answer it had begun.
    pub(crate) fn told(&self, message: &str, code: Option<String>) -> ModelError {
        let message = scrubbed(message, &self.0.secrets).into_owned();
        ModelError::new(ModelErrorKind::Failed, message).with_code(code)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.server)
    }
}

/// The events of an answer under way. Dropping it closes the connection.
pub(crate) struct Events {
    response: Response,
    splitter: Splitter,
    ready: VecDeque<Event>,
    /// How many bytes may still come.
    left: usize,
    has_ended: bool,
    head: Head,
    client: Client,
}

impl Events {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.response.chunk().await {
                Ok(Some(part)) => {
                    let left = self.left.checked_sub(part.len());
                    let pushed = self.splitter.push(&part, &mut self.ready);
                    let (Some(left), Ok(())) = (left, pushed) else {
                        return Err(self.at(too_large(self.client.0.largest_answer)));
                    };
                    self.left = left;
                }
                Ok(None) => {
                    self.has_ended = true;
                    self.ready.extend(self.splitter.finish().filter(is_whole));
                }
                Err(error) => return Err(self.at(transport(error, true))),
            }
        }
    }

    /// The answer has ended. What is left of the stream is read, so that the connection can be used
    /// again; nobody waits for it.
    pub(crate) fn drain(mut self) {
        let rest = async move { while let Ok(Some(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LONGEST_DRAIN, rest));
        }
    }

    /// The stream ended, and the answer had not.
    pub(crate) fn broken(&self, how: &str) -> ModelError {
        self.at(ModelError::new(ModelErrorKind::Interrupted, how))
    }

    /// An error of this stream.
    pub(crate) fn at(&self, error: ModelError) -> ModelError {
        error.with_head(&self.head).at(self.client.server())
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }
}

/// Whether an event that the end of the stream cut short, as far as one can tell, is all there.
fn is_whole(event: &Event) -> bool {
    match event {
        Event::Data(data) if data.starts_with("[DONE]") => true,
        Event::Data(data) | Event::Error(data) => {
            serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
        }
    }
}

fn too_large(limit: usize) -> ModelError {
    let message = format!(
        "the answer is larger than {limit} bytes, the most that is read (Endpoint::largest_answer)"
    );
    ModelError::new(ModelErrorKind::TooLarge, message)
}

/// A failure of the connection. Errors of the client quote the address, which may hold a key.
fn transport(error: reqwest::Error, has_begun: bool) -> ModelError {
    let error = error.without_url();
    let (kind, what) = if error.is_timeout() {
        (ModelErrorKind::Timeout, "the server took too long")
    } else if has_begun {
        (ModelErrorKind::Interrupted, "the answer broke off")
    } else if error.is_connect() {
        (ModelErrorKind::Connection, "the server cannot be reached")
    } else {
        (
            ModelErrorKind::Connection,
            "the server went away before it answered",
        )
    };
    ModelError::new(kind, format!("{what}: {}", chain(&error))).caused_by(error)
}

/// An error and what is behind it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !told.contains(&text) {
            told.push_str(": ");
            told.push_str(&text);
        }
        source = cause.source();
    }
    told
}

/// An address as it may be shown: without names, passwords and parameters.
pub(crate) fn shown(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => "(no address)".to_owned(),
    }
}

fn address(address: &str) -> Result<Url, ModelError> {
    let configuration = |message| ModelError::new(ModelErrorKind::Configuration, message);
    let url = Url::parse(address.trim()).map_err(|error| {
        configuration(format!(
            "the address of the server cannot be read ({error}); it looks like \
             https://api.openai.com/v1"
        ))
    })?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(configuration(format!(
            "the address of the server must begin with http:// or https://, such as \
             http://{address}"
        ))),
    }
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &endpoint.key {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_| "the key has characters that no key has".to_owned())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let named = [
        ("OpenAI-Organization", &endpoint.organization),
        ("OpenAI-Project", &endpoint.project),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
    }
    for (name, value) in &endpoint.headers {
        let (name, mut value) = header(name, value.expose())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no header"))?;
    let value = HeaderValue::from_str(value)
        .map_err(|_| format!("the header {name} has characters that no header has"))?;
    Ok((name, value))
}
