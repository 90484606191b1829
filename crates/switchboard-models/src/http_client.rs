//! The HTTP client: a pool of connections, proxies, TLS and time limits around hyper. It follows no
//! redirects and sends HTTP/1.1.
//!
//! Written on hyper instead of reqwest: a handoff over HTTP takes a quarter fewer instructions with it,
//! and 20 % less CPU time (`bench/README.md`). reqwest parses the address of every request four times to
//! be able to follow redirects.

mod connector;
mod error;
mod response;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use connector::{Connector, tcp};
pub use error::{HttpError, causes};
use http::header::{HeaderValue, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{Request, Uri};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
pub use response::HttpResponse;
use response::{after, within};
use rustls::ClientConfig;
use switchboard_core::callback::BoxError;

/// The time after which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(90);

/// The value of the header `user-agent`.
pub const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));

/// The settings of an [`HttpClient`].
#[derive(Debug)]
pub struct HttpSettings {
    /// The certificates to trust, and the other settings of TLS.
    pub tls: ClientConfig,
    /// The proxies on the way to servers.
    pub proxies: Proxies,
    /// The longest time until a connection is there, with its TLS.
    pub connect_timeout: Option<Duration>,
    /// The limits of each request.
    pub limits: TimeLimits,
}

/// The time limits of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeLimits {
    /// The longest wait for the response, and for each piece of its body.
    pub read: Option<Duration>,
    /// The longest time until the end of the body.
    pub total: Option<Duration>,
}

/// The proxies on the way to servers.
pub enum Proxies {
    /// Those that the environment or the operating system names.
    System,
    /// The proxy at this address, which may hold a user name and a password.
    At(Uri),
    /// Servers are reached directly.
    None,
}

/// Without the address of a proxy, which may hold a password.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::At(_) => "At(..)",
            Self::None => "None",
        })
    }
}

/// An HTTP client. Clones share its connections.
#[derive(Clone)]
pub struct HttpClient {
    pool: Client<Connector, RequestBody>,
    proxies: Option<Arc<Matcher>>,
    limits: TimeLimits,
}

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body that is sent as it is produced.
pub fn body<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// A body of these bytes.
pub fn bytes_body(bytes: impl Into<Bytes>) -> RequestBody {
    body(Full::new(bytes.into()))
}

impl HttpClient {
    /// A client with these settings, without connections.
    pub fn new(settings: HttpSettings) -> Self {
        let proxies = match settings.proxies {
            Proxies::System => Some(Matcher::from_system()),
            Proxies::At(address) => Some(Matcher::builder().all(address.to_string()).build()),
            Proxies::None => None,
        };
        let proxies = proxies.map(Arc::new);
        let connector = Connector::new(
            tcp(settings.connect_timeout),
            settings.tls,
            proxies.clone(),
            settings.connect_timeout,
        );
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self {
            pool,
            proxies,
            limits: settings.limits,
        }
    }

    /// Sends a request. The response may have any status.
    ///
    /// # Errors
    /// If there is no response within the limits.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<HttpResponse, HttpError> {
        self.send_within(request, self.limits).await
    }

    /// Sends a request with limits of its own.
    ///
    /// # Errors
    /// If there is no response within the limits.
    pub async fn send_within(
        &self,
        mut request: Request<RequestBody>,
        limits: TimeLimits,
    ) -> Result<HttpResponse, HttpError> {
        if let Some(authorization) = self.proxy_authorization(request.uri()) {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, authorization);
        }
        let deadline = limits.total.and_then(after);
        let sent = self.pool.request(request);
        let response = within(limits.read, deadline, sent).await?;
        let response = response.map_err(HttpError::from_client)?;
        Ok(HttpResponse::new(response, limits.read, deadline))
    }

    /// The credentials for the proxy of requests that are not encrypted. Those that are go through a
    /// tunnel, whose request has the credentials.
    fn proxy_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let proxies = self.proxies.as_ref()?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return None;
        }
        proxies.intercept(uri)?.basic_auth().cloned()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}
