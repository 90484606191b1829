//! A run as JSON: the stored form, its version, and the reader of the version before.
//!
//! The form is an object with four fields:
//!
//! | field | content |
//! | --- | --- |
//! | `version` | [`VERSION`] |
//! | `items` | all items of the run, each once, byte for byte |
//! | `run_items` | the run items: `kind`, `agent`, `item` (an index into `items`), `occurrence` |
//! | `run` | [`RunFields`] and the structs in it; items and run items are indexes |
//!
//! `docs/run-state.schema.json` describes it.
//!
//! A change of any of these structs that an older reader or writer would misread needs a new
//! version, a conversion from the one before (as `snapshot/v3.rs`), and fixtures in
//! `tests/data/stored_runs`.

mod v3;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::approvals::ApprovalState;
use super::budgets::Spent;
use super::guardrail_results::GuardrailState;
use super::handoff::HandoffRecord;
use super::server_history::Delivered;
use super::session_state::SessionState;
use super::state_limits::StateError;
use super::ways_back::WayBack;
use super::{AgentRef, Conversation, Phase, Position, Run, RunTrace};
use crate::handoff::ReceivedPayload;
use crate::items::Item;
use crate::items::item_table::{ItemReader, ItemWriter, StoredRunItem};
use crate::model::{ModelResponse, RequestUsage, Usage};

/// The version of the stored form.
const VERSION: u32 = 5;

/// The number of runs inside each other that are read: untrusted input must not exhaust the stack.
const MAX_DEPTH: u32 = 32;

#[derive(Serialize, Deserialize)]
struct Snapshot {
    version: u32,
    items: Vec<Item>,
    run_items: Vec<StoredRunItem>,
    run: Box<RawValue>,
}

/// The fields of [`Run`], as serde stores them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Run")]
struct RunFields {
    agent: AgentRef,
    first_agent: AgentRef,
    #[serde(default = "super::new_id", with = "hex_id")]
    id: u64,
    position: Position,
    conversation: Conversation,
    session: SessionState,
    guardrails: GuardrailState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered: Option<Box<Delivered>>,
    handoffs: Vec<HandoffRecord>,
    responses: Vec<ModelResponse>,
    usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Box<RunTrace>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    request_usage: Vec<RequestUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_key: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approvals: Option<Box<ApprovalState>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spent: Option<Box<Spent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way_back: Option<Box<WayBack>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    received: Option<Arc<ReceivedPayload>>,
}

/// The identifier of a run as text: not all programs read such large numbers.
mod hex_id {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(id: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{id:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
    }
}

/// A run without the table of items.
#[derive(Serialize)]
struct Fields<'a>(#[serde(with = "RunFields")] &'a Run);

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (run, table) = ItemWriter::collect(|| to_raw_value(&Fields(self)));
        let snapshot = Snapshot {
            version: VERSION,
            items: table.items,
            run_items: table.run_items,
            run: run.map_err(serde::ser::Error::custom)?,
        };
        snapshot.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored: Box<RawValue> = Box::deserialize(deserializer)?;
        read(stored.get()).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

thread_local! {
    /// The number of stored runs that are being read, one inside the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Counts a stored run that is being read, until it is dropped.
struct Nested;

impl Nested {
    fn enter() -> Result<Self, StateError> {
        DEPTH.set(DEPTH.get() + 1);
        let nested = Self;
        if DEPTH.get() > MAX_DEPTH {
            return Err(StateError::invalid(format!(
                "the stored run has more than {MAX_DEPTH} runs inside each other"
            )));
        }
        Ok(nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

pub(super) fn read(stored: &str) -> Result<Run, StateError> {
    let _nested = Nested::enter()?;
    let invalid = |error: serde_json::Error| {
        StateError::invalid(format!("this is not a stored run: {error}"))
    };
    // The version first: the error for another version must not be about a missing field.
    let Version { version } = serde_json::from_str(stored).map_err(invalid)?;
    let snapshot: Snapshot = match version {
        // Version 5 added approvals: a reader of version 4 would run what waits for one.
        4 | VERSION => serde_json::from_str(stored).map_err(invalid)?,
        3 => v3::convert(stored).map_err(invalid)?,
        _ => {
            return Err(StateError::other_version(format!(
                "the run was stored in version {version}; this program reads versions 3 to {VERSION}"
            )));
        }
    };
    let table = ItemReader::new(snapshot.items, snapshot.run_items).map_err(StateError::invalid)?;
    let mut json = serde_json::Deserializer::from_str(snapshot.run.get());
    let mut run = table
        .resolve(|| RunFields::deserialize(&mut json))
        .map_err(invalid)?;
    run.sort_tool_progress();
    check(&run).map_err(StateError::invalid)?;
    Ok(run)
}

/// Checks what the types do not: a stored run may have been tampered with.
fn check(run: &Run) -> Result<(), String> {
    if let Phase::Handoff(turn) = &run.position.phase
        && turn.handoffs.is_empty()
    {
        return Err("the stored run is at a handoff, and there is no call of one".to_owned());
    }
    let Some(turn) = run.turn() else {
        return Ok(());
    };
    if turn.recorded > turn.items.len().min(run.conversation.record.len()) {
        return Err("the stored run has recorded more items of its turn than there are".to_owned());
    }
    let tools = turn.tools();
    let calls = tools.calls.len();
    let done = tools.done.iter().map(|ran| ran.at);
    check_indexes("tools that ran", done, calls)?;
    let started = tools.started.iter().copied();
    check_indexes("tools that started", started, calls)?;
    let allowed = tools.allowed.iter().copied();
    check_indexes("calls that were allowed", allowed, calls)?;
    let approvals = tools.approvals.iter().map(|known| known.at);
    check_indexes("approvals", approvals, calls)?;
    let inner = tools.inner_runs.iter().map(|inner| inner.at);
    check_indexes("runs inside tools", inner, calls)
}

fn check_indexes(
    what: &str,
    mut indexes: impl Iterator<Item = usize>,
    calls: usize,
) -> Result<(), String> {
    let mut seen = HashSet::new();
    match indexes.find(|index| *index >= calls || !seen.insert(*index)) {
        None => Ok(()),
        Some(index) => Err(format!(
            "the stored run lists call {index} among the {what}, which does not exist or is listed \
             twice"
        )),
    }
}
