//! A proxy between client and provider that counts connections, with or without TLS.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Forwards connections to the provider.
pub(crate) struct Tunnel {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    first_lines: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Tunnel {
    pub(crate) async fn open(provider: &str, tls: Option<TlsAcceptor>) -> Self {
        let to = provider
            .trim_start_matches("http://")
            .trim_end_matches("/v1")
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let first_lines = Arc::new(Mutex::new(Vec::new()));
        let (counter, lines) = (connections.clone(), first_lines.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (to, tls, lines) = (to.clone(), tls.clone(), lines.clone());
                tokio::spawn(async move {
                    match tls {
                        None => forward(stream, &to, &lines).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                forward(stream, &to, &lines).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            connections,
            first_lines,
            task,
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn first_lines(&self) -> Vec<String> {
        self.first_lines.lock().unwrap().clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    mut from: impl AsyncRead + AsyncWrite + Unpin,
    to: &str,
    first_lines: &Mutex<Vec<String>>,
) {
    let Ok(mut to) = TcpStream::connect(to).await else {
        return;
    };
    let mut first = vec![0; 4096];
    let Ok(read) = from.read(&mut first).await else {
        return;
    };
    let line = String::from_utf8_lossy(&first[..read]);
    let line = line.lines().next().unwrap_or_default().to_owned();
    first_lines.lock().unwrap().push(line);
    if to.write_all(&first[..read]).await.is_ok() {
        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
    }
}
