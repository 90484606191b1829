//! What guardrails of one sort have found in a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::guardrail::GuardrailResult;

/// What guardrails found. What belongs to an attempt that failed is listed as long as the run
/// stands there; those guardrails are asked again when it is resumed.
///
/// Boxed: most runs have no guardrails, and keep room for four of these.
#[derive(Debug, Clone, Default)]
pub(super) struct GuardrailResults(Option<Box<Found>>);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Found {
    results: Vec<GuardrailResult>,
    /// How many of them, from the first on, are not asked for again.
    settled: usize,
}

impl GuardrailResults {
    pub(super) fn results(&self) -> &[GuardrailResult] {
        self.0.as_ref().map_or(&[], |found| &found.results)
    }

    /// How many results stand.
    pub(super) fn settled(&self) -> usize {
        self.0.as_ref().map_or(0, |found| found.settled)
    }

    /// Adds what an attempt found that may still fail.
    pub(super) fn attempted(&mut self, found: impl IntoIterator<Item = GuardrailResult>) {
        self.0.get_or_insert_default().results.extend(found);
    }

    /// Lets all that was found stand.
    pub(super) fn settle(&mut self) {
        if let Some(found) = &mut self.0 {
            found.settled = found.results.len();
        }
    }

    /// Begins an attempt: what one that failed had found is forgotten.
    pub(super) fn begin_attempt(&mut self) {
        if let Some(found) = &mut self.0 {
            found.results.truncate(found.settled);
        }
    }
}

impl Serialize for GuardrailResults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(found) => found.serialize(serializer),
            None => Found::default().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for GuardrailResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Found::deserialize(deserializer).map(|found| Self(Some(Box::new(found))))
    }
}
