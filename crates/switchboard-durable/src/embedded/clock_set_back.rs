//! Runs that were last changed in the future: the clock was set back since. Their leases and pauses would last until it is
//! that time again, so they are measured by the time that this process has seen them unchanged.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::record::RunRecord;

/// The runs that were last changed in the future.
#[derive(Default)]
pub(super) struct FutureRuns {
    seen: Mutex<FxHashMap<String, Seen>>,
    looked: Mutex<Option<Instant>>,
}

/// A run as it was seen first.
struct Seen {
    changed: SystemTime,
    since: Instant,
}

impl FutureRuns {
    /// Returns `true` if the last look is longer ago than `pause`.
    pub(super) fn is_due(&self, pause: Duration) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| looked.elapsed() >= pause);
        if is_due {
            *looked = Some(Instant::now());
        }
        is_due
    }

    /// Takes note of all runs that were last changed in the future. Returns those whose lease or pause is over.
    pub(super) fn look(&self, runs: Vec<RunRecord>) -> Vec<RunRecord> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: FxHashSet<&str> = runs.iter().map(|run| &*run.id).collect();
        seen.retain(|id, _| ids.contains(&**id));
        let over = |run: &RunRecord| {
            let Some(due) = run.due else {
                return false;
            };
            let now = Seen {
                changed: run.changed,
                since: Instant::now(),
            };
            let first = seen.entry(run.id.clone()).or_insert(now);
            if first.changed != run.changed {
                (first.changed, first.since) = (run.changed, Instant::now());
            }
            // Both times are of the clock that was set back.
            first.since.elapsed() >= due.duration_since(run.changed).unwrap_or_default()
        };
        runs.into_iter().filter(over).collect()
    }
}
