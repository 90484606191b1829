//! Making a WebSocket connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::{HeaderName, HeaderValue, USER_AGENT};
use tokio_tungstenite::tungstenite::http::{Request, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::connection_settings::ConnectionSettings;
use super::secret::{Secret, scrub};
use super::tls;
use crate::model::{RealtimeModelError, RealtimeModelErrorKind};

/// A connected WebSocket.
pub(super) type Socket = WebSocketStream<NetworkStream>;

/// The address and the headers of a connection.
pub(super) struct Handshake {
    pub(super) url: String,
    pub(super) headers: Vec<(String, Secret)>,
}

impl Handshake {
    /// Connects within the time for it.
    pub(super) async fn connect(
        &self,
        settings: &ConnectionSettings,
    ) -> Result<Socket, RealtimeModelError> {
        let connecting =
            tokio::time::timeout(settings.handshake_timeout, self.connect_now(settings));
        connecting.await.unwrap_or_else(|_| {
            Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Timeout,
                format!(
                    "the realtime server did not answer within {:?}: check the address and the network, or \
                     raise `handshake_timeout`",
                    settings.handshake_timeout
                ),
            ))
        })
    }

    async fn connect_now(
        &self,
        settings: &ConnectionSettings,
    ) -> Result<Socket, RealtimeModelError> {
        let request = self.request()?;
        let uri = request.uri();
        let is_tls = uri.scheme_str() == Some("wss");
        let host = uri
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tcp = TcpStream::connect((&*host, port)).await;
        let tcp =
            tcp.map_err(|error| self.failed(&format!("cannot reach {host}:{port}"), &error))?;
        // Audio is many small frames.
        let _ = tcp.set_nodelay(true);
        let stream = if is_tls {
            let connector = TlsConnector::from(tls::config(settings.certificates.as_deref())?);
            let name = ServerName::try_from(host.clone()).map_err(|_| {
                configuration(format!("`{host}` is no name that a certificate could have"))
            })?;
            let tls = connector.connect(name, tcp).await;
            let tls = tls.map_err(|error| self.failed(&format!("no TLS with {host}"), &error))?;
            NetworkStream::Tls(Box::new(tls))
        } else {
            NetworkStream::Plain(tcp)
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .write_buffer_size(16 << 10)
            .max_message_size(Some(settings.max_frame_bytes))
            .max_frame_size(Some(settings.max_frame_bytes));
        let connected = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
        let (socket, _) = connected.await.map_err(|error| self.refused(&error))?;
        Ok(socket)
    }

    fn request(&self) -> Result<Request<()>, RealtimeModelError> {
        let uri: Uri = self.url.parse().map_err(|_| {
            configuration("the address of the realtime server is no URL: check `url`".to_owned())
        })?;
        if !matches!(uri.scheme_str(), Some("ws" | "wss")) || uri.host().is_none() {
            return Err(configuration(
                "the address of the realtime server must begin with `wss://` or `ws://`: check `url`"
                    .to_owned(),
            ));
        }
        let mut request = uri.into_client_request().map_err(|error| {
            configuration(format!(
                "the address of the realtime server cannot be used: {error}"
            ))
        })?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        for (name, value) in &self.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(value.expose());
            let (Ok(parsed), Ok(mut value)) = (parsed, value) else {
                return Err(configuration(format!(
                    "the header `{name}` cannot be sent: its name or its value has characters that \
                     headers cannot have"
                )));
            };
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        Ok(request)
    }

    fn failed(&self, what: &str, error: &io::Error) -> RealtimeModelError {
        let message = format!("{what}: {}", self.scrub(&error.to_string()));
        RealtimeModelError::new(RealtimeModelErrorKind::Transport, message)
    }

    fn refused(&self, error: &WsError) -> RealtimeModelError {
        let WsError::Http(response) = error else {
            let message = format!("the realtime server did not open a WebSocket: {error}");
            return RealtimeModelError::new(
                RealtimeModelErrorKind::Transport,
                self.scrub(&message),
            );
        };
        let status = response.status();
        let body = response.body().as_deref().unwrap_or_default();
        let body: String = String::from_utf8_lossy(body).chars().take(1_000).collect();
        let advice = match status.as_u16() {
            401 | 403 => ": check the key",
            404 => ": check the address, the model and the call",
            429 => ": too many sessions or requests, try again later",
            500.. => ": the provider has a problem, try again later",
            _ => "",
        };
        let message = format!("the realtime server refused the connection with {status}{advice}");
        let message = if body.trim().is_empty() {
            message
        } else {
            format!("{message}; it said: {}", body.trim())
        };
        RealtimeModelError::refused(status.as_u16(), self.scrub(&message))
    }

    /// Removes the secrets of the connection from a text.
    pub(super) fn scrub(&self, text: &str) -> String {
        let secrets: Vec<Secret> = self
            .headers
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        scrub(text, &secrets)
    }
}

const USER_AGENT_VALUE: &str = concat!("switchboard/", env!("CARGO_PKG_VERSION"));

fn configuration(message: String) -> RealtimeModelError {
    RealtimeModelError::new(RealtimeModelErrorKind::Configuration, message)
}

/// A TCP connection, with TLS or without.
#[derive(Debug)]
pub(super) enum NetworkStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for NetworkStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for NetworkStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
