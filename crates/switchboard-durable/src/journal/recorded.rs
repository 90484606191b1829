//! The contents of a journal, for a replay in which nothing takes place.

use serde_json::value::RawValue;
use switchboard_core::callback::BoxError;
use switchboard_core::journal::{Effect, Journal, Outcome, Repeat, StepKey, StepKind, Stepped};

use super::state::{State, StepsIn};
use crate::entry::Signal;
use crate::error::DurableError;
use crate::record::StoredRecord;
use crate::run_store::RunStore;

/// The recorded outcome of hooks that have not failed.
const NO_FAILURE: &str = r#"{"ok":null}"#;

/// A run, as its journal has it.
pub(crate) struct Recorded {
    pub(crate) record: StoredRecord,
    /// The version of the team that the run has gone on with.
    pub(crate) version: Option<String>,
    pub(crate) start: Box<RawValue>,
    pub(crate) steps: RecordedSteps,
    /// The signals of each wait that the run has left.
    pub(crate) waits: Vec<Vec<Signal>>,
}

/// The recorded steps of a run.
pub(crate) struct RecordedSteps(State);

impl Recorded {
    pub(crate) async fn read(runs: &RunStore, id: &str) -> Result<Self, DurableError> {
        let (head, record) = runs.head(id).await?;
        let mut state = State::new(record.clone(), head.revision, StepsIn::Store);
        let entries = runs.read(id, head.first, head.revision.next).await?;
        let start = state.read(id, entries)?;
        let waits = state.resumed.iter();
        let waits = waits.map(|positions| state.signals_at(positions)).collect();
        Ok(Self {
            record,
            version: state.version.clone(),
            start,
            waits,
            steps: RecordedSteps(state),
        })
    }
}

impl Journal for RecordedSteps {
    async fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: Effect<'_>,
    ) -> Result<Stepped, BoxError> {
        let state = &self.0;
        if let Some(outcome) = state.outcomes.get(key) {
            return Ok(Stepped::Recorded(outcome.clone()));
        }
        if state.waits.contains(key) {
            // The steps inside it are recorded.
            return match effect.await {
                Outcome::Waits => Ok(Stepped::Ran),
                _ => Err(format!("step \"{key}\" has waited, and does not wait now").into()),
            };
        }
        if repeat == Repeat::AtMostOnce && state.begun.contains(key) {
            return Ok(Stepped::Unknown);
        }
        if key.kind == StepKind::Hook {
            // The process that took the steps may have had others: hooks may come and go.
            return Ok(Stepped::Recorded(NO_FAILURE.into()));
        }
        Err(format!("the run did not get to step \"{key}\"").into())
    }
}
