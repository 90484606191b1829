//! Keys and passwords are in nothing that is printed or logged.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use fake_provider::Reply;
use serde_json::json;
use switchboard_core::{ModelRequest, ModelSettings, RunConfig};
use switchboard_models::{Endpoint, ModelError};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber, dispatcher};

use crate::{BOTH, PROVIDER, Script, ask, hello, model};

/// What must not be seen anywhere.
const HIDDEN: [&str; 5] = [
    "hunter-key",
    "hunter-pass",
    "hunter-query",
    "hunter-head",
    "hunter-call",
];

/// Keeps all that is logged, at any level.
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

/// The provider, with secrets wherever there may be some. The provider knows its script by the key.
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

fn assert_hidden(told: &str) {
    for secret in HIDDEN {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
}

#[tokio::test]
async fn whatever_a_server_quotes_is_hidden_in_errors_and_logs() {
    let log = Log::default();
    let _guard = dispatcher::set_default(&dispatcher::Dispatch::new(log.clone()));
    for protocol in BOTH {
        for streamed in [false, true] {
            // The server quotes it all: in the message, the code, its identifier of the request.
            let script = script([]);
            let quoted = format!(
                "{} someone hunter-pass hunter-query hunter-head hunter-call",
                script.key
            );
            let spoken = json!({"error": {"message": quoted, "code": quoted}});
            let plain = format!("{}{quoted}", "x".repeat(250));
            let event = format!(
                "data: {}\n\n",
                json!({"type": "error", "error": spoken["error"]})
            );
            let incomplete = json!({"status": "incomplete", "output": [],
                "incomplete_details": {"reason": quoted}});
            for reply in [
                Reply::status(400, spoken.clone()),
                Reply::status(500, spoken.clone()),
                Reply::status(400, json!(plain)),
                Reply::raw(spoken.to_string(), "application/json"),
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
                let asked = model(&endpoint(&script), protocol);
                let error = ask(&asked, request(), streamed).await.unwrap_err();
                let error = error.downcast::<ModelError>().unwrap();
                assert_hidden(&format!(
                    "{error} {error:?} {:?} {:?} {asked:?}",
                    error.code(),
                    error.request_id()
                ));
            }
        }
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("asking again"), "{logged}");
    assert_hidden(&logged);
}

#[tokio::test]
async fn a_proxys_password_is_hidden() {
    let endpoint = Endpoint::at("http://provider.invalid/v1")
        .proxy("http://someone:hunter-pass@127.0.0.1:1")
        .retries(0);
    let error = ask(&model(&endpoint, BOTH[0]), hello(), false).await;
    let error = error.unwrap_err();
    assert_hidden(&format!("{endpoint:?} {error} {error:?}"));
    let mut cause = error.source();
    while let Some(known) = cause {
        assert_hidden(&format!("{known} {known:?}"));
        cause = known.source();
    }
}

#[test]
fn headers_of_a_request_are_named_and_not_shown() {
    let request = request();
    let config: RunConfig = RunConfig {
        model_settings: Some(request.settings.clone()),
        ..RunConfig::default()
    };
    let shown = format!("{request:?} {config:?} {:?}", request.settings);
    assert!(shown.contains("x-token"), "{shown}");
    assert_hidden(&shown);
}
