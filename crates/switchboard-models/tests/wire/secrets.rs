//! Keys and passwords are in no error, event, log or `Debug` output.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use fake_provider::Reply;
use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_core::{ModelRequest, ModelSettings, RunConfig};
use switchboard_models::{Endpoint, ModelError};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber, dispatcher};

use crate::{BOTH, PROVIDER, Script, ask, hello, model};

/// The secrets of the tests.
const HIDDEN: [&str; 5] = [
    "hunter-key",
    "hunter-pass",
    "hunter-query",
    "hunter-head",
    "hunter-call",
];

/// Keeps everything that is logged, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn request() -> ModelRequest {
    let mut settings = ModelSettings::default();
    settings
        .extra_headers
        .insert("x-token".to_owned(), "Bearer hunter-call".to_owned());
    let mut request = hello();
    request.settings = settings.into();
    request
}

/// The provider, with a secret in every setting. The provider finds the script by the key.
fn endpoint(script: &Script) -> Endpoint {
    let address = PROVIDER
        .url()
        .replace("http://", "http://someone:hunter-pass@");
    Endpoint::at(format!("{address}?token=hunter-query"))
        .key(&script.key)
        .header("api-key", "hunter-head")
        .retries(1)
}

fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    let script = Script::new([]);
    let key = format!("{}-{}", HIDDEN[0], script.key);
    PROVIDER.script(&key, replies);
    Script { key }
}

fn assert_hidden(shown: &str) {
    for secret in HIDDEN {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test]
async fn secrets_that_a_server_quotes_are_hidden() {
    let log = Log::default();
    let _guard = dispatcher::set_default(&dispatcher::Dispatch::new(log.clone()));
    for protocol in BOTH {
        for streamed in [false, true] {
            // Another test may have reached a log statement for the first time while this one set its subscriber, so that nobody
            // seems to want it.
            tracing_core::callsite::rebuild_interest_cache();
            // In the message, the code and the request's identifier.
            let script = script([]);
            let quoted = format!(
                "{} someone hunter-pass hunter-query hunter-head hunter-call",
                script.key
            );
            let error = json!({"error": {"message": quoted, "code": quoted}});
            let plain = format!("{}{quoted}", "x".repeat(250));
            let event = format!(
                "data: {}\n\n",
                json!({"type": "error", "error": error["error"]})
            );
            let incomplete = json!({"status": "incomplete", "output": [],
                "incomplete_details": {"reason": quoted}});
            for reply in [
                Reply::status(400, error.clone()),
                Reply::status(500, error.clone()),
                Reply::status(400, json!(plain)),
                Reply::raw(error.to_string(), "application/json"),
                Reply::raw(event, "text/event-stream"),
                Reply::raw(incomplete.to_string(), "application/json"),
                Reply::raw(
                    json!({"choices": quoted, "output": quoted}).to_string(),
                    "application/json",
                ),
            ] {
                let reply = reply
                    .header("x-request-id", &quoted)
                    .header("retry-after-ms", "1");
                PROVIDER.script(&script.key, [reply.clone(), reply]);
                let model = model(&endpoint(&script), protocol);
                let error = if streamed {
                    let mut events: Vec<_> = model.stream(request()).collect().await;
                    let error = events.pop().unwrap().unwrap_err();
                    assert_hidden(&format!("{events:?}"));
                    error
                } else {
                    model.respond(request()).await.unwrap_err()
                };
                let error = error.downcast::<ModelError>().unwrap();
                assert_hidden(&format!(
                    "{error} {error:?} {:?} {:?} {model:?}",
                    error.code(),
                    error.request_id()
                ));
            }
        }
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("is retried"), "{logged}");
    assert_hidden(&logged);
}

#[tokio::test]
async fn the_password_of_a_proxy_is_hidden() {
    let endpoint = Endpoint::at("http://provider.invalid/v1")
        .proxy("http://someone:hunter-pass@127.0.0.1:1")
        .retries(0);
    let error = ask(&model(&endpoint, BOTH[0]), hello(), false).await;
    let error = error.unwrap_err();
    assert_hidden(&format!("{endpoint:?} {error} {error:?}"));
    let mut cause = error.source();
    while let Some(error) = cause {
        assert_hidden(&format!("{error} {error:?}"));
        cause = error.source();
    }
}

#[test]
fn debug_shows_the_names_of_headers_but_not_their_values() {
    let request = request();
    let config: RunConfig = RunConfig {
        model_settings: Some(request.settings.clone()),
        ..RunConfig::default()
    };
    let shown = format!("{request:?} {config:?} {:?}", request.settings);
    assert!(shown.contains("x-token"), "{shown}");
    assert_hidden(&shown);
}
