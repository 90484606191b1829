//! Realtime sessions: the steps of a case, one after another, on a session without a network.

mod agents;
pub(crate) mod context;
pub(crate) mod settings;
mod transport;
pub(crate) mod wire;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxFuture;
use switchboard_core::model::Usage;
use switchboard_core::run::{ToolErrorMessage, ToolErrorText};
use switchboard_core::tool::ToolErrorKind;
use switchboard_core::{ErrorKind, RunContext};
use switchboard_realtime::items::RealtimeItem;
use switchboard_realtime::model::{
    AudioPart, RealtimeConnectionStatus, RealtimeInputPart, RealtimeModelAudio, RealtimeModelDelta,
    RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent, RealtimeModelUsage,
    RealtimeServerError, RealtimeToolCall, RealtimeTurnEnd, RealtimeUserInput,
};
use switchboard_realtime::{
    BuiltTeam, RealtimeError, RealtimeErrorKind, RealtimeEvent, RealtimeHandle, RealtimePolicy,
    RealtimeRunner, RealtimeSession, SessionProblem,
};

use tokio::task::JoinHandle;

use self::agents::Guardrails;
use self::context::SessionContext;
use self::transport::Transport;
use crate::lock::lock;
use crate::serialize;

/// The number of times that everything else may run before the next step.
const REST: usize = 300;

/// Runs a case, and returns what happened in the form of its `expect`.
pub(crate) async fn run(case: &Value) -> Result<Value, String> {
    let is_full = case["full"] == json!(true);
    let context = Arc::new(SessionContext::new(&case["context"]));
    let mut guardrails = Guardrails::new();
    let team = agents::build_team(case, &mut guardrails)?;
    let start = case["start"].as_str().unwrap_or_default();
    let first = team.get(start).ok_or("the first agent is missing")?;
    let transport = Transport::new(case);
    let runner = runner(case, RealtimeRunner::new(first), &mut guardrails)?;
    let runner = runner.context(context.clone()).model(transport.clone());
    let connected = runner.connect().await;
    let mut got = json!({});
    let session = match connected {
        Ok(session) => session,
        Err(error) => {
            got["error"] = error_of(&error);
            got["error"]["during"] = json!("connect");
            got["connect"] = json!(transport.connect_settings());
            got["sent"] = json!(transport.sent());
            got["events"] = json!([]);
            got["log"] = json!(context.entries());
            got["last_agent"] = json!(start);
            got["history"] = json!([]);
            return Ok(got);
        }
    };
    let handle = session.handle();
    let reader = Reader::begin(session, is_full);
    rest().await;
    let scenario = Scenario {
        team: &team,
        handle: &handle,
        transport: &transport,
        context: &context,
    };
    let marks = || {
        json!([
            transport.sent().len(),
            reader.events().len(),
            context.entries().len()
        ])
    };
    let mut all_marks = vec![marks()];
    let mut step_errors = Vec::new();
    let mut actions: Vec<(usize, JoinHandle<Result<(), RealtimeError>>)> = Vec::new();
    for (at, step) in list(&case["server"]).enumerate() {
        if let Some(action) = scenario.take(step)? {
            actions.push((at, tokio::spawn(action)));
        }
        rest().await;
        all_marks.push(marks());
        // An action may wait for something that a later step brings.
        for (at, action) in actions.extract_if(.., |(_, action)| action.is_finished()) {
            if let Err(error) = action.await.map_err(|error| error.to_string())? {
                step_errors.push(json!({"step": at, "type": error_of(&error)["type"]}));
            }
        }
    }
    got["connect"] = json!(transport.connect_settings());
    got["sent"] = json!(transport.sent());
    got["events"] = json!(reader.events());
    got["log"] = json!(context.entries());
    got["last_agent"] = json!(handle.agent());
    got["error"] = reader.error();
    if is_full {
        got["history"] = json!(handle.history());
        got["closed"] = json!(transport.is_closed());
        got["ended"] = json!(reader.has_ended());
        got["marks"] = json!(all_marks);
    }
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
    Ok(got)
}

/// The `expect` of a case, with the differences that do not count left out.
pub(crate) fn expected(case: &Value) -> Value {
    let mut expected = case["expect"].clone();
    if let Some(error) = expected.get_mut("error").and_then(Value::as_object_mut) {
        error.shift_remove("message");
    }
    let errors = expected
        .get_mut("step_errors")
        .and_then(Value::as_array_mut);
    for error in errors
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        error.shift_remove("message");
    }
    expected
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Lets everything run that can.
async fn rest() {
    for _ in 0..REST {
        tokio::task::yield_now().await;
    }
}

fn runner(
    case: &Value,
    mut runner: RealtimeRunner<SessionContext>,
    guardrails: &mut Guardrails,
) -> Result<RealtimeRunner<SessionContext>, String> {
    runner = runner
        .policy(RealtimePolicy::reference())
        .model_settings(settings::parse(&case["model_settings"])?)
        .connection_settings(settings::parse(&case["initial_model_settings"])?);
    if case["async_tool_calls"] != json!(true) {
        runner = runner.one_tool_at_a_time();
    }
    if let Some(length) = case["debounce_text_length"].as_u64() {
        runner = runner.debounce_text_length(usize::try_from(length).unwrap_or(usize::MAX));
    }
    if case["pre_approval_tool_input_guardrails"] == json!(true) {
        runner = runner.guardrails_before_approval();
    }
    if case["raw"] == json!(true) {
        runner = runner.raw_events();
    }
    for guardrail in list(&case["output_guardrails"]) {
        runner = runner.output_guardrail(guardrails.get(guardrail));
    }
    let rejection = case["rejection_text"].as_str().map(str::to_owned);
    Ok(runner.configure(|config| {
        let text = move |_ctx: RunContext<SessionContext>, failure: ToolErrorMessage| {
            if failure.error.kind() != ToolErrorKind::NotApproved {
                return None;
            }
            rejection
                .as_ref()
                .map(|text| text.replace("{tool}", &failure.tool))
        };
        config.tool_error_text = Some(ToolErrorText::new(text));
    }))
}

/// The reader of a session's events.
struct Reader(Arc<Mutex<Read>>);

#[derive(Default)]
struct Read {
    events: Vec<Value>,
    error: Option<Value>,
    has_ended: bool,
}

impl Reader {
    fn begin(mut session: RealtimeSession<SessionContext>, is_full: bool) -> Self {
        let read: Arc<Mutex<Read>> = Arc::default();
        let reader = read.clone();
        tokio::spawn(async move {
            while let Some(event) = session.next().await {
                match event {
                    Ok(event) => lock(&reader).events.extend(render(&event, is_full)),
                    Err(error) => {
                        lock(&reader).error = Some(error_of(&error));
                        return;
                    }
                }
            }
            lock(&reader).has_ended = true;
            // Dropping the session would close it.
            std::future::pending::<()>().await;
        });
        Self(read)
    }

    fn events(&self) -> Vec<Value> {
        lock(&self.0).events.clone()
    }

    fn error(&self) -> Value {
        json!(lock(&self.0).error)
    }

    fn has_ended(&self) -> bool {
        lock(&self.0).has_ended
    }
}

/// An event as the corpus writes it; `None` if it is left out.
fn render(event: &RealtimeEvent, is_full: bool) -> Option<Value> {
    let mut value = event.to_value();
    let is_thin_event = !matches!(
        event,
        RealtimeEvent::HistoryAdded(_)
            | RealtimeEvent::HistoryUpdated(_)
            | RealtimeEvent::GuardrailTripped { .. }
            | RealtimeEvent::Raw(_)
    );
    let fields = value.as_object_mut()?;
    if let RealtimeEvent::Audio { data, .. } = event {
        fields.shift_remove("bytes");
        fields.insert("audio".to_owned(), STANDARD.encode(data).into());
    }
    if matches!(
        event,
        RealtimeEvent::ToolStart(_) | RealtimeEvent::ToolEnd { .. }
    ) {
        fields.shift_remove("call_id");
    }
    if let RealtimeEvent::Error(SessionProblem::Server(RealtimeServerError::Unreadable(error))) =
        event
    {
        let exception = model_error_type(error.kind());
        fields.insert("error".to_owned(), json!({"exception": exception}));
    }
    if !is_full {
        for field in ["arguments", "output", "call_id", "error"] {
            fields.shift_remove(field);
        }
    }
    (is_full || is_thin_event).then_some(value)
}

/// The type of an error in the words of the corpus.
fn error_of(error: &RealtimeError) -> Value {
    if let Some(error) = error.engine_error() {
        return json!({"type": serialize::error_type(error), "message": error.to_string()});
    }
    let kind = match error.kind() {
        RealtimeErrorKind::Engine(ErrorKind::ModelBehavior) => "ModelBehaviorError",
        RealtimeErrorKind::Engine(ErrorKind::Configuration) => "UserError",
        RealtimeErrorKind::Model(kind) => model_error_type(kind),
        _ => "RuntimeError",
    };
    json!({"type": kind, "message": error.to_string()})
}

/// The type of an error of the model in the words of the corpus.
fn model_error_type(kind: RealtimeModelErrorKind) -> &'static str {
    match kind {
        RealtimeModelErrorKind::Configuration => "UserError",
        RealtimeModelErrorKind::NotConnected => "NotConnected",
        RealtimeModelErrorKind::Transport | RealtimeModelErrorKind::Timeout => "TransportError",
        RealtimeModelErrorKind::Parse => "ParseError",
        RealtimeModelErrorKind::Validation => "ValidationError",
        _ => "RuntimeError",
    }
}

/// A session whose steps are taken.
struct Scenario<'a> {
    team: &'a BuiltTeam<SessionContext>,
    handle: &'a RealtimeHandle<SessionContext>,
    transport: &'a Transport,
    context: &'a SessionContext,
}

impl Scenario<'_> {
    /// Takes a step. Returns the user's action, if it is one.
    fn take(&self, step: &Value) -> Result<Option<Action>, String> {
        let together = step["together"].as_array().map(Vec::as_slice);
        for step in together.unwrap_or(std::slice::from_ref(step)) {
            if let Some(event) = model_event(step)? {
                self.transport.emit(event);
            } else if let Some(gate) = step["release"].as_str() {
                self.context.open(gate);
            } else if let Some(kind) = step["refuse"].as_str() {
                self.transport.refuse(kind);
            } else if !step["set_context"].is_null() {
                self.context.set(&step["set_context"]);
            } else {
                return self.act(step).map(Some);
            }
        }
        Ok(None)
    }

    fn act(&self, step: &Value) -> Result<Action, String> {
        let handle = self.handle.clone();
        if let Some(message) = user_input(step)? {
            return Ok(Box::pin(async move { handle.send_message(message).await }));
        }
        if let Some(audio) = step["send_audio"].as_str() {
            let (audio, is_last) = (bytes(audio)?, step["commit"] == json!(true));
            return Ok(Box::pin(async move {
                if is_last {
                    handle.send_last_audio(audio).await
                } else {
                    handle.send_audio(audio).await
                }
            }));
        }
        if let Some(name) = step["update_agent"].as_str() {
            let agent = self.team.get(name).ok_or("an agent is missing")?.clone();
            return Ok(Box::pin(async move { handle.update_agent(&agent).await }));
        }
        if let Some((call_id, decision)) = decision(step) {
            return Ok(Box::pin(
                async move { handle.decide(call_id, decision).await },
            ));
        }
        if !step["interrupt"].is_null() {
            return Ok(Box::pin(async move { handle.interrupt().await }));
        }
        if !step["close"].is_null() {
            return Ok(Box::pin(async move { handle.close().await }));
        }
        Err(format!("the step {step} is not known"))
    }
}

/// An action of the user.
type Action = BoxFuture<'static, Result<(), RealtimeError>>;

fn bytes(audio: &str) -> Result<Bytes, String> {
    let decoded = STANDARD.decode(audio);
    decoded.map(Bytes::from).map_err(|error| error.to_string())
}

fn decision(step: &Value) -> Option<(String, Decision)> {
    let (call_id, mut decision) = match (step["approve"].as_str(), step["reject"].as_str()) {
        (Some(call_id), _) => (call_id, Decision::approve()),
        (None, Some(call_id)) => (call_id, Decision::reject()),
        (None, None) => return None,
    };
    if let Some(message) = step["message"].as_str() {
        decision = decision.message(message);
    }
    if step["always"] == json!(true) {
        decision = decision.always();
    }
    Some((call_id.to_owned(), decision))
}

fn user_input(step: &Value) -> Result<Option<RealtimeUserInput>, String> {
    if let Some(text) = step["say"].as_str() {
        return Ok(Some(text.into()));
    }
    if step["send"].is_null() {
        return Ok(None);
    }
    let content = step["send"]["content"].clone();
    let parts: Vec<RealtimeInputPart> =
        serde_json::from_value(content).map_err(|error| error.to_string())?;
    Ok(Some(RealtimeUserInput::Message(parts)))
}

/// The event of the model that a step is; `None` if it is another step.
fn model_event(step: &Value) -> Result<Option<RealtimeModelEvent>, String> {
    let text = |value: &Value| -> Arc<str> { value.as_str().unwrap_or_default().into() };
    let optional = |value: &Value| value.as_str().map(Arc::<str>::from);
    if let Some(turn) = step["turn"].as_str() {
        let response_id = optional(&step["response_id"]);
        return Ok(Some(if turn == "started" {
            RealtimeModelEvent::TurnStarted { response_id }
        } else {
            let mut end = RealtimeTurnEnd::default();
            end.response_id = response_id;
            RealtimeModelEvent::TurnEnded(end)
        }));
    }
    if let Some(name) = step["call"].as_str() {
        let arguments = text(&step["arguments"]);
        let call = RealtimeToolCall::new(name, text(&step["call_id"]), arguments);
        return Ok(Some(RealtimeModelEvent::ToolCall(call)));
    }
    let event = &step["event"];
    if event.is_null() {
        return Ok(None);
    }
    let index = event["content_index"].as_u64().unwrap_or_default();
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    let part = || AudioPart::new(text(&event["item_id"]), index);
    let delta = || RealtimeModelDelta {
        item_id: text(&event["item_id"]),
        delta: event["delta"].as_str().unwrap_or_default().to_owned(),
        response_id: text(&event["response_id"]),
    };
    Ok(Some(match event["type"].as_str().unwrap_or_default() {
        "audio" => RealtimeModelEvent::Audio(RealtimeModelAudio {
            data: bytes(event["audio"].as_str().unwrap_or_default())?,
            response_id: text(&event["response_id"]),
            part: part(),
        }),
        "audio_done" => RealtimeModelEvent::AudioDone(part()),
        "audio_interrupted" => RealtimeModelEvent::AudioInterrupted(part()),
        "transcript_delta" => RealtimeModelEvent::TranscriptDelta(delta()),
        "output_text_delta" => RealtimeModelEvent::OutputTextDelta(delta()),
        "input_audio_transcription_completed" => {
            RealtimeModelEvent::InputAudioTranscriptionCompleted {
                item_id: text(&event["item_id"]),
                transcript: event["transcript"].as_str().unwrap_or_default().to_owned(),
            }
        }
        "input_audio_timeout_triggered" => RealtimeModelEvent::InputAudioTimeoutTriggered {
            item_id: text(&event["item_id"]),
            audio_start_ms: event["audio_start_ms"].as_u64().unwrap_or_default(),
            audio_end_ms: event["audio_end_ms"].as_u64().unwrap_or_default(),
        },
        "item_updated" => {
            let item: RealtimeItem =
                serde_json::from_value(event["item"].clone()).map_err(|error| error.to_string())?;
            RealtimeModelEvent::ItemUpdated(item)
        }
        "item_deleted" => RealtimeModelEvent::ItemDeleted {
            item_id: text(&event["item_id"]),
        },
        "connection_status" => {
            RealtimeModelEvent::ConnectionStatus(match event["status"].as_str() {
                Some("connecting") => RealtimeConnectionStatus::Connecting,
                Some("connected") => RealtimeConnectionStatus::Connected,
                _ => RealtimeConnectionStatus::Disconnected { close: None },
            })
        }
        "end_of_stream" => RealtimeModelEvent::EndOfStream,
        "usage" => {
            let count = |name: &str| event[name].as_u64().unwrap_or_default();
            let mut usage = RealtimeModelUsage::default();
            usage.usage = Usage {
                requests: 1,
                input_tokens: count("input_tokens"),
                output_tokens: count("output_tokens"),
                ..Usage::default()
            };
            usage.total_tokens = count("total_tokens");
            RealtimeModelEvent::Usage(Box::new(usage))
        }
        "error" => {
            let error = serde_json::from_value(event["error"].clone());
            let error = error.map_err(|error| error.to_string())?;
            RealtimeModelEvent::Error(RealtimeServerError::Reported(error))
        }
        "exception" => {
            let message = event["message"].as_str().unwrap_or_default();
            let kind = RealtimeModelErrorKind::Other;
            RealtimeModelEvent::Exception {
                error: RealtimeModelError::new(kind, message),
                context: None,
            }
        }
        "other" => RealtimeModelEvent::Other(event["data"].clone()),
        "raw_server_event" => RealtimeModelEvent::RawServerEvent(event["data"].to_string().into()),
        other => return Err(format!("the model event {other} is not known")),
    }))
}
