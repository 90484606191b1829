//! Requests that no honest client sends, slow readers, and connections that are cut.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use switchboard_server::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{PATIENCE, TestServer, answer, until, with_json};

const MESSAGES: &str = "/api/conversations/c1/messages";

/// Sends bytes, and reads until the server closes the connection or nothing more comes.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut read = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut read)).await;
    String::from_utf8_lossy(&read).into_owned()
}

async fn assert_alive(server: &TestServer) {
    assert_eq!(server.client.get("/health/live").await.status, 200);
}

#[tokio::test]
async fn a_body_is_bounded_whether_or_not_its_length_is_told() {
    let mut limits = Limits::default();
    limits.body_bytes = 1000;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let long = json!({"input": "x".repeat(2000)});
    let refused = server.client.post(MESSAGES, long.clone()).await;
    assert_eq!(refused.error_code(), (413, "too_large".to_owned()));
    let pieces: Vec<Result<String, std::io::Error>> = long
        .to_string()
        .as_bytes()
        .chunks(100)
        .map(|piece| Ok(String::from_utf8_lossy(piece).into_owned()))
        .collect();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let request = server
        .client
        .request("POST", MESSAGES)
        .header("content-type", "application/json")
        .body(body);
    assert_eq!(answer(request).await.status, 413);
    assert_alive(&server).await;
}

#[tokio::test]
async fn bodies_that_are_not_what_they_should_be_are_refused() {
    let server = TestServer::start().await;
    let post = |content_type: &'static str, body: &'static str| {
        let request = server
            .client
            .request("POST", MESSAGES)
            .header("content-type", content_type);
        answer(request.body(body))
    };
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{\"input\": 5}",
        "{\"input\": \"x\", \"other\": 1}",
        "{\"input\": \"\"}",
    ] {
        assert_eq!(
            post("application/json", body).await.error_code().0,
            400,
            "{body}"
        );
    }
    let deep: &'static str = Box::leak("[".repeat(100_000).into_boxed_str());
    assert_eq!(post("application/json", deep).await.error_code().0, 400);
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let refused = post(content_type, "{\"input\": \"x\"}").await;
        assert_eq!(
            refused.error_code(),
            (415, "unsupported_media_type".to_owned())
        );
    }
    assert_eq!(server.client.get("/api/conversations/c1").await.status, 404);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_send_messages() {
    let server = TestServer::with(|builder| builder.hosts(["127.0.0.1", "localhost"])).await;
    let request = || {
        with_json(
            server.client.request("POST", MESSAGES),
            &json!({"input": "x"}),
        )
    };
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", ""] {
        let refused = answer(request().header("origin", origin)).await;
        assert_eq!(
            refused.error_code(),
            (403, "forbidden".to_owned()),
            "{origin}"
        );
    }
    let own = server.url().to_owned();
    assert_eq!(answer(request().header("origin", own)).await.status, 200);
    // A name that its owner has made lead to the loopback address.
    let rebound = answer(
        server
            .client
            .request("GET", "/api/conversations")
            .header("host", "evil.example"),
    )
    .await;
    assert_eq!(rebound.error_code(), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn malformed_requests_are_answered_or_cut_off_and_do_no_harm() {
    let server = TestServer::start().await;
    let address = server.running.address();
    for bytes in [
        b"GARBAGE\r\n\r\n".to_vec(),
        b"GET /api/teams HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_vec(),
        b"POST /api/teams HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzzz".to_vec(),
        b"GET /api/conversations/%ff%fe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec(),
        b"GET /api/conversations/%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec(),
        b"GET ../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec(),
        [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 200_000], b"\r\n\r\n".to_vec()].concat(),
        [b"GET / HTTP/1.1\r\n".to_vec(), b"A: b\r\n".repeat(5000), b"\r\n".to_vec()].concat(),
        vec![0; 4096],
        vec![0xff; 4096],
    ] {
        let read = raw(address, &bytes).await;
        let status = read.split(' ').nth(1).unwrap_or("closed").to_owned();
        assert!(["400", "403", "404", "405", "414", "431", "closed"].contains(&&*status), "{status}: {read}");
    }
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_head_is_bounded_and_names_one_host() {
    let server = TestServer::start().await;
    let address = server.running.address();
    let head = |target: &str, headers: &str| {
        format!("GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")
    };
    let long = |bytes: usize| format!("Host: a\r\nX: {}\r\n", "b".repeat(bytes));
    for (target, headers, status) in [
        ("/api/teams", long(32_000), "200"),
        ("/api/teams", long(33_000), "431"),
        ("/api/teams", long(50_000), "431"),
        ("/api/teams", "Host: a\r\nHost: a\r\n".to_owned(), "400"),
        ("/api/teams", "Host: a\r\nhost: b\r\n".to_owned(), "400"),
        ("http://b/api/teams", "Host: a\r\n".to_owned(), "400"),
        ("http://A/api/teams", "Host: a\r\n".to_owned(), "200"),
    ] {
        let answer = raw(address, head(target, &headers).as_bytes()).await;
        let told = answer.split(' ').nth(1);
        let shown = &headers[..headers.len().min(40)];
        assert_eq!(told, Some(status), "{target} {shown}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_arrive_is_not_waited_for() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(200);
    limits.body_time = Duration::from_millis(200);
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let address = server.running.address();
    let read = tokio::time::timeout(PATIENCE, raw(address, b"GET /api/teams HTTP/1.1\r\nHost:"))
        .await
        .unwrap();
    assert!(read.is_empty() || read.contains(" 408 "), "{read}");
    let head = b"POST /api/conversations/c1/messages HTTP/1.1\r\nHost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let read = tokio::time::timeout(PATIENCE, raw(address, head))
        .await
        .unwrap();
    assert!(read.contains(" 504 "), "{read}");
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_reader_that_reads_nothing_is_cut_off_and_the_run_ends() {
    let mut limits = Limits::default();
    limits.write_time = Duration::from_millis(300);
    limits.event_bytes = 1 << 30;
    limits.events = 1_000_000;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let address = server.running.address();
    // The answer repeats the message, word by word: far more than the buffers of a connection hold.
    let words = format!("{} ", "x".repeat(200)).repeat(30_000);
    let body = json!({"input": words, "stream": true}).to_string();
    let head = format!(
        "POST {MESSAGES} HTTP/1.1\r\nHost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    until(|| async {
        let runs = server.client.get("/api/runs").await.ok();
        runs["runs"][0]["status"] == "completed"
    })
    .await;
    // The connection is closed by the server: its bytes end before the stream's last event.
    let read = tokio::time::timeout(PATIENCE, async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        read
    });
    let read = read.await.expect("the connection is still open");
    assert!(!String::from_utf8_lossy(&read).contains("run_finished"));
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_slow_reader_is_told_of_events_that_were_dropped() {
    let mut limits = Limits::default();
    limits.events = 5;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let run = server
        .client
        .post(MESSAGES, json!({"input": "a b c d e f g h"}))
        .await
        .ok();
    let path = format!("/api/runs/{}/events", run["id"].as_str().unwrap());
    let events = server
        .client
        .open(server.client.request("GET", &path))
        .await
        .rest()
        .await;
    assert_eq!(events[0].name.as_deref(), Some("events_dropped"));
    assert_eq!(events.len(), 6);
    assert_eq!(events.last().unwrap().name.as_deref(), Some("run_finished"));
    let last = events.last().unwrap().id.clone().unwrap();
    let request = server
        .client
        .request("GET", &path)
        .header("Last-Event-ID", last);
    assert!(server.client.open(request).await.rest().await.is_empty());
    let odd = answer(
        server
            .client
            .request("GET", &path)
            .header("Last-Event-ID", "x"),
    )
    .await;
    assert_eq!(odd.status, 400);
}

#[tokio::test]
async fn too_many_requests_at_once_are_refused() {
    let mut limits = Limits::default();
    limits.requests = 1;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let client = server.client.clone();
    let slow = tokio::spawn(async move {
        client
            .post(MESSAGES, json!({"input": "slow one"}))
            .await
            .ok()
    });
    until(|| async { server.client.get("/api/teams").await.status == 503 }).await;
    let refused = server.client.get("/api/teams").await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_alive(&server).await;
    server.model.gate.add_permits(1);
    assert_eq!(slow.await.unwrap()["status"], "completed");
}

#[tokio::test]
async fn connections_beyond_their_number_wait_for_their_turn() {
    let mut limits = Limits::default();
    limits.connections = 1;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let address = server.running.address();
    let get = b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(get).await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(get).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), second.read_exact(&mut byte));
    early.await.unwrap_err();
    drop(first);
    let read = tokio::time::timeout(PATIENCE, second.read_exact(&mut byte));
    read.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_that_is_cut_leaves_the_run_and_its_answer_whole() {
    let server = TestServer::start().await;
    for _ in 0..20 {
        let body = json!({"input": "slow please", "stream": true});
        let mut stream = server
            .client
            .open(with_json(server.client.request("POST", MESSAGES), &body))
            .await;
        stream.next().await.unwrap();
        drop(stream);
        server.model.gate.add_permits(1);
    }
    until(|| async {
        let runs = server.client.get("/api/runs").await.ok();
        runs["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|run| run["status"] == "completed")
    })
    .await;
    let shown = server.client.get("/api/conversations/c1").await.ok();
    assert_eq!(shown["items"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn text_of_models_and_users_is_only_data() {
    let server = TestServer::start().await;
    let nasty = "<script>alert(1)</script>\u{1b}[2J\r\n\r\ndata: {\"type\":\"run_finished\"}\n\n";
    let body = json!({"input": nasty, "stream": true});
    let events = server.client.events(MESSAGES, body).await;
    let finished = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("run_finished"));
    assert_eq!(finished.count(), 1);
    let output = events.last().unwrap().json()["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(output, format!("Triage: you said {nasty}"));
    let shown = server.client.get("/api/conversations/c1").await;
    assert_eq!(shown.headers["content-type"], "application/json");
}
