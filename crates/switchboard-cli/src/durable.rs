//! Durable runs of the program: their engine, their names, and their failures.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::Runner;
use switchboard_core::conversation::Conversations;
use switchboard_core::stream::StreamEvent;
use switchboard_durable::{DurableError, DurableErrorKind, DurableRunner, Embedded};
use switchboard_teamfile::Context;

use crate::failure::{Exit, Failure};

/// A runner on the embedded engine.
pub(crate) fn runner(
    store: &Conversations,
    lease: Duration,
    runner: Runner<Context, Arc<Context>>,
) -> DurableRunner<Context> {
    DurableRunner::new(Embedded::new(store.clone()).lease(lease), runner)
}

/// A name for a message that has none.
pub(crate) fn new_key() -> String {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = time.unwrap_or_default().as_nanos();
    format!("{:x}-{:x}", nanos, std::process::id())
}

/// The event that tells of events that do not count, because their step was interrupted and begins again. It is built
/// from JSON, because it is no kind of event of a plain run.
pub(crate) fn retraction(agent: &str, from: u64, to: u64) -> io::Result<StreamEvent> {
    let json = serde_json::json!({
        "type": "retracted", "agent": agent, "turn": 0, "from": from, "to": to
    });
    Ok(serde_json::from_value(json)?)
}

/// The failure for an error of durable runs.
pub(crate) fn failure(error: DurableError) -> Failure {
    let (exit, help) = match error.kind() {
        DurableErrorKind::NotFound => (Exit::Usage, Some("`switchboard runs list` has the names")),
        DurableErrorKind::NotWaiting => {
            (Exit::Usage, Some("`switchboard runs show` has its state"))
        }
        _ => (Exit::Failed, None),
    };
    Failure::Message {
        exit,
        message: error.to_string(),
        help: help.map(str::to_owned),
    }
}
