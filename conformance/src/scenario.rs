//! Builds the agents of a case, runs them, and serializes the outcome.

mod agents;
mod filters;
mod hooks;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_core::hooks::HooksHandle;
use switchboard_core::trace::{MemoryTracer, Tracing};
use switchboard_core::{
    Agent, Error, EventKind, FinalOutput, Input, Item, MemorySession, RunConfig, RunResult, Runner,
    StreamEvent,
};

use crate::case::Case;
use crate::models::RecordingModel;
use crate::payloads::{Escalation, Order, Query, Ticket};
use crate::serialize;

/// The method of `Runner` that runs a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Streamed,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
        })
    }
}

/// The run context of a case: its own context value, and the log of its callbacks.
pub(crate) struct CaseContext {
    context: Value,
    log: Mutex<Vec<Value>>,
}

impl CaseContext {
    pub(crate) fn log(&self, entry: Value) {
        // Nothing panics while the lock is held.
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    }

    fn take_log(&self) -> Value {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *log).into()
    }
}

/// Runs a case and serializes the outcome.
///
/// # Errors
/// Returns an error if the case cannot be read.
pub(crate) fn run(case: &Case, mode: Mode, model: &RecordingModel) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|error| error.to_string())?
        .block_on(run_async(case, mode, model))
}

async fn run_async(case: &Case, mode: Mode, model: &RecordingModel) -> Result<Value, String> {
    let context = Arc::new(CaseContext {
        context: case.context.clone(),
        log: Mutex::default(),
    });
    let tracer = MemoryTracer::new();
    let session = MemorySession::new();
    let markers = agents::history_markers(case);
    let mut config = RunConfig {
        model: Some(model.clone().into()),
        max_turns: Some(case.max_turns.unwrap_or(10)),
        nest_handoff_history: case.run_config.nest_handoff_history,
        handoff_input_filter: filters::optional(&case.run_config.handoff_input_filter, &markers)?,
        handoff_history_mapper: filters::mapper(case.run_config.handoff_history_mapper.as_deref())?,
        history_markers: markers.clone(),
        hooks: vec![HooksHandle::new(hooks::LoggingHooks)],
        tracing: Tracing::To(Arc::new(tracer.clone())),
        ..RunConfig::default()
    };
    if case.session {
        config.session = Some(session.clone().into());
    }
    let config = Arc::new(config);

    let team = agents::build_team(case, &markers)?;
    let mut agent = team
        .get(&case.start)
        .ok_or("the first agent is not there")?
        .clone();

    let mut stream = Vec::new();
    let mut got = json!({});
    let inputs = match case.turns.as_slice() {
        [] => std::slice::from_ref(&case.input),
        turns => turns,
    };
    for input in inputs {
        let runner = Runner::new(&agent)
            .replace_config(config.clone())
            .context(context.clone());
        let input = parse_input(input)?;
        let outcome = match mode {
            Mode::Plain => runner.run(input).await,
            Mode::Streamed => {
                let mut events = runner.stream(input);
                while let Some(event) = events.next().await {
                    stream.extend(event_name(&event));
                }
                events.finish().await
            }
        };
        got = serialize_outcome(&outcome);
        match outcome {
            Ok(result) => agent = result.last_agent().clone(),
            Err(_) => break,
        }
    }
    let requests = model.requests();
    got["model_calls"] = requests.iter().map(serialize::model_call).collect();
    got["log"] = context.take_log();
    got["spans"] = serialize::spans(&tracer.spans());
    got["stream"] = stream.into();
    got["session_items"] = serialize::items(&session.items());
    Ok(got)
}

fn serialize_outcome(outcome: &Result<RunResult<CaseContext>, Error>) -> Value {
    match outcome {
        Ok(result) => json!({
            "final_output": result.final_output().map(|output| typed(result.last_agent(), output)),
            "last_agent": result.last_agent().name(),
            "responses": result.raw_responses().len(),
            "new_items": serialize::run_items(result.new_items()),
            "input_list": serialize::items(&result.to_input_list()),
        }),
        Err(error) => json!({
            "error": {"type": serialize::error_type(error.kind()), "message": error.to_string()},
        }),
    }
}

/// Serializes a final output through its type, which drops unknown fields.
fn typed(agent: &Agent<CaseContext>, output: &FinalOutput) -> Value {
    fn round_trip<T: Serialize + DeserializeOwned>(output: &FinalOutput) -> Option<Value> {
        serde_json::to_value(output.parse::<T>().ok()?).ok()
    }
    let value = match agent.output_type().map(|output| output.name()) {
        Some("Escalation") => round_trip::<Escalation>(output),
        Some("Query") => round_trip::<Query>(output),
        Some("Ticket") => round_trip::<Ticket>(output),
        Some("Order") => round_trip::<Order>(output),
        _ => None,
    };
    value.unwrap_or_else(|| output.to_value())
}

fn event_name(event: &StreamEvent) -> Option<Value> {
    match &event.kind {
        EventKind::AgentUpdated { .. } => {
            Some(Value::from(format!("agent_updated:{}", event.agent)))
        }
        EventKind::Item { name, .. } => Some(Value::from(name.as_str())),
        _ => None,
    }
}

/// Parses the input of a case: text, or a list of items.
pub(crate) fn parse_input(input: &Value) -> Result<Input, String> {
    match input {
        Value::String(text) => Ok(text.into()),
        Value::Array(items) => Ok(parse_items(items)?.into()),
        other => Err(format!(
            "an input must be text or a list of items, not {other}"
        )),
    }
}

fn parse_items(items: &[Value]) -> Result<Vec<Item>, String> {
    items
        .iter()
        .map(Item::from_value)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
