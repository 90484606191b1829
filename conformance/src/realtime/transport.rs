//! The model of realtime scenarios: records what is sent, and passes on the events of the case.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use serde_json::{Map, Value, json};
use switchboard_realtime::model::{
    RealtimeConnection, RealtimeInterrupt, RealtimeModel, RealtimeModelCommand,
    RealtimeModelConfig, RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent,
    RealtimeTransport, RealtimeUserInput,
};
use tokio::sync::mpsc;

use super::settings;
use crate::lock::lock;

/// The transport of a scenario; clones share it.
#[derive(Clone, Default)]
pub(super) struct Transport(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_full: bool,
    connect: Option<Value>,
    connect_error: Option<String>,
    events: Option<mpsc::UnboundedSender<RealtimeModelEvent>>,
    sent: Vec<Value>,
    refuses: Option<String>,
    is_closed: bool,
}

impl Transport {
    pub(super) fn new(case: &Value) -> Self {
        Self(Arc::new(Mutex::new(State {
            is_full: case["full"] == json!(true),
            connect_error: case["connect_error"].as_str().map(str::to_owned),
            ..State::default()
        })))
    }

    pub(super) fn emit(&self, event: RealtimeModelEvent) {
        let state = lock(&self.0);
        if let Some(events) = state.events.as_ref().filter(|_| !state.is_closed) {
            let _ = events.send(event);
        }
    }

    /// Refuses the next command of a kind.
    pub(super) fn refuse(&self, kind: &str) {
        lock(&self.0).refuses = Some(kind.to_owned());
    }

    pub(super) fn connect_settings(&self) -> Option<Value> {
        lock(&self.0).connect.clone()
    }

    pub(super) fn sent(&self) -> Vec<Value> {
        lock(&self.0).sent.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.0).is_closed
    }
}

impl RealtimeModel for Transport {
    async fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> Result<RealtimeConnection, RealtimeModelError> {
        let mut state = lock(&self.0);
        state.connect = Some(settings::render(&config.settings, state.is_full));
        if let Some(message) = &state.connect_error {
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Other,
                message,
            ));
        }
        let (events, receiver) = mpsc::unbounded_channel();
        state.events = Some(events);
        let events = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((event, receiver))
        });
        Ok(RealtimeConnection::new(self.clone(), events))
    }
}

impl RealtimeTransport for Transport {
    async fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> Result<Vec<RealtimeModelEvent>, RealtimeModelError> {
        let mut state = lock(&self.0);
        if state.is_closed {
            let kind = RealtimeModelErrorKind::NotConnected;
            return Err(RealtimeModelError::new(kind, "the transport is closed"));
        }
        let mut entry = render(&command, state.is_full);
        let is_refused = state
            .refuses
            .as_ref()
            .is_some_and(|kind| entry.get(kind).is_some());
        if is_refused {
            state.refuses = None;
            entry["refused"] = json!(true);
            state.sent.push(entry);
            let kind = RealtimeModelErrorKind::Other;
            return Err(RealtimeModelError::new(kind, "refused by the case"));
        }
        state.sent.push(entry);
        Ok(Vec::new())
    }

    async fn close(&self) -> Result<(), RealtimeModelError> {
        let mut state = lock(&self.0);
        state.is_closed = true;
        state.events = None;
        Ok(())
    }
}

/// A command as the corpus writes it.
fn render(command: &RealtimeModelCommand, is_full: bool) -> Value {
    match command {
        RealtimeModelCommand::UserInput(input)
        | RealtimeModelCommand::UserInputAfter { input, .. } => {
            json!({"user_input": user_input(input)})
        }
        RealtimeModelCommand::Audio { audio, commit } => {
            json!({"audio": {"audio": STANDARD.encode(audio), "commit": commit}})
        }
        RealtimeModelCommand::ToolOutput(output) => json!({"tool_output": {
            "call_id": output.tool_call.call_id,
            "output": output.output,
            "start_response": output.start_response,
        }}),
        RealtimeModelCommand::UpdateSession { settings, .. } => {
            json!({"session_update": settings::render(settings, is_full)})
        }
        RealtimeModelCommand::Interrupt(interrupt) => json!({"interrupt": flags(interrupt)}),
        other => json!({"other": format!("{other:?}")}),
    }
}

fn user_input(input: &RealtimeUserInput) -> Value {
    match input {
        RealtimeUserInput::Text(text) => json!(text),
        RealtimeUserInput::Message(parts) => {
            json!({"type": "message", "role": "user", "content": parts})
        }
    }
}

/// The fields of an interruption that are set.
fn flags(interrupt: &RealtimeInterrupt) -> Value {
    let value = serde_json::to_value(interrupt).unwrap_or_default();
    let fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    let set = fields
        .into_iter()
        .filter(|(_, value)| !matches!(value, Value::Null | Value::Bool(false)));
    Value::Object(set.collect())
}
