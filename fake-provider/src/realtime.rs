//! A realtime server whose frames the test sends itself.

mod connection;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use jsonschema::Validator;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

pub use connection::RealtimeConnection;

/// A realtime server on a loopback port: real WebSockets, frames that the test sends itself, and every frame
/// of the client checked against the official client's types. It stops when it is dropped.
///
/// ```
/// use fake_provider::RealtimeServer;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = RealtimeServer::start().await?;
/// // ... a client connects to `server.url()` ...
/// # let (mut client, _) = tokio_tungstenite::client_async(
/// #     server.url(), tokio::net::TcpStream::connect(server.address()).await?).await.unwrap();
/// let connection = server.connection().await;
/// connection.send(&json!({"type": "session.created", "event_id": "event_1", "session": {"type": "realtime"}}));
/// assert_eq!(server.handshakes().len(), 1);
/// server.assert_valid();
/// # Ok(())
/// # }
/// ```
pub struct RealtimeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    connections: AsyncMutex<mpsc::UnboundedReceiver<RealtimeConnection>>,
    listening: AbortHandle,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    handshakes: Vec<RealtimeHandshake>,
    violations: Vec<String>,
    refusal: Option<u16>,
    is_silent: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a frame of the client.
    fn check(&self, frame: &Value) {
        if let Err(problem) = check_client_event(frame) {
            self.lock().violations.push(problem);
        }
    }
}

/// The request with which a client opened a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RealtimeHandshake {
    /// The path.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The headers, with lower-case names, in the order of the request.
    pub headers: Vec<(String, String)>,
}

impl RealtimeHandshake {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }
}

impl RealtimeServer {
    /// Starts a server in the current tokio runtime.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = mpsc::unbounded_channel();
        let task = tokio::spawn(listen(listener, shared.clone(), sender));
        Ok(Self {
            address,
            shared,
            connections: AsyncMutex::new(receiver),
            listening: task.abort_handle(),
        })
    }

    /// The address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address, without a path: `ws://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Refuses handshakes with this status from now on; `None` accepts them again.
    pub fn refuse_with(&self, status: Option<u16>) {
        self.shared.lock().refusal = status;
    }

    /// Takes connections and answers no handshake, from now on.
    pub fn stay_silent(&self, is_silent: bool) {
        self.shared.lock().is_silent = is_silent;
    }

    /// Waits for the next connection.
    ///
    /// # Panics
    /// Panics if the server has stopped.
    pub async fn connection(&self) -> RealtimeConnection {
        let connection = self.connections.lock().await.recv().await;
        match connection {
            Some(connection) => connection,
            None => panic!("the realtime server has stopped"),
        }
    }

    /// The handshakes so far, those refused included.
    pub fn handshakes(&self) -> Vec<RealtimeHandshake> {
        self.shared.lock().handshakes.clone()
    }

    /// The problems of the clients' frames so far.
    pub fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }

    /// Panics if a client has sent a frame that the official types refuse.
    ///
    /// # Panics
    /// See above.
    pub fn assert_valid(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "invalid frames: {violations:#?}");
    }
}

impl Drop for RealtimeServer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl fmt::Debug for RealtimeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

async fn listen(
    listener: TcpListener,
    shared: Arc<Shared>,
    connections: mpsc::UnboundedSender<RealtimeConnection>,
) {
    // Dropped together with the server.
    let mut tasks = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        tasks.spawn(accept(stream, shared.clone(), connections.clone()));
    }
}

async fn accept(
    stream: TcpStream,
    shared: Arc<Shared>,
    connections: mpsc::UnboundedSender<RealtimeConnection>,
) {
    if shared.lock().is_silent {
        // Holds the connection open until the server stops.
        std::future::pending::<()>().await;
    }
    let _ = stream.set_nodelay(true);
    let noted = shared.clone();
    #[expect(
        clippy::result_large_err,
        reason = "the callback's type is the library's"
    )]
    let note = move |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        note_handshake(&noted, request).map_or(Ok(response), Err)
    };
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let socket = tokio_tungstenite::accept_hdr_async_with_config(stream, note, Some(config)).await;
    if let Ok(socket) = socket {
        let (connection, task) = connection::serve(socket, shared);
        // Nobody waits for it if the server's handle is gone.
        let _ = connections.send(connection);
        task.await;
    }
}

/// Records a handshake. Returns the refusal, if handshakes are refused.
fn note_handshake(shared: &Shared, request: &Request) -> Option<ErrorResponse> {
    let headers = request.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let mut state = shared.lock();
    state.handshakes.push(RealtimeHandshake {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
    });
    let status = StatusCode::from_u16(state.refusal?).ok()?;
    let mut refusal = ErrorResponse::new(Some("the scripted server refuses".to_owned()));
    *refusal.status_mut() = status;
    Some(refusal)
}

static CLIENT_EVENT: LazyLock<Result<Validator, String>> = LazyLock::new(|| {
    let schema = include_str!("../schemas/realtime_client_event.json");
    let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    Validator::new(&schema).map_err(|error| error.to_string())
});

/// Checks a client event of the realtime protocol against the official client's types.
///
/// ```
/// use serde_json::json;
///
/// assert!(fake_provider::check_client_event(&json!({"type": "response.cancel"})).is_ok());
/// assert!(fake_provider::check_client_event(&json!({"type": "response.cancel", "id": "r"})).is_err());
/// ```
///
/// # Errors
/// Returns the problem, with the event.
pub fn check_client_event(event: &Value) -> Result<(), String> {
    let validator = CLIENT_EVENT.as_ref()?;
    match validator.validate(event) {
        Ok(()) => Ok(()),
        Err(error) => {
            let path = error.instance_path().to_string();
            let text: String = event.to_string().chars().take(2_000).collect();
            Err(format!(
                "{path}: the official types refuse this event: {text}"
            ))
        }
    }
}
