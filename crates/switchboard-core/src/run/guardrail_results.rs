//! The results of guardrails in a run.

use serde::{Deserialize, Serialize};

use crate::guardrail::{GuardrailKind, GuardrailResult};

/// The results of all guardrails of a run, and the progress of those on its input.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GuardrailState {
    pub(crate) input_checks: InputChecks,
    pub(crate) input: GuardrailResults,
    pub(crate) output: GuardrailResults,
    pub(crate) tool: GuardrailResults,
    pub(crate) handoff: GuardrailResults,
}

/// The progress of the input guardrails. Finished stages are not repeated when the run is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputChecks {
    /// Those that may replace the input run first; the settled results are theirs.
    #[default]
    Pending,
    /// Those before the model have passed it.
    PassedBeforeModel,
    Passed,
}

/// The results of guardrails of one kind.
///
/// Results of an attempt that failed are listed until the run is resumed, which starts another.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GuardrailResults {
    pub(crate) results: Vec<GuardrailResult>,
    /// The number of leading results that are final.
    pub(crate) settled: usize,
}

impl GuardrailState {
    pub(crate) fn of(&self, kind: GuardrailKind) -> &GuardrailResults {
        match kind {
            GuardrailKind::Input => &self.input,
            GuardrailKind::Output => &self.output,
            GuardrailKind::Tool => &self.tool,
            GuardrailKind::Handoff => &self.handoff,
        }
    }
}

impl GuardrailResults {
    /// Adds results of the current attempt.
    pub(crate) fn add(&mut self, results: impl IntoIterator<Item = GuardrailResult>) {
        self.results.extend(results);
    }

    /// Makes all results final.
    pub(crate) fn settle(&mut self) {
        self.settled = self.results.len();
    }

    /// Starts an attempt: the results of one that failed are dropped.
    pub(crate) fn begin_attempt(&mut self) {
        self.results.truncate(self.settled);
    }
}
