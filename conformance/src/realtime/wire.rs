//! Realtime sessions on a real WebSocket, against a scripted server.

mod case;
mod tap;

pub(crate) use case::expected;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_provider::{RealtimeConnection, RealtimeServer};
use serde_json::{Value, json};
use switchboard_core::model::Usage;
use switchboard_realtime::model::{
    PlaybackTracker, RealtimeInterrupt, RealtimeModelCommand, RealtimeRawCommand,
};
use switchboard_realtime::openai::{ConnectionSettings, OpenAiRealtimeModel};
use switchboard_realtime::{RealtimeError, RealtimeHandle, RealtimeRunner};
use tokio::task::JoinHandle;

use self::tap::Tap;
use super::agents::{self, Guardrails};
use super::context::SessionContext;
use super::transport::Transport;
use super::{Action, Reader, Scenario, error_of, list, rest, runner};

/// Runs a case, and returns what happened in the form of its `expect`.
pub(crate) async fn run(case: &Value) -> Result<Value, String> {
    let case = case::prepare(case);
    let server = RealtimeServer::start().await;
    let server = server.map_err(|error| error.to_string())?;
    let status = case["connection"]["refused_with"].as_u64();
    server.refuse_with(status.and_then(|status| u16::try_from(status).ok()));
    let context = Arc::new(SessionContext::new(&case["context"]));
    let mut guardrails = Guardrails::new();
    let team = agents::build_team(&case, &mut guardrails)?;
    let start = case["start"].as_str().unwrap_or_default();
    let first = team.get(start).ok_or("the first agent is missing")?;
    let clock = Arc::new(AtomicU64::new(0));
    let tap = Tap::new(model(&case, &server, clock.clone()));
    let tracker = PlaybackTracker::new();
    let mut runner = runner(&case, RealtimeRunner::new(first), &mut guardrails)?;
    runner = runner.connection_settings(case::connection_settings(&case)?);
    if case["connection"]["playback_tracker"] == json!(true) {
        runner = runner.playback(tracker.clone());
    }
    if case["tracing_disabled"] == json!(true) {
        runner = runner.provider_tracing_off();
    }
    let connected = runner.context(context.clone()).model(tap.clone()).connect();
    let session = match connected.await {
        Ok(session) => session,
        Err(error) => return connect_error(&case, &server, &context, &error).await,
    };
    let peer = server.connection().await;
    let handle = session.handle();
    let reader = Reader::begin(session, true);
    let settled = Settled {
        peer: &peer,
        tap: &tap,
        reader: &reader,
        context: &context,
    };
    settled.wait().await;
    let transport = Transport::new(&case);
    let scenario = Scenario {
        team: &team,
        handle: &handle,
        transport: &transport,
        context: &context,
    };
    let mut marks = vec![settled.marks()];
    let mut step_errors = Vec::new();
    let mut actions: Vec<(usize, JoinHandle<Result<(), RealtimeError>>)> = Vec::new();
    for (at, step) in list(&case["script"]).enumerate() {
        let steps = Steps {
            peer: &peer,
            handle: &handle,
            tracker: &tracker,
            clock: &clock,
        };
        let action = match steps.take(step)? {
            Taken::Done => None,
            Taken::Action(action) => Some(action),
            Taken::Other => scenario.take(step)?,
        };
        actions.extend(action.map(|action| (at, tokio::spawn(action))));
        settled.wait().await;
        marks.push(settled.marks());
        for (at, action) in actions.extract_if(.., |(_, action)| action.is_finished()) {
            if let Err(error) = action.await.map_err(|error| error.to_string())? {
                step_errors.push(json!({"step": at, "type": error_of(&error)["type"]}));
            }
        }
    }
    let mut got = json!({
        "events": reader.events(),
        "log": context.entries(),
        "last_agent": handle.agent(),
        "history": handle.history(),
        "error": reader.error(),
        "closed": handle.is_closed(),
        "ended": reader.has_ended(),
        "marks": marks,
        "handshakes": handshakes(&server, &case),
        "client": peer.frames(),
        "model_events": tap.events(),
    });
    if !step_errors.is_empty() {
        got["step_errors"] = json!(step_errors);
    }
    let usage = handle.usage();
    if usage != Usage::default() {
        got["usage"] = json!({
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens(),
        });
    }
    // The session may be closed already.
    let _ = handle.close().await;
    got["close_code"] = json!(close_code(&peer).await);
    check_frames(&server)?;
    Ok(case::name_ids(got, &peer.frames()))
}

/// The outcome of a case whose session did not open.
async fn connect_error(
    case: &Value,
    server: &RealtimeServer,
    context: &SessionContext,
    error: &RealtimeError,
) -> Result<Value, String> {
    let mut got = json!({
        "error": error_of(error),
        "handshakes": handshakes(server, case),
        "client": [], "model_events": [], "events": [], "history": [],
        "log": context.entries(),
        "last_agent": case["start"],
    });
    got["error"]["during"] = json!("connect");
    let peer = tokio::time::timeout(Duration::from_millis(50), server.connection()).await;
    if let Ok(peer) = peer {
        got["close_code"] = json!(close_code(&peer).await);
        got["client"] = json!(peer.frames());
    }
    check_frames(server)?;
    Ok(got)
}

/// No frame may be one that the official types refuse.
fn check_frames(server: &RealtimeServer) -> Result<(), String> {
    match server.violations().first() {
        None => Ok(()),
        Some(violation) => Err(violation.clone()),
    }
}

async fn close_code(peer: &RealtimeConnection) -> Option<u16> {
    let ended = tokio::time::timeout(Duration::from_secs(5), peer.ended()).await;
    ended.ok()
}

fn model(case: &Value, server: &RealtimeServer, clock: Arc<AtomicU64>) -> OpenAiRealtimeModel {
    let connection = &case["connection"];
    let mut settings = ConnectionSettings::default();
    if let Some(bytes) = connection["max_size"].as_u64() {
        settings.max_frame_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let mut model = OpenAiRealtimeModel::new()
        .base_url(server.url())
        .connection(settings)
        .clock(move || Duration::from_millis(clock.load(Ordering::SeqCst)));
    model = match connection.get("api_key") {
        None => model.api_key("KEY"),
        Some(key) => match key.as_str() {
            Some(key) => model.api_key(key),
            None => model.without_api_key(),
        },
    };
    if let Some(path) = connection["url"].as_str() {
        model = model.url(format!("{}{path}", server.url()));
    }
    if let Some(headers) = connection["headers"].as_object() {
        let headers = headers.iter();
        model = model.headers(headers.map(|(name, value)| {
            let value = value.as_str().unwrap_or_default();
            (name.clone(), value.to_owned())
        }));
    }
    if let Some(call_id) = connection["call_id"].as_str() {
        model = model.call_id(call_id);
    }
    model
}

/// The handshakes, with the reference's name of the client.
fn handshakes(server: &RealtimeServer, case: &Value) -> Value {
    let expected = &case["expect"]["handshakes"];
    let handshakes = server.handshakes().into_iter().enumerate();
    let rendered = handshakes.map(|(index, handshake)| {
        let mut query = json!({});
        for pair in handshake.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            query[name] = json!(value);
        }
        let mut headers = json!({});
        for (name, value) in &handshake.headers {
            let is_left_out = matches!(name.as_str(), "host" | "connection" | "upgrade")
                || name.starts_with("sec-websocket-");
            if !is_left_out {
                headers[name] = json!(value);
            }
        }
        if headers["user-agent"].is_string() {
            headers["user-agent"] = expected[index]["headers"]["user-agent"].clone();
        }
        json!({"path": handshake.path, "query": query, "headers": headers})
    });
    rendered.collect()
}

/// Waits until everything has come to rest.
struct Settled<'a> {
    peer: &'a RealtimeConnection,
    tap: &'a Tap,
    reader: &'a Reader,
    context: &'a SessionContext,
}

impl Settled<'_> {
    /// The number of rounds in which nothing may change.
    const QUIET: u32 = 4;

    async fn wait(&self) {
        let mut last = Value::Null;
        let mut quiet = 0;
        while quiet < Self::QUIET {
            // The answer comes after everything that the client had to send.
            if !self.peer.ping().await {
                // The connection is over: only the client still moves.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            rest().await;
            let marks = self.marks();
            quiet = if marks == last { quiet + 1 } else { 0 };
            last = marks;
        }
    }

    fn marks(&self) -> Value {
        json!([
            self.peer.frames().len(),
            self.tap.events().len(),
            self.reader.events().len(),
            self.context.entries().len()
        ])
    }
}

/// The steps that only sessions on a WebSocket have.
struct Steps<'a> {
    peer: &'a RealtimeConnection,
    handle: &'a RealtimeHandle<SessionContext>,
    tracker: &'a PlaybackTracker,
    clock: &'a AtomicU64,
}

/// The outcome of a step.
enum Taken {
    Done,
    Action(Action),
    /// It is one of those that every session has.
    Other,
}

impl Steps<'_> {
    fn take(&self, step: &Value) -> Result<Taken, String> {
        if let Some(event) = step.get("server") {
            self.peer.send(&case::with_ids(event, &self.peer.frames()));
        } else if let Some(text) = step["server_text"].as_str() {
            self.peer.send_text(text);
        } else if let Some(bytes) = step["server_binary"].as_str() {
            let bytes = STANDARD.decode(bytes).map_err(|error| error.to_string())?;
            self.peer.send_binary(bytes);
        } else if step["server_close"].is_object() {
            let close = &step["server_close"];
            let code = close["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok());
            let reason = close["reason"].as_str().unwrap_or_default();
            self.peer.close(code.unwrap_or(1000), reason);
        } else if !step["server_drop"].is_null() {
            self.peer.break_off();
        } else if let Some(ms) = step["clock_ms"].as_u64() {
            self.clock.fetch_add(ms, Ordering::SeqCst);
        } else if step["played"].is_object() {
            self.play(&step["played"])?;
        } else if step["raw"].is_object() {
            let raw = serde_json::from_value::<RealtimeRawCommand>(step["raw"].clone());
            let raw = raw.map_err(|error| error.to_string())?;
            return Ok(self.send(RealtimeModelCommand::Raw(raw)));
        } else if step["model_interrupt"].is_object() {
            let interrupt =
                serde_json::from_value::<RealtimeInterrupt>(step["model_interrupt"].clone());
            let interrupt = interrupt.map_err(|error| error.to_string())?;
            return Ok(self.send(RealtimeModelCommand::Interrupt(interrupt)));
        } else {
            return Ok(Taken::Other);
        }
        Ok(Taken::Done)
    }

    /// Sends a command to the model.
    fn send(&self, command: RealtimeModelCommand) -> Taken {
        let handle = self.handle.clone();
        Taken::Action(Box::pin(async move { handle.send(command).await }))
    }

    fn play(&self, played: &Value) -> Result<(), String> {
        let item = played["item_id"].as_str().unwrap_or_default();
        let index = played["content_index"]
            .as_u64()
            .and_then(|index| u32::try_from(index).ok());
        let index = index.unwrap_or_default();
        match (played["ms"].as_f64(), played["audio"].as_str()) {
            (Some(ms), _) => self.tracker.played_ms(item, index, ms),
            (None, Some(audio)) => {
                let audio = STANDARD.decode(audio).map_err(|error| error.to_string())?;
                self.tracker.played_bytes(item, index, audio.len());
            }
            (None, None) => return Err(format!("{played} plays nothing")),
        }
        Ok(())
    }
}
