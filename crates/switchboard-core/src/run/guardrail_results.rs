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

/// The results of guardrails of one kind. Boxed, since most runs have none.
///
/// Results of an attempt that failed are listed until the run is resumed, which starts another.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Results", into = "Results")]
pub(crate) struct GuardrailResults(Option<Box<Results>>);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Results {
    results: Vec<GuardrailResult>,
    /// The number of leading results that are final.
    settled: usize,
}

impl From<Results> for GuardrailResults {
    fn from(results: Results) -> Self {
        Self((!results.results.is_empty()).then(|| Box::new(results)))
    }
}

impl From<GuardrailResults> for Results {
    fn from(results: GuardrailResults) -> Self {
        results.0.map(|results| *results).unwrap_or_default()
    }
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
    /// All results.
    pub(crate) fn all(&self) -> &[GuardrailResult] {
        self.0.as_ref().map_or(&[], |results| &results.results)
    }

    /// The number of results that are final.
    pub(crate) fn settled(&self) -> usize {
        self.0.as_ref().map_or(0, |results| results.settled)
    }

    /// Adds results of the current attempt.
    pub(crate) fn add(&mut self, new: impl IntoIterator<Item = GuardrailResult>) {
        for result in new {
            self.0.get_or_insert_default().results.push(result);
        }
    }

    /// Makes all results final.
    pub(crate) fn settle(&mut self) {
        if let Some(results) = &mut self.0 {
            results.settled = results.results.len();
        }
    }

    /// Starts an attempt: the results of one that failed are dropped.
    pub(crate) fn begin_attempt(&mut self) {
        if let Some(results) = &mut self.0 {
            results.results.truncate(results.settled);
        }
    }
}
