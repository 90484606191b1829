//! A minimal HTTP client: one request per connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use fake_provider::FakeProvider;
use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The chunks of the body; one if it was not chunked.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// `true` if the body was not cut off.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.chunks.concat()).unwrap()
    }

    /// The data of all events but `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        text.split("\n\n")
            .filter_map(|event| event.split_once("data: "))
            .map(|(_, data)| data)
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// Opens a connection and sends a request.
pub(crate) fn send(provider: &FakeProvider, path: &str, key: &str, body: &str) -> TcpStream {
    send_as(provider, path, key, "application/json", body)
}

/// Opens a connection and sends a request with a body of another type.
pub(crate) fn send_as(
    provider: &FakeProvider,
    path: &str,
    key: &str,
    content_type: &str,
    body: &str,
) -> TcpStream {
    let url = provider.url();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: {content_type}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

/// Sends a request and reads the response.
pub(crate) fn post(provider: &FakeProvider, path: &str, key: &str, body: &Value) -> Response {
    read(send(provider, path, key, &body.to_string()))
}

/// Reads the response on a connection.
pub(crate) fn read(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    // A reset connection is a result too.
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

pub(crate) fn parse(bytes: &[u8]) -> Response {
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(split) = split else {
        return Response {
            status: 0,
            head: String::new(),
            chunks: Vec::new(),
            complete: false,
        };
    };
    let head = String::from_utf8(bytes[..split].to_vec())
        .unwrap()
        .to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = &bytes[split + 4..];
    let length = head.split("content-length: ").nth(1);
    let (chunks, complete) = match length {
        Some(length) => {
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            (vec![body.to_vec()], body.len() == length)
        }
        None => chunks(body),
    };
    Response {
        status,
        head,
        chunks,
        complete,
    }
}

fn chunks(mut body: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (chunks, true);
        }
        let from = end + 2;
        if body.len() < from + size + 2 {
            break;
        }
        chunks.push(body[from..from + size].to_vec());
        body = &body[from + size + 2..];
    }
    (chunks, false)
}
