//! The entries of a journal.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_core::approval::{Decision, Interruption};
use switchboard_core::conversation::{Entry, EntryContent};
use switchboard_core::journal::StepKey;
use switchboard_core::people::PersonAnswer;

/// An entry of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// The run as it began.
    Start(Box<RawValue>),
    /// A process has taken the run. Those that had it before cannot write any more.
    Taken {
        owner: String,
        /// Set if the process that had it before had not let it go: it has ended, or was too slow.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_interrupted: bool,
    },
    /// A step that may take place once begins.
    Begun(StepKey),
    /// The outcome of a step.
    Step(StepKey, Box<RawValue>),
    /// Events of the run's stream, in order: those that came between two writes. In the log of an engine: those that the steps of
    /// the batch have sent, and that the store may not have.
    Events(Vec<Box<RawValue>>),
    /// A tool waits for a person, in a run inside it.
    Waits(StepKey),
    /// A step that may take place once has failed for a reason that may pass, or has not finished: it says itself that it
    /// begins again.
    BeginsAgain(StepKey),
    /// A step that may take place once was interrupted, and the run has gone on without its outcome.
    Unknown(StepKey),
    /// The events at these positions, of a model call that was interrupted, do not count.
    Retracted { from: u64, to: u64 },
    /// A decision, an answer, or the wish to cancel.
    Signal(Signal),
    /// The run goes on after a wait, with the signals at these positions.
    Resumed { signals: Vec<u64> },
    /// In the log of an engine: the run waits for a time, and the next call of the log is that wait.
    Pauses { until: SystemTime },
    /// The run goes on after it has waited for a time.
    Continued,
    /// The state of the run has changed, and there was nothing else to write. Each new state is a new revision, so that a
    /// message which was sent in the state of before is refused.
    Released,
}

impl JournalEntry {
    /// Returns `true` if it tells what became of a step.
    pub(crate) fn is_of_step(&self) -> bool {
        matches!(
            self,
            Self::Step(..)
                | Self::Begun(_)
                | Self::BeginsAgain(_)
                | Self::Unknown(_)
                | Self::Waits(_)
        )
    }

    /// The entry as stores keep it.
    pub(crate) fn to_stored(&self) -> Result<Entry, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        Ok(Entry::new(EntryContent::Step(json.into())))
    }

    pub(crate) fn from_stored(entry: &Entry) -> Result<Self, serde_json::Error> {
        serde_json::from_str(entry.content.as_json())
    }
}

/// A message of the application to a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Signal {
    Decide(Box<Interruption>, Decision),
    Answer(Box<Interruption>, PersonAnswer),
    /// Words of the user for the agent, beside decisions.
    Input(String),
    Cancel,
    /// Goes on with a run that has stopped, with another version of the team where one is named.
    Resume {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
}

impl Signal {
    /// The call or person that it is a decision or an answer for.
    pub(crate) fn interruption(&self) -> Option<&Interruption> {
        match self {
            Self::Decide(waiting, _) | Self::Answer(waiting, _) => Some(waiting),
            Self::Input(_) | Self::Cancel | Self::Resume { .. } => None,
        }
    }
}
