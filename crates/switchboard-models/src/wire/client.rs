//! Sending requests and reading what comes back.

mod events;
mod requests;
mod response_headers;
mod setup;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub(crate) use events::Events;
pub(crate) use requests::Path;
use requests::{Form, Requests};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
pub(crate) use response_headers::Head;
#[cfg(fuzzing)]
pub(crate) use response_headers::of_any;
use serde_json::Value;
pub(crate) use setup::{is_openai, shown};

use crate::wire::endpoint::Endpoint;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::payload::{Payload, WrongLength};
use crate::wire::retry::{self, Repeat};
use crate::wire::secret::Secret;

/// How much of a refusal is read.
const LONGEST_REFUSAL: usize = 64 << 10;

/// How long a server may take to say why it refuses.
const LONGEST_EXCUSE: Duration = Duration::from_secs(2);

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
    requests: Requests,
    body: BTreeMap<String, Value>,
    secrets: Vec<Secret>,
    retries: u32,
    max_response_bytes: usize,
    is_openai: bool,
}

/// One request.
pub(crate) struct Call<'a> {
    pub(crate) path: Path,
    pub(crate) body: Payload,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) repeat: Repeat,
}

/// How a server answers a request for a stream.
pub(crate) enum Opened<T> {
    /// Event by event.
    Events(Box<Events>),
    /// All at once.
    Whole(T),
}

/// A client to be set up further: it trusts whom the system trusts, follows no redirects and says who
/// it is.
///
/// # Errors
/// Where there is no TLS.
pub fn trusting_system() -> Result<reqwest::ClientBuilder, ModelError> {
    Ok(basics(tls::config(None)?))
}

fn basics(tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
}

impl Client {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, ModelError> {
        let server = shown(&endpoint.base_url);
        let configuration =
            |message: String| ModelError::new(ModelErrorKind::Configuration, message).at(&server);
        let base = setup::address(&endpoint.base_url)
            .map_err(|message| ModelError::new(ModelErrorKind::Configuration, message))?;
        let mut builder = basics(tls::config(endpoint.certificates.as_deref())?)
            .connect_timeout(endpoint.connect_timeout)
            .read_timeout(endpoint.read_timeout);
        if let Some(total) = endpoint.total_timeout {
            builder = builder.timeout(total);
        }
        if let Some(proxy) = &endpoint.proxy {
            builder = builder.proxy(setup::proxy(proxy.expose()).map_err(configuration)?);
        }
        let http = builder.build().map_err(|error| {
            configuration(format!("the client cannot be made: {}", chain(&error)))
        })?;
        let headers = setup::headers(endpoint).map_err(configuration)?;
        let requests = Requests::new(&http, &base, &headers)
            .map_err(|error| configuration(format!("no request can be made: {}", chain(&error))))?;
        Ok(Self(Arc::new(Inner {
            http,
            is_openai: is_openai(&base),
            secrets: setup::secrets(endpoint, &base),
            base,
            server,
            requests,
            body: endpoint.body.clone(),
            retries: endpoint.retries,
            max_response_bytes: endpoint.max_response_bytes,
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
        let secrets = setup::of_call(call.headers);
        let mut attempt = 1;
        loop {
            let failed = match self.fetch_once(&call, &read).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.finished(error, &secrets),
            };
            attempt = self.before_next(failed, call.repeat, attempt).await?;
        }
    }

    async fn fetch_once<T>(
        &self,
        call: &Call<'_>,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let (response, head) = self.send(call, Form::Whole).await?;
        self.whole(response, Bytes::new(), &head, read).await
    }

    /// Sends a request whose answer comes event by event. It is sent again only as long as no
    /// event has come, or the first one says that the server failed. Servers that do not stream
    /// answer with a whole, which `read` must understand.
    pub(crate) async fn open<T>(
        &self,
        call: Call<'_>,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
    ) -> Result<Opened<T>, ModelError> {
        let secrets: Arc<[Secret]> = setup::of_call(call.headers).into();
        let mut attempt = 1;
        loop {
            let failed = match self.open_once(&call, &read, &secrets).await {
                Ok(opened) => return Ok(opened),
                Err(error) => self.finished(error, &secrets),
            };
            attempt = self.before_next(failed, call.repeat, attempt).await?;
        }
    }

    async fn open_once<T>(
        &self,
        call: &Call<'_>,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
        secrets: &Arc<[Secret]>,
    ) -> Result<Opened<T>, ModelError> {
        let (mut response, head) = self.send(call, Form::Events).await?;
        let begun = begin(&mut response).await;
        let begun = begun.map_err(|error| error.with_head(&head))?;
        // Whatever the server calls its answer, this is no stream.
        match begun.trim_ascii_start().first() {
            Some(b'{' | b'[') => {
                let answer = self.whole(response, begun.into(), &head, read).await?;
                return Ok(Opened::Whole(answer));
            }
            Some(b'<') => return Err(no_stream(&response).with_head(&head)),
            _ => {}
        }
        let mut events = Events::new(response, &begun, head, self, secrets.clone())?;
        let Some(first) = events.next().await? else {
            return Err(events.broken("the stream ended before it began"));
        };
        if let Some((message, code)) = error_body::in_event(&first) {
            return Err(events.at(self.told(&message, code)));
        }
        events.put_back(first);
        Ok(Opened::Events(Box::new(events)))
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

    async fn send(&self, call: &Call<'_>, form: Form) -> Result<(Response, Head), ModelError> {
        let configuration = |message| ModelError::new(ModelErrorKind::Configuration, message);
        let mut request = self.0.requests.of(call.path, form);
        for (name, value) in call.headers {
            setup::add(request.headers_mut(), name, value).map_err(configuration)?;
        }
        *request.body_mut() = Some(call.body.body());
        let response = self.0.http.execute(request).await;
        let response = response.map_err(|error| transport(error, false))?;
        let head = Head::of(response.headers());
        if response.status().is_success() {
            return Ok((response, head));
        }
        Err(self.refused(response, call).await.with_head(&head))
    }

    /// The error for an answer that is none.
    async fn refused(&self, mut response: Response, call: &Call<'_>) -> ModelError {
        let status = response.status();
        if status.is_redirection()
            && let Some(to) = response.headers().get(LOCATION)
            && let Some(to) = to.to_str().ok().and_then(|to| self.0.base.join(to).ok())
        {
            let to = shown(to.as_str());
            let message = format!("the server sends requests on to {to}, which is not followed");
            return ModelError::new(ModelErrorKind::Request, message)
                .with_status(status.as_u16(), None);
        }
        // What has come by then is enough to go by.
        let mut body = Vec::new();
        let reading = async {
            while body.len() < LONGEST_REFUSAL
                && let Ok(Some(part)) = response.chunk().await
            {
                body.extend_from_slice(&part);
            }
        };
        let _ = tokio::time::timeout(LONGEST_EXCUSE, reading).await;
        body.truncate(LONGEST_REFUSAL);
        let mut secrets = setup::of_call(call.headers);
        secrets.extend_from_slice(&self.0.secrets);
        error_body::by(status.as_u16(), &body, &secrets)
    }

    /// Reads the rest of an answer that has begun, and understands it.
    async fn whole<T>(
        &self,
        mut response: Response,
        mut body: Bytes,
        head: &Head,
        read: impl Fn(&[u8], &Head) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let limit = self.0.max_response_bytes;
        let mut parts = Vec::new();
        loop {
            if parts.len().max(body.len()) > limit {
                return Err(too_large(limit).with_head(head));
            }
            match response.chunk().await {
                // Most answers come in one piece, which is read where it is.
                Ok(Some(part)) if body.is_empty() => body = part,
                Ok(Some(part)) => {
                    if parts.is_empty() {
                        parts.extend_from_slice(&body);
                    }
                    parts.extend_from_slice(&part);
                }
                Ok(None) => break,
                Err(error) => return Err(transport(error, true).with_head(head)),
            }
        }
        let whole = if parts.is_empty() { &*body } else { &parts };
        read(whole, head).map_err(|error| error.with_head(head))
    }

    /// An error that the server told of in an answer it had begun.
    pub(crate) fn told(&self, message: &str, code: Option<String>) -> ModelError {
        ModelError::new(error_body::kind(code.as_deref()), message).with_code(code)
    }

    /// An error as it leaves the client: with the server's name, and without secrets.
    fn finished(&self, error: ModelError, of_call: &[Secret]) -> ModelError {
        error
            .scrubbed(&self.0.secrets)
            .scrubbed(of_call)
            .at(&self.0.server)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.server)
    }
}

fn too_large(limit: usize) -> ModelError {
    let message = format!(
        "the answer is larger than {limit} bytes, the most that is read (Endpoint::max_response_bytes)"
    );
    ModelError::new(ModelErrorKind::TooLarge, message)
}

/// The first bytes of an answer, as many as it takes to know what it is.
async fn begin(response: &mut Response) -> Result<Vec<u8>, ModelError> {
    let mut begun = Vec::new();
    while begun.trim_ascii_start().is_empty()
        && begun.len() < LONGEST_REFUSAL
        && let Some(part) = response
            .chunk()
            .await
            .map_err(|error| transport(error, true))?
    {
        begun.extend_from_slice(&part);
    }
    Ok(begun)
}

fn no_stream(response: &Response) -> ModelError {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let message = format!(
        "a stream was asked for, and the answer is of type {}",
        kind.unwrap_or("unknown")
    );
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// A failure of the connection. Errors of the client quote the address, which may hold a key.
fn transport(error: reqwest::Error, has_begun: bool) -> ModelError {
    let error = error.without_url();
    let why = chain(&error);
    if causes(&error).any(|cause| cause.is::<WrongLength>()) {
        let message = format!("the request cannot be sent: {WrongLength}");
        return ModelError::new(ModelErrorKind::Unsupported, message).caused_by(error);
    }
    // The address of the server is one of HTTP, so this is about the proxy's.
    let is_proxys = ["unsupported scheme", "scheme is not http"];
    if error.is_connect() && is_proxys.iter().any(|told| why.contains(told)) {
        return ModelError::new(
            ModelErrorKind::Configuration,
            "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY) cannot be used: only \
             proxies at http:// and https:// are supported; name another with Endpoint::proxy, or \
             leave this server out with NO_PROXY",
        );
    }
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
    let was_sent = has_begun || !error.is_connect();
    let told = ModelError::new(kind, format!("{what}: {why}")).caused_by(error);
    if was_sent { told } else { told.unsent() }
}

/// An error and what is behind it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    for cause in causes(error) {
        let text = cause.to_string();
        if !told.contains(&text) {
            told.push_str(": ");
            told.push_str(&text);
        }
    }
    told
}

/// What is behind an error.
fn causes<'a>(
    error: &'a dyn std::error::Error,
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}

#[cfg(test)]
mod tests {
    use fake_provider::FakeProvider;
    use switchboard_core::{Item, Items};

    use super::*;
    use crate::wire::payload::{Draft, as_they_are};

    #[tokio::test]
    async fn a_request_of_a_wrong_length_is_not_sent_again() {
        let provider = FakeProvider::start().await.unwrap();
        let client = Endpoint::at(provider.url()).key("k").connect().unwrap();
        let items: Items = vec![Item::user("Hi")].into();
        let length = items[0].as_json().len();
        for noted in [length - 1, length + 1] {
            let mut draft = Draft::of(&items, as_they_are);
            draft.run(0, 1, noted, true);
            let call = Call {
                path: Path::Responses,
                body: draft.finish(),
                headers: &BTreeMap::new(),
                repeat: Repeat::Safe,
            };
            let failed = client.fetch(call, |_, _| Ok(())).await.unwrap_err();
            assert_eq!(failed.kind(), ModelErrorKind::Unsupported, "{failed}");
            assert_eq!(failed.attempts(), 1);
            assert!(failed.to_string().contains("please report it"), "{failed}");
        }
        assert!(provider.requests().is_empty());
    }
}
