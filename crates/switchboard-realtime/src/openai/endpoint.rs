//! The address, the key and the headers of a realtime server.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use switchboard_core::callback::{BoxError, BoxFuture};

use super::secret::Secret;
use super::socket::Handshake;
use crate::model::{RealtimeModelError, RealtimeModelErrorKind};

/// The address of OpenAI.
const BASE_URL: &str = "wss://api.openai.com";

/// The address, the key and the headers of a realtime server.
#[derive(Debug, Clone, Default)]
pub(super) struct Endpoint {
    pub(super) base_url: Option<Arc<str>>,
    /// The whole address, with its query.
    pub(super) url: Option<Arc<str>>,
    pub(super) key: Key,
    /// Headers in place of the authorization.
    pub(super) headers: Option<Vec<(String, Secret)>>,
    /// Headers beside the authorization.
    pub(super) added_headers: Vec<(String, Secret)>,
    pub(super) call_id: Option<Arc<str>>,
}

type KeyFunction = Arc<dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

/// The key of a connection.
#[derive(Clone, Default)]
pub(super) enum Key {
    /// `OPENAI_API_KEY` of the environment.
    #[default]
    Environment,
    Fixed(Secret),
    /// Asked for at each connection.
    Function(KeyFunction),
    None,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::Fixed(_) => "Fixed([secret])",
            Self::Function(_) => "Function",
            Self::None => "None",
        })
    }
}

impl Key {
    async fn resolve(&self) -> Result<Option<Secret>, RealtimeModelError> {
        let key = match self {
            Self::Environment => std::env::var("OPENAI_API_KEY").ok(),
            Self::Fixed(key) => return Ok(Some(key.clone())),
            Self::Function(function) => Some(call(function).await.map_err(|error| {
                RealtimeModelError::caused_by(
                    RealtimeModelErrorKind::Configuration,
                    format!("the function that gives the key failed: {error}"),
                    error,
                )
            })?),
            Self::None => None,
        };
        Ok(key.filter(|key| !key.is_empty()).map(Secret::new))
    }
}

/// Calls the function. A panic becomes an error.
async fn call(function: &KeyFunction) -> Result<String, BoxError> {
    let called = AssertUnwindSafe(async { function().await }).catch_unwind();
    called.await.unwrap_or_else(|_| Err("it panicked".into()))
}

impl Endpoint {
    /// The handshake of a connection to a model, or to the call.
    pub(super) async fn handshake(&self, model: &str) -> Result<Handshake, RealtimeModelError> {
        let key = self.key.resolve().await?;
        let base_url = self
            .base_url
            .as_deref()
            .unwrap_or(BASE_URL)
            .trim_end_matches('/');
        let encode = |text| utf8_percent_encode(text, UNRESERVED).to_string();
        let url = match (&self.url, &self.call_id) {
            (Some(url), _) => (**url).to_owned(),
            (None, Some(call)) => format!("{base_url}/v1/realtime?call_id={}", encode(call)),
            (None, None) => format!("{base_url}/v1/realtime?model={}", encode(model)),
        };
        let mut headers = match (&self.headers, key) {
            (Some(headers), _) => headers.clone(),
            (None, Some(key)) => {
                let value = Secret::new(format!("Bearer {}", key.expose()));
                vec![("Authorization".to_owned(), value)]
            }
            (None, None) => {
                return Err(RealtimeModelError::new(
                    RealtimeModelErrorKind::Configuration,
                    "an API key is required: set `OPENAI_API_KEY`, or give the model a key or headers",
                ));
            }
        };
        headers.extend(self.added_headers.iter().cloned());
        Ok(Handshake { url, headers })
    }
}

/// The characters that queries need not encode.
const UNRESERVED: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
