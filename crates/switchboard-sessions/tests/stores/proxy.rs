//! A network that can fail between a store and its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Forwards connections to a server.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    mode: Arc<AtomicU8>,
    cut: Arc<Notify>,
    late: Arc<Notify>,
}

/// All is forwarded.
const OPEN: u8 = 0;
/// The next answer of the server is not forwarded, and its connection is closed.
const LOSE_ANSWER: u8 = 1;
/// Answers are not forwarded.
const SILENT: u8 = 2;
/// Requests of connections that are open are forwarded late, also if the client has closed them.
const LATE: u8 = 3;

impl Proxy {
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            mode: Arc::default(),
            cut: Arc::default(),
            late: Arc::default(),
        };
        let shared = proxy.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(shared.clone().forward(client, server));
            }
        });
        proxy
    }

    /// Loses the next answer of the server, with the connection. The server has done what was asked.
    pub(crate) fn lose_next_answer(&self) {
        self.mode.store(LOSE_ANSWER, Ordering::SeqCst);
    }

    /// Forwards no answers until [`Proxy::restore`].
    pub(crate) fn fall_silent(&self) {
        self.mode.store(SILENT, Ordering::SeqCst);
    }

    /// Holds the next request of the client back until [`Proxy::forward_late`].
    #[cfg(feature = "redis")]
    pub(crate) fn hold_next_request(&self) {
        self.mode.store(LATE, Ordering::SeqCst);
    }

    /// Forwards the request that was held back.
    #[cfg(feature = "redis")]
    pub(crate) fn forward_late(&self) {
        self.late.notify_one();
    }

    pub(crate) fn restore(&self) {
        self.mode.store(OPEN, Ordering::SeqCst);
    }

    /// Closes all connections.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    async fn forward(self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let requests = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                let late =
                    self.mode
                        .compare_exchange(LATE, OPEN, Ordering::SeqCst, Ordering::SeqCst);
                if late.is_ok() {
                    self.late.notified().await;
                }
                if to_server.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        };
        let answers = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
                let lost = self.mode.compare_exchange(
                    LOSE_ANSWER,
                    OPEN,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
                if lost.is_ok() {
                    return;
                }
                let is_silent = self.mode.load(Ordering::SeqCst) == SILENT;
                if !is_silent && to_client.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = requests => {}
            () = answers => {}
            () = self.cut.notified() => {}
        }
    }
}

/// The host and the port of an address such as `redis://127.0.0.1:6379/`.
pub(crate) fn host_and_port(address: &str) -> String {
    let (_, rest) = address.split_once("://").unwrap();
    let authority = rest.split('/').next().unwrap();
    authority.rsplit('@').next().unwrap().to_owned()
}
