//! Runs that are due and that nobody executes, for those who wait for them.

use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::DurableError;
use crate::record::RunRecord;

/// The first pause between two attempts to have a run executed that is due, which doubles, and the longest: it may be
/// waiting for an earlier run of its conversation.
const SUBMIT_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Has a run executed that is due and that no process has, for somebody who waits for it.
#[derive(Default)]
pub(crate) struct Overdue {
    /// The time of the next attempt, and the pause after it.
    next: Option<(Instant, Duration)>,
}

impl Overdue {
    pub(crate) async fn look(
        &mut self,
        engine: &dyn Engine,
        record: &RunRecord,
    ) -> Result<(), DurableError> {
        if !record.is_overdue() {
            self.next = None;
            return Ok(());
        }
        let (first, longest) = SUBMIT_PAUSES;
        // One that has just become due is about to be executed.
        let (at, pause) = *self.next.get_or_insert((Instant::now() + first, first));
        if at <= Instant::now() {
            let pause = (pause * 2).min(longest);
            self.next = Some((Instant::now() + pause, pause));
            engine.submit(record).await?;
        }
        Ok(())
    }
}
