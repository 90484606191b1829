//! Listening: connections within limits, TLS, and an end in order.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::TlsAcceptor;

use crate::http::OverTls;
use crate::service::Service;

/// The time in which a TLS connection must be agreed on.
const TLS_TIME: Duration = Duration::from_secs(10);

/// The pause after a failure to accept a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The pause between looking for conversations whose time has passed.
const EXPIRY_PAUSE: Duration = Duration::from_secs(600);

/// The number of headers of a request.
const MAX_HEADERS: usize = 100;

/// A service on an address.
#[derive(Debug)]
pub struct Server {
    service: Service,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    drain_time: Duration,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// An error of a server that does not begin.
#[derive(Debug)]
pub struct ServeError {
    message: String,
    kind: ServeErrorKind,
}

/// The kind of a [`ServeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeErrorKind {
    /// Another program listens at the address.
    AddressInUse,
    /// Others can reach the address, and the service has no keys.
    Open,
    /// Anything else, which the message tells.
    Other,
}

impl ServeError {
    fn other(message: String) -> Self {
        Self {
            message,
            kind: ServeErrorKind::Other,
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ServeErrorKind {
        self.kind
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServeError {}

impl Tls {
    /// Reads a chain of certificates and a private key, both in PEM files.
    ///
    /// # Errors
    /// An error that names the file that cannot be used.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Self, ServeError> {
        let problem = |path: &Path, error: &dyn fmt::Display| {
            ServeError::other(format!("{}: {error}", path.display()))
        };
        let chain = CertificateDer::pem_file_iter(certificates)
            .map_err(|error| problem(certificates, &error))?
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| problem(certificates, &error))?;
        if chain.is_empty() {
            return Err(problem(certificates, &"there is no certificate in it"));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ServeError::other(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| problem(key, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Server {
    /// Listens on an address. Port 0 is any free port.
    ///
    /// # Errors
    /// An error if the address cannot be used, or if it is not a loopback address and the service has no keys.
    pub async fn bind(
        service: Service,
        address: impl ToSocketAddrs + fmt::Debug,
    ) -> Result<Self, ServeError> {
        let asked = format!("{address:?}");
        let addresses = tokio::net::lookup_host(address).await;
        let addresses =
            addresses.map_err(|error| ServeError::other(format!("{asked}: {error}")))?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let named = match &*addresses {
            [] => asked,
            all => all
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" or "),
        };
        let problem = |error: &dyn fmt::Display| ServeError::other(format!("{named}: {error}"));
        let keys = service.inner().keys.as_ref();
        let is_open = keys.is_none_or(crate::Keys::is_empty);
        if is_open && addresses.iter().any(|address| !address.ip().is_loopback()) {
            return Err(ServeError {
                kind: ServeErrorKind::Open,
                ..problem(
                    &"an address that others can reach needs keys, as everybody could use the service otherwise",
                )
            });
        }
        let loaded = service.load_usage().await;
        loaded.map_err(|error| problem(&error))?;
        let listener = TcpListener::bind(&*addresses).await;
        let listener = listener.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError {
                kind: ServeErrorKind::AddressInUse,
                ..problem(&"another program listens there")
            },
            _ => problem(&error),
        })?;
        let address = listener.local_addr().map_err(|error| problem(&error))?;
        Ok(Self {
            service,
            listener,
            address,
            tls: None,
            drain_time: Duration::from_secs(25),
        })
    }

    /// Serves with TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the time that runs have to end when the server is shut down; 25 seconds unless set.
    #[must_use]
    pub fn drain_time(mut self, time: Duration) -> Self {
        self.drain_time = time;
        self
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to answer.
    pub fn start(self) -> RunningServer {
        let (stop, stopped) = watch::channel(Phase::Open);
        tokio::spawn(delete_expired(self.service.clone(), stopped.clone()));
        let task = tokio::spawn(accept(
            self.listener,
            self.service.clone(),
            self.tls,
            stopped,
        ));
        RunningServer {
            service: self.service,
            address: self.address,
            drain_time: self.drain_time,
            stop,
            task,
        }
    }
}

/// The phases of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Connections end after the request that they are at.
    Closing,
    Closed,
}

/// A server that answers.
#[derive(Debug)]
pub struct RunningServer {
    service: Service,
    address: SocketAddr,
    drain_time: Duration,
    stop: watch::Sender<Phase>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the server: no new work is taken, runs under way end or are stopped after a turn, their clients get
    /// the last events, connections are closed, and everything is stored. While runs end, health and events are
    /// still answered.
    pub async fn shut_down(self) {
        self.service.drain(self.drain_time).await;
        self.stop.send_replace(Phase::Closing);
        // Clients read the last events.
        let grace = Duration::from_secs(5);
        let _ = tokio::time::timeout(grace, self.stop.closed()).await;
        self.stop.send_replace(Phase::Closed);
        let mut task = self.task;
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            task.abort();
        }
        self.service.inner().store.close().await;
    }
}

/// Deletes conversations and responses whose time has passed, now and then.
async fn delete_expired(service: Service, mut phase: watch::Receiver<Phase>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EXPIRY_PAUSE) => {}
            _ = phase.wait_for(|phase| *phase != Phase::Open) => return,
        }
        if let Err(error) = service.inner().store.delete_expired().await {
            tracing::warn!(%error, "conversations whose time has passed could not be deleted");
        }
    }
}

/// Accepts connections until the server ends.
async fn accept(
    listener: TcpListener,
    service: Service,
    tls: Option<Tls>,
    mut phase: watch::Receiver<Phase>,
) {
    let limits = service.inner().limits.clone();
    let connections = Arc::new(Semaphore::new(limits.connections));
    let mut router = service.router();
    if tls.is_some() {
        router = router.layer(axum::Extension(OverTls));
    }
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.0));
    loop {
        let accepted = async {
            let permit = connections.clone().acquire_owned().await;
            let accepted = listener.accept().await;
            (permit, accepted)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = phase.wait_for(|phase| *phase != Phase::Open) => return,
        };
        let stream = match (permit, accepted) {
            (Ok(permit), Ok((stream, _))) => (permit, stream),
            (_, Err(error)) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
            (Err(_), _) => return,
        };
        let (permit, stream) = stream;
        let connection = Connection {
            router: router.clone(),
            header_bytes: limits.header_bytes,
            header_time: limits.header_time,
            write_time: limits.write_time,
            phase: phase.clone(),
            _permit: permit,
        };
        match acceptor.clone() {
            None => drop(tokio::spawn(connection.serve(stream))),
            Some(acceptor) => {
                tokio::spawn(async move {
                    let agreed = tokio::time::timeout(TLS_TIME, acceptor.accept(stream)).await;
                    if let Ok(Ok(stream)) = agreed {
                        connection.serve(stream).await;
                    }
                });
            }
        }
    }
}

struct Connection {
    router: axum::Router,
    header_bytes: usize,
    header_time: Duration,
    write_time: Duration,
    phase: watch::Receiver<Phase>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Answers the requests of a connection.
    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let stream = TokioIo::new(TimedWrites::new(stream, self.write_time));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_time)
            .max_buf_size(self.header_bytes.max(8192))
            .max_headers(MAX_HEADERS)
            .serve_connection(stream, service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let mut is_closing = false;
        loop {
            tokio::select! {
                // Clients that go away, or break the protocol, are no errors of the server.
                _ = connection.as_mut() => return,
                phase = self.phase.wait_for(|phase| match phase {
                    Phase::Open => false,
                    Phase::Closing => !is_closing,
                    Phase::Closed => true,
                }) => match phase.map(|phase| *phase) {
                    Ok(Phase::Closing) => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    _ => return,
                },
            }
        }
    }
}

/// A stream whose writes fail if the other side reads nothing for a time.
struct TimedWrites<T> {
    stream: T,
    time: Duration,
    /// The end of the time, while a write is waiting.
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<T> TimedWrites<T> {
    fn new(stream: T, time: Duration) -> Self {
        Self {
            stream,
            time,
            deadline: Box::pin(sleep_until(Instant::now())),
            is_waiting: false,
        }
    }

    /// Passes the outcome of a write on, or an error if it has waited too long.
    fn timed<R>(
        &mut self,
        outcome: Poll<io::Result<R>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.is_waiting = false;
            return outcome;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.deadline.as_mut().reset(Instant::now() + self.time);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TimedWrites<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TimedWrites<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(outcome, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.timed(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
