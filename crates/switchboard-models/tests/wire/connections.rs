//! Connections that end, and limits of any length.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::model::ServerState;
use switchboard_models::{ChatModel, Endpoint, ModelError, ModelErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::Protocol;
use crate::transport::tls;
use crate::{ask, hello, model};

/// An answer that leaves the connection open, as its headers have it.
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi."}}]}"#;

/// Answers one request.
async fn answer(caller: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin)) -> bool {
    let mut request = Vec::new();
    let body = loop {
        let Ok(byte) = caller.read_u8().await else {
            return false;
        };
        request.push(byte);
        if request.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8(request).unwrap().to_lowercase();
            let (_, length) = head.split_once("content-length: ").unwrap();
            break length.lines().next().unwrap().parse::<usize>().unwrap();
        }
    };
    let mut bytes = vec![0; body];
    caller.read_exact(&mut bytes).await.unwrap();
    let length = ANSWER.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    caller.write_all(head.as_bytes()).await.unwrap();
    caller.write_all(ANSWER.as_bytes()).await.unwrap();
    caller.flush().await.unwrap();
    true
}

#[tokio::test]
async fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((mut caller, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            // Closed without a word, although the headers did not announce it.
            answer(&mut caller).await;
        }
    });
    let near = Endpoint::at(format!("http://127.0.0.1:{port}/v1")).retries(0);
    let model = ChatModel::new(&near.connect().unwrap(), "m").into();
    for turn in 1..=3 {
        ask(&model, hello(), false).await.unwrap();
        assert_eq!(connections.load(Ordering::SeqCst), turn);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_tried_again_also_in_a_conversation_of_the_server()
{
    // Accepts connections, and never begins their TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let slow = Endpoint::at(format!("https://127.0.0.1:{port}/v1"))
        .key("k")
        .retries(1)
        .connect_timeout(Duration::from_millis(50));
    let mut request = hello();
    request.server = Some(ServerState::Conversation("conv_1".into()));
    let error = ask(&model(&slow, Protocol::Responses), request, false).await;
    let error = error.unwrap_err().downcast::<ModelError>().unwrap();
    assert_eq!(error.kind(), ModelErrorKind::Timeout, "{error}");
    assert_eq!(error.attempts(), 2, "{error}");
}

#[tokio::test]
async fn limits_may_be_longer_than_any_clock() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        answer(&mut caller).await;
    });
    let patient = Endpoint::at(format!("http://127.0.0.1:{port}/v1"))
        .retries(0)
        .connect_timeout(Duration::MAX)
        .read_timeout(Duration::MAX)
        .total_timeout(Duration::MAX);
    ask(&model(&patient, Protocol::Chat), hello(), false)
        .await
        .unwrap();
}

#[tokio::test]
async fn servers_are_told_which_protocol_is_spoken() {
    let (tls, certificate) = tls();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (caller, _) = listener.accept().await.unwrap();
        let mut caller = tls.accept(caller).await.unwrap();
        let protocol = caller.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        answer(&mut caller).await;
        protocol
    });
    let far = Endpoint::at(format!("https://localhost:{port}/v1"))
        .retries(0)
        .certificates(certificate.path());
    ask(&model(&far, Protocol::Chat), hello(), false)
        .await
        .unwrap();
    assert_eq!(server.await.unwrap().as_deref(), Some(&b"http/1.1"[..]));
}

#[test]
fn the_settings_of_a_client_are_printed_without_the_password_of_the_proxy() {
    use switchboard_models::__private::Proxies;
    let proxy = Proxies::At("http://ann:s3cret@proxy:8080".parse().unwrap());
    assert_eq!(format!("{proxy:?}"), "At(..)");
}
