//! What guardrails of one sort have found in a run.

use serde::{Deserialize, Serialize};

use crate::guardrail::GuardrailResult;

/// What guardrails found. What belongs to an attempt that failed is listed as long as the run
/// stands there; those guardrails are asked again when it is resumed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Findings {
    results: Vec<GuardrailResult>,
    /// How many of them, from the first on, are not asked for again.
    settled: usize,
}

impl Findings {
    pub(super) fn results(&self) -> &[GuardrailResult] {
        &self.results
    }

    /// How many results stand.
    pub(super) fn settled(&self) -> usize {
        self.settled
    }

    /// Adds what an attempt found that may still fail.
    pub(super) fn attempted(&mut self, found: impl IntoIterator<Item = GuardrailResult>) {
        self.results.extend(found);
    }

    /// Lets all that was found stand.
    pub(super) fn settle(&mut self) {
        self.settled = self.results.len();
    }

    /// Begins an attempt: what one that failed had found is forgotten.
    pub(super) fn begin_attempt(&mut self) {
        self.results.truncate(self.settled);
    }
}
