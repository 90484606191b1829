//! Sends the same requests without an engine, to measure the HTTP client alone.

mod answers;

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use fake_provider::Protocol;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::{Failed, KEY};

/// A client that sends recorded bodies one after another and reads the responses.
pub(super) struct Bare {
    client: Client,
    url: Url,
    headers: HeaderMap,
    bodies: Vec<Bytes>,
    reading: Reading,
}

/// The work on a response.
pub(super) enum Reading {
    /// Its bytes are read and thrown away.
    Bytes,
    /// Its lines are split and thrown away.
    Lines,
    /// It is parsed.
    Answer(Protocol),
}

impl Bare {
    pub(super) fn new(
        url: &str,
        path: &str,
        bodies: Vec<String>,
        reading: Reading,
    ) -> Result<Self, Failed> {
        // Fails if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {KEY}"))?,
        );
        // The same settings as the models' client.
        let client = Client::builder()
            .redirect(Policy::none())
            .user_agent("bench")
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(120))
            .timeout(Duration::from_secs(600))
            .build()?;
        Ok(Self {
            client,
            url: Url::parse(&format!("{url}/{path}"))?,
            headers,
            bodies: bodies.into_iter().map(Bytes::from).collect(),
            reading,
        })
    }

    pub(super) async fn run(&self) -> Result<(), Failed> {
        for body in &self.bodies {
            let request = self.client.post(self.url.clone());
            let request = request.headers(self.headers.clone()).body(body.clone());
            let response = request.send().await?.error_for_status()?;
            match self.reading {
                Reading::Bytes => drop(black_box(response.bytes().await?)),
                Reading::Lines => {
                    black_box(lines(response).await?);
                }
                Reading::Answer(Protocol::Responses) => {
                    let body = response.bytes().await?;
                    black_box(serde_json::from_slice::<answers::Response>(&body)?);
                }
                Reading::Answer(Protocol::Chat) => {
                    let body = response.bytes().await?;
                    black_box(serde_json::from_slice::<answers::Completion>(&body)?);
                }
            }
        }
        Ok(())
    }
}

/// Reads a stream line by line. Returns the number of non-empty lines.
async fn lines(mut response: reqwest::Response) -> Result<usize, Failed> {
    let mut rest: Vec<u8> = Vec::new();
    let mut lines = 0;
    while let Some(chunk) = response.chunk().await? {
        rest.extend_from_slice(&chunk);
        let Some(last) = memchr::memrchr(b'\n', &rest) else {
            continue;
        };
        for line in rest[..last].split(|&byte| byte == b'\n') {
            lines += usize::from(!black_box(line).is_empty());
        }
        rest.drain(..=last);
    }
    Ok(lines)
}
