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
//! A change of any of these structs that an older reader or writer would misread needs a new
//! version, a conversion from the one before (as `snapshot/v3.rs`), and fixtures in
//! `tests/data/stored_runs`.

mod v3;

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::guardrail_results::GuardrailState;
use super::handoff::HandoffRecord;
use super::server_history::Delivered;
use super::session_state::SessionState;
use super::{AgentRef, Conversation, Phase, Position, Run, RunTrace};
use crate::items::Item;
use crate::items::item_table::{ItemReader, ItemWriter, StoredRunItem};
use crate::model::{ModelResponse, RequestUsage, Usage};

/// The version of the stored form.
const VERSION: u32 = 4;

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

fn read(stored: &str) -> Result<Run, String> {
    let invalid = |error: serde_json::Error| format!("this is not a stored run: {error}");
    // The version first: the error for another version must not be about a missing field.
    let Version { version } = serde_json::from_str(stored).map_err(invalid)?;
    let snapshot: Snapshot = match version {
        VERSION => serde_json::from_str(stored).map_err(invalid)?,
        3 => v3::convert(stored).map_err(invalid)?,
        _ => {
            return Err(format!(
                "the run was stored in version {version}; this program reads versions 3 to {VERSION}"
            ));
        }
    };
    let table = ItemReader::new(snapshot.items, snapshot.run_items)?;
    let mut json = serde_json::Deserializer::from_str(snapshot.run.get());
    let run = table
        .resolve(|| RunFields::deserialize(&mut json))
        .map_err(invalid)?;
    check(&run)?;
    Ok(run)
}

/// Checks what the types do not: a stored run may have been tampered with.
fn check(run: &Run) -> Result<(), String> {
    if let Phase::Handoff(turn) = &run.position.phase
        && turn.handoffs.is_empty()
    {
        return Err("the stored run is at a handoff, and there is no call of one".to_owned());
    }
    if let Some(tools) = run.turn().map(|turn| turn.tools()) {
        let done = tools.done.iter().map(|ran| ran.at);
        check_indexes("tools that ran", done, tools.calls.len())?;
        let started = tools.started.iter().copied();
        check_indexes("tools that started", started, tools.calls.len())?;
    }
    Ok(())
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
