//! The server, and its handle.

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

use crate::handle::handle;
use crate::ready::Ready;
use crate::record::{Request, Violation};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::shared::Shared;

/// A provider on a port of this machine. It stops when it is dropped.
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
    /// The server stops when this is gone.
    _stop: oneshot::Sender<()>,
}

impl FakeProvider {
    /// Starts a provider within this runtime of tokio.
    ///
    /// # Errors
    /// Where there is no free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Rules::default()).await
    }

    /// Starts a provider that is as strict as this.
    ///
    /// # Errors
    /// Where there is no free port.
    pub async fn start_with(rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (provider, stopped) = Self::at(listener.local_addr()?, Shared::new(rules));
        tokio::spawn(serve(listener, provider.shared.clone(), stopped));
        Ok(provider)
    }

    /// Starts a provider on a thread of its own, for benches and where runtimes come and go.
    ///
    /// # Errors
    /// Where there is no free port, or no thread.
    pub fn on_thread() -> io::Result<Self> {
        Self::on_thread_with(Rules::default())
    }

    /// Starts a provider on a thread of its own that is as strict as this.
    ///
    /// # Errors
    /// Where there is no free port, or no thread.
    pub fn on_thread_with(rules: Rules) -> io::Result<Self> {
        Self::thread(Shared::new(rules))
    }

    /// Starts a provider for benches on a thread of its own: it answers with the first reply whose
    /// text is in the body of a request, as often as it is asked, and neither checks nor keeps
    /// anything. An empty text is in every body.
    ///
    /// # Errors
    /// Where there is no free port, or no thread.
    pub fn ready_on_thread<'a>(
        answers: impl IntoIterator<Item = (&'a str, Reply)>,
    ) -> io::Result<Self> {
        Self::thread(Shared::answering(Ready::new(answers)))
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

    /// The base of its addresses, like `http://127.0.0.1:34567/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers requests that come with this API key with these replies, in order. Where the key has
    /// a script already, they come after it.
    pub fn script(&self, key: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut state = self.shared.state();
        state
            .scripts
            .entry(key.to_owned())
            .or_default()
            .extend(replies);
    }

    /// How many replies of a key's script are left.
    pub fn left(&self, key: &str) -> usize {
        self.shared
            .state()
            .scripts
            .get(key)
            .map_or(0, |left| left.len())
    }

    /// Every request it got, the refused ones included.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The requests that came with this key.
    pub fn requests_of(&self, key: &str) -> Vec<Request> {
        let state = self.shared.state();
        let requests = state.requests.iter();
        requests
            .filter(|request| request.key == key)
            .cloned()
            .collect()
    }

    /// The requests that broke a rule.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.state().violations.clone()
    }

    /// The requests that came with this key and broke a rule.
    pub fn violations_of(&self, key: &str) -> Vec<Violation> {
        let mut violations = self.violations();
        violations.retain(|violation| violation.key == key);
        violations
    }

    /// Forgets what it got and what it has yet to answer.
    pub fn clear(&self) {
        *self.shared.state() = Default::default();
    }

    /// # Panics
    /// Where a request broke a rule.
    #[track_caller]
    pub fn assert_valid(&self) {
        let violations = self.violations();
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(
            told.is_empty(),
            "requests broke rules:\n{}",
            told.join("\n")
        );
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeProvider({})", self.url())
    }
}

/// Takes connections until it is told to stop; then it closes them.
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
    // Small frames are the point of this server.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| handle(shared.clone(), request));
    // An error here is the client's going away, or a reply that closes the connection.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
