//! Models over HTTP, against `fake-provider`, which validates every request.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod audio;
mod connections;
mod default_settings;
mod failures;
mod history;
mod odd_answers;
mod odd_items;
mod prompts;
mod protocols;
mod retries;
mod secrets;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod transport;
mod tunnel;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use fake_provider::{FakeProvider, Reply, Request};
use futures_util::StreamExt as _;
use support::{BOTH, Protocol};
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelEvent, ModelHandle};
use switchboard_core::{Agent, Item, ModelRequest, ModelResponse, Runner};
use switchboard_models::{Endpoint, ModelError};

/// The provider that all tests share; each test has its own key.
static PROVIDER: LazyLock<FakeProvider> = LazyLock::new(|| FakeProvider::on_thread().unwrap());

/// The provider's script for one key.
struct Script {
    key: String,
}

impl Script {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let key = format!("sk-test-{}", NEXT.fetch_add(1, Ordering::SeqCst));
        PROVIDER.script(&key, replies);
        Self { key }
    }

    /// The provider's endpoint, without retries.
    fn endpoint(&self) -> Endpoint {
        Endpoint::at(PROVIDER.url()).key(&self.key).retries(0)
    }

    fn model(&self, protocol: Protocol) -> ModelHandle {
        model(&self.endpoint(), protocol)
    }

    fn requests(&self) -> Vec<Request> {
        PROVIDER.requests_of(&self.key)
    }

    /// The bodies that were sent. Panics if one of them is invalid.
    fn bodies(&self) -> Vec<serde_json::Value> {
        let violations = PROVIDER.violations_of(&self.key);
        assert!(violations.is_empty(), "{violations:?}");
        self.requests()
            .into_iter()
            .map(|request| request.body)
            .collect()
    }
}

fn model(endpoint: &Endpoint, protocol: Protocol) -> ModelHandle {
    protocol.model(&endpoint.connect().unwrap())
}

fn hello() -> ModelRequest {
    ModelRequest::new(vec![Item::user("Hello")])
}

/// Sends a request, streamed or not.
async fn ask(
    model: &ModelHandle,
    request: ModelRequest,
    streamed: bool,
) -> Result<ModelResponse, BoxError> {
    if !streamed {
        return model.respond(request).await;
    }
    let mut events = model.stream(request);
    let mut answer = None;
    while let Some(event) = events.next().await {
        if let ModelEvent::Completed(completed) = event? {
            answer = Some(completed);
        }
    }
    Ok(answer.expect("a stream ends with an answer or an error"))
}

async fn failure(model: &ModelHandle, streamed: bool) -> Box<ModelError> {
    let error = ask(model, hello(), streamed).await.unwrap_err();
    error.downcast().unwrap()
}

/// The final text of a run with this model.
async fn run_text(model: ModelHandle) -> String {
    let agent: Agent = Agent::new("A");
    let result = Runner::new(&agent).model(model).run("Hello").await.unwrap();
    result.final_text().into_owned()
}

fn text_of(answer: &ModelResponse) -> String {
    let texts = answer.output.iter().filter_map(Item::text);
    texts.map(|text| text.into_owned()).collect()
}
