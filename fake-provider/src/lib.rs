//! A model provider for tests and benches: real HTTP on a loopback port, scripted replies, and
//! strict checks of requests.
//!
//! It serves `POST {url}/responses` and `POST {url}/chat/completions`, whole and as event streams, and
//! `POST {url}/audio/transcriptions` and `POST {url}/audio/speech`.
//! A script belongs to an API key, so that many tests can share one server:
//!
//! ```
//! use fake_provider::{FakeProvider, Reply};
//! use serde_json::json;
//!
//! # fn main() -> std::io::Result<()> {
//! let provider = FakeProvider::on_thread()?;
//! provider.script("key-1", [Reply::text("Hello!"), Reply::status(429, json!({})).header("retry-after", "1")]);
//! // ... point a client at `provider.url()` with the key `key-1` ...
//! provider.assert_valid();
//! # Ok(())
//! # }
//! ```
//!
//! Every request is checked against the schemas of the official client and further [`Rules`] (see
//! `schemas/README.md`). An invalid request gets a 400 like OpenAI's and is recorded in
//! [`FakeProvider::violations`].
//!
//! [`RealtimeServer`] is a server of the realtime protocol on a WebSocket.

mod body;
mod check;
mod error;
mod form;
mod handler;
mod open_calls;
mod prepared;
mod quirk;
mod realtime;
mod record;
mod render;
mod reply;
mod route;
mod rules;
mod server;
mod shared;

pub use check::{Protocol, check};
pub use error::Problem;
pub use quirk::Quirk;
pub use realtime::{RealtimeConnection, RealtimeHandshake, RealtimeServer, check_client_event};
pub use record::{Request, Violation};
pub use reply::{ErrorForm, Reply, Usage};
pub use rules::Rules;
pub use server::FakeProvider;
