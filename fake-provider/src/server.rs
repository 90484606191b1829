//! The server and its handle.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::handler::handle;
use crate::prepared::PreparedReplies;
use crate::record::{Request, Violation};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::shared::Shared;

/// A provider on a loopback port. It stops when it is dropped.
///
/// ```
/// use fake_provider::{FakeProvider, Reply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let provider = FakeProvider::start().await?;
/// provider.script("key-1", [Reply::text("Hello!")]);
/// assert!(provider.url().ends_with("/v1"));
/// assert_eq!(provider.requests(), []);
/// # Ok(())
/// # }
/// ```
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// The server stops when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl FakeProvider {
    /// Starts a provider in the current tokio runtime.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Rules::default()).await
    }

    /// Starts a provider with these rules in the current tokio runtime.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start_with(rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (provider, stopped) = Self::at(listener.local_addr()?, Shared::new(rules));
        tokio::spawn(serve(listener, provider.shared.clone(), stopped));
        Ok(provider)
    }

    /// Starts a provider on its own thread, independent of the runtimes of its clients.
    ///
    /// # Errors
    /// Returns an error if no port is free or the thread cannot start.
    pub fn on_thread() -> io::Result<Self> {
        Self::on_thread_with(Rules::default())
    }

    /// Starts a provider with these rules on its own thread.
    ///
    /// # Errors
    /// Returns an error if no port is free or the thread cannot start.
    pub fn on_thread_with(rules: Rules) -> io::Result<Self> {
        Self::thread(Shared::new(rules))
    }

    /// Starts a provider for benches on its own thread. It replies to every request with the first
    /// reply whose text is in the body, and neither checks nor records requests. An empty text is in
    /// every body.
    ///
    /// # Errors
    /// Returns an error if no port is free or the thread cannot start.
    pub fn prepared_on_thread<'a>(
        replies: impl IntoIterator<Item = (&'a str, Reply)>,
    ) -> io::Result<Self> {
        Self::thread(Shared::with_prepared(PreparedReplies::new(replies)))
    }

    fn thread(shared: Shared) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let (provider, stopped) = Self::at(listener.local_addr()?, shared);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = provider.shared.clone();
        let thread = std::thread::Builder::new().name("fake-provider".to_owned());
        thread.spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    serve(listener, shared, stopped).await;
                }
            });
        })?;
        Ok(provider)
    }

    fn at(address: SocketAddr, shared: Shared) -> (Self, oneshot::Receiver<()>) {
        let (stop, stopped) = oneshot::channel();
        let provider = Self {
            address,
            shared: Arc::new(shared),
            _stop: stop,
        };
        (provider, stopped)
    }

    /// The base URL, like `http://127.0.0.1:34567/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Appends replies to the script of an API key. Each request with the key gets the next one.
    pub fn script(&self, key: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut state = self.shared.state();
        state
            .scripts
            .entry(key.to_owned())
            .or_default()
            .extend(replies);
    }

    /// The number of replies left in the script of a key.
    pub fn replies_left(&self, key: &str) -> usize {
        self.shared
            .state()
            .scripts
            .get(key)
            .map_or(0, VecDeque::len)
    }

    /// All requests so far, including invalid ones.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The requests with this key.
    pub fn requests_of(&self, key: &str) -> Vec<Request> {
        let state = self.shared.state();
        state
            .requests
            .iter()
            .filter(|request| request.key == key)
            .cloned()
            .collect()
    }

    /// The invalid requests so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.state().violations.clone()
    }

    /// The invalid requests with this key.
    pub fn violations_of(&self, key: &str) -> Vec<Violation> {
        let mut violations = self.violations();
        violations.retain(|violation| violation.key == key);
        violations
    }

    /// Clears all requests, violations and scripts.
    pub fn clear(&self) {
        *self.shared.state() = Default::default();
    }

    /// Asserts that all requests so far were valid.
    ///
    /// # Panics
    /// Panics if one was not.
    #[track_caller]
    pub fn assert_valid(&self) {
        let violations = self.violations();
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(
            lines.is_empty(),
            "requests broke rules:\n{}",
            lines.join("\n")
        );
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeProvider({})", self.url())
    }
}

/// Accepts connections until `stopped` resolves, then closes them.
async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(connection(stream, shared.clone()));
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Otherwise small frames would be merged.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| handle(shared.clone(), request));
    // An error here means that the client disconnected, or that the reply closes the connection.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
