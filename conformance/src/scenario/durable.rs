//! Scenarios as durable runs.

use std::sync::Arc;

use serde_json::Value;
use switchboard_core::conversation::Conversations;
use switchboard_core::{Error, Input, RunResult, Runner};
use switchboard_durable::{DurableError, DurableRunner, Embedded, RunEvent};

use super::{CaseContext, event_name};

/// Runs one input on the embedded engine, and makes the result of the run again with the runner for replays. Adds the names of
/// the events to `stream`.
///
/// # Errors
/// Returns an error if the engine fails.
pub(super) async fn run_input(
    runner: &Runner<CaseContext, Arc<CaseContext>>,
    replay: &Runner<CaseContext, Arc<CaseContext>>,
    input: Input,
    stream: &mut Vec<Value>,
) -> Result<Result<RunResult<CaseContext>, Error>, String> {
    let engine = Embedded::new(Conversations::in_memory());
    let failed = |error: DurableError| error.to_string();
    let durable = DurableRunner::new(engine.clone(), runner.clone());
    let run = durable
        .start("case", "input", input)
        .await
        .map_err(failed)?;
    run.wait().await.map_err(failed)?;
    let mut events = run.events(None);
    while let Some(event) = events.next().await.map_err(failed)? {
        if let RunEvent::Event { event, .. } = event {
            stream.extend(event_name(&event).map(Value::from));
        }
    }
    let replay = DurableRunner::new(engine, replay.clone());
    let run = replay.attach(run.id()).await.map_err(failed)?;
    run.result().await.map_err(failed)
}
