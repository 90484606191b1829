//! Connections: TCP, TLS, and the way through a proxy.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::header::{HeaderMap, USER_AGENT};
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use switchboard_core::callback::{BoxError, BoxFuture};
use tower_service::Service;

use super::error::TimedOut;

/// The time of silence after which the other side is asked for a sign of life, and between two such
/// questions.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The number of questions without an answer after which a connection is given up.
const KEEP_ALIVE_RETRIES: u32 = 3;

/// The longest time that sent bytes may remain without acknowledgement.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connects over TCP. With several addresses of a host, the limit holds for all of them together.
pub(super) fn tcp(connect_timeout: Option<Duration>) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(connect_timeout);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

/// Connects to servers, directly or through a proxy.
#[derive(Clone)]
pub(super) struct Connector {
    /// TCP, with TLS for `https`.
    direct: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    proxies: Option<Arc<Matcher>>,
    timeout: Option<Duration>,
}

impl Connector {
    pub(super) fn new(
        tcp: HttpConnector,
        tls: ClientConfig,
        proxies: Option<Arc<Matcher>>,
        timeout: Option<Duration>,
    ) -> Self {
        let tls = Arc::new(tls);
        Self {
            direct: HttpsConnector::from((tcp, tls.clone())),
            tls,
            proxies,
            timeout,
        }
    }

    async fn connect(mut self, server: Uri) -> Result<Line, BoxError> {
        let proxies = self.proxies.take();
        match proxies.and_then(|proxies| proxies.intercept(&server)) {
            None => Ok(Line::new(self.direct.call(server).await?, false)),
            Some(proxy) if server.scheme() == Some(&Scheme::HTTPS) => {
                self.tunnel(proxy, server).await
            }
            Some(proxy) => {
                let connected = self.direct.call(proxy.uri().clone()).await?;
                Ok(Line::new(connected, true))
            }
        }
    }

    /// Asks the proxy for a connection to the server, and speaks TLS with the server through it.
    async fn tunnel(self, proxy: Intercept, server: Uri) -> Result<Line, BoxError> {
        let agent = HeaderMap::from_iter([(USER_AGENT, super::USER_AGENT)]);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct).with_headers(agent);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let connected = HttpsConnector::from((tunnel, self.tls))
            .call(server)
            .await?;
        Ok(Line::new(connected, false))
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Line, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connecting = self.clone().connect(server);
        Box::pin(async move {
            match timeout {
                Some(timeout) => tokio::time::timeout(timeout, connecting)
                    .await
                    .unwrap_or_else(|_| Err(TimedOut.into())),
                None => connecting.await,
            }
        })
    }
}

/// A connection: TCP, or TLS over it, or TLS through a tunnel.
pub(super) struct Line {
    io: Box<dyn Duplex>,
    /// Set if a proxy gets the requests themselves, with the whole address in each.
    is_proxied: bool,
}

trait Duplex: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Duplex for T {}

impl Line {
    fn new(io: impl Duplex + 'static, is_proxied: bool) -> Self {
        Self {
            io: Box::new(io),
            is_proxied,
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxied)
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write_vectored(context, parts)
    }
}
