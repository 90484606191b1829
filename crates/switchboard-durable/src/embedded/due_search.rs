//! The search of a worker for runs that are due. Those of other engines and teams are due as well, for ever if these have
//! no workers: they are not read again at each look.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use switchboard_core::conversation::now;
use tokio::time::Instant;

use super::EmbeddedEngine;
use crate::error::DurableError;

/// The number of runs that are read at once.
const PAGE: usize = 256;

/// The number of pages that one look reads at most, of each kind.
const PAGES: usize = 8;

/// The first and the longest pause between two searches through all runs that are due.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// The places of a worker in the runs that are due, in the order in which they became due.
pub(super) struct DueSearch {
    /// A run that became due may be seen later by this time, as its process has another clock.
    lateness: Duration,
    /// The time from which the next look for new ones is.
    new_from: SystemTime,
    /// The place of the search through all runs; `None` between two searches.
    all_from: Option<SystemTime>,
    /// The time of the next search through all runs, and the pause after it if it finds none.
    next: Instant,
    pause: Duration,
    /// The number of runs that the search in progress has taken up.
    taken: usize,
}

impl DueSearch {
    pub(super) fn new(lateness: Duration) -> Self {
        Self {
            lateness,
            new_from: now(),
            all_from: Some(SystemTime::UNIX_EPOCH),
            next: Instant::now(),
            pause: PAUSES.0,
            taken: 0,
        }
    }

    /// The place from which all runs are searched on, if it is time.
    fn all_from(&self) -> Option<SystemTime> {
        let is_next = self.next <= Instant::now();
        self.all_from
            .or_else(|| is_next.then_some(SystemTime::UNIX_EPOCH))
    }

    /// Takes note of a part of a search through all runs.
    fn searched(&mut self, taken: usize, rest: Option<SystemTime>) {
        self.taken += taken;
        self.all_from = rest;
        if rest.is_none() {
            let (shortest, longest) = PAUSES;
            if std::mem::take(&mut self.taken) > 0 {
                self.pause = shortest;
            }
            self.next = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(longest);
        }
    }
}

impl EmbeddedEngine {
    /// Takes up runs that have become due since the last look, and now and then all that are due.
    pub(super) async fn look(&self, search: &mut DueSearch) -> Result<(), DurableError> {
        let until = now();
        let (_, rest) = self
            .take_up_due(search.new_from.min(until)..until, self.room(), PAGES)
            .await?;
        let late = until.checked_sub(search.lateness).unwrap_or(until);
        search.new_from = rest.unwrap_or(late);
        let mut room = self.room();
        if room > 0
            && let Some(from) = search.all_from()
        {
            let (taken, rest) = self.take_up_due(from..until, room, PAGES).await?;
            search.searched(taken, rest);
            room -= taken;
        }
        self.take_up_abandoned(room).await?;
        Ok(())
    }

    /// The number of runs that this process takes up at once.
    pub(super) fn room(&self) -> usize {
        let number = self.0.executor.active().number();
        self.0.settings.at_once.saturating_sub(number)
    }

    /// Takes up runs that are due, from the first on. Returns the number of those that begin at once, and the time from which on the
    /// others became due, if there are more than there is room for, or than the pages have.
    pub(super) async fn take_up_due(
        &self,
        times: Range<SystemTime>,
        room: usize,
        pages: usize,
    ) -> Result<(usize, Option<SystemTime>), DurableError> {
        let mut from = times.start;
        let mut taken = 0;
        for _ in 0..pages {
            if taken == room {
                return Ok((taken, Some(from)));
            }
            let page = self.0.settings.runs.due_page(from, times.end, PAGE).await?;
            let mut runs = page.runs;
            runs.retain(|run| self.0.executor.takes(run));
            // Later messages of a conversation wait for earlier ones.
            runs.sort_by_key(|run| (!run.has_begun, run.order));
            for run in &runs {
                if taken == room {
                    return Ok((taken, Some(from)));
                }
                taken += usize::from(self.take_up_due_run(run));
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok((taken, None)),
            }
        }
        Ok((taken, Some(from)))
    }
}
