//! The look at the runs that are due, for engines that keep the outcomes of steps in a log of their own. A process may end
//! between storing a run and submitting it, or between storing a message and waking the run that waits for it, and a server
//! may refuse for a while: whatever a sweep finds is submitted or woken again.
//!
//! A sweep reads a page at a time, in the order in which the runs became due, and takes a third of the time at most, however
//! many there are. A run that cannot be submitted holds no others up, and one that was submitted and is still due, as it
//! waits for a process that takes it, is submitted again after growing pauses only.

use std::collections::hash_map::Entry;
use std::time::{Duration, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::now;
use tokio::time::Instant;

use crate::error::DurableError;
use crate::executor::Executor;
use crate::record::RunRecord;
use crate::run_store::RunStore;

/// The number of runs that are read at once.
const PAGE: usize = 100;

/// The number of runs in a row that fail before a sweep pauses: the server may be out of reach, and each takes its time.
const MAX_FAILURES: usize = 5;

/// The pause after a page, as a multiple of the time that it took.
const REST: u32 = 2;

/// The longest pause before a run that is still due is submitted again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The number of runs of which a sweep, and the next ones, take note.
const NOTED: usize = 100_000;

/// An engine whose runs are swept.
pub(crate) trait Swept: Send + Sync {
    fn runs(&self) -> &RunStore;

    fn executor(&self) -> &Executor;

    /// The name of the runs that are seen to together with a run: a sweep has the engine see to the first of them.
    fn group<'a>(&self, run: &'a RunRecord) -> &'a str {
        &run.id
    }

    /// Submits a run that is due, or wakes it if it waits. Does nothing that was done before. Returns `false` if the run is not
    /// to be submitted yet.
    fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<bool, DurableError>>;
}

/// Sees to the runs that are due, now and from then on, until it is dropped. `period` is the time between two sweeps, and the
/// time for which a run is due before it is seen to: others may be about to.
pub(crate) async fn sweep(engine: &dyn Swept, period: Duration) {
    // What lies there from before this process began is due for long.
    let mut grace = Duration::ZERO;
    let (mut sweep, mut submitted) = (Sweep::new(PAGE), Submitted::new(period));
    loop {
        let begun = Instant::now();
        let page = sweep.page(engine, now() - grace, &mut submitted).await;
        let pause = match page {
            Ok(page) if page.is_last => {
                (grace, sweep) = (period, Sweep::new(PAGE));
                period
            }
            Ok(Page { failure: None, .. }) => begun.elapsed() * REST,
            // It goes on behind the runs that have failed.
            Ok(_) => period,
            Err(error) => {
                tracing::warn!(%error, "the runs that are due cannot be listed");
                period
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Sees to all runs that are due. Returns how many there were.
///
/// # Errors
/// The error of the store, or of the engine if it cannot be reached.
pub(crate) async fn sweep_once(engine: &dyn Swept) -> Result<usize, DurableError> {
    let (mut sweep, until) = (Sweep::new(PAGE), now());
    let mut submitted = Submitted::new(LONGEST_PAUSE);
    let mut number = 0;
    loop {
        let page = sweep.page(engine, until, &mut submitted).await?;
        number += page.number;
        if let Some(error) = page.failure {
            return Err(error);
        }
        if page.is_last {
            return Ok(number);
        }
    }
}

/// A sweep in progress.
struct Sweep {
    size: usize,
    /// The time at which the runs that were read last became due: the next page may have them again.
    from: SystemTime,
    /// The groups of the runs that were read.
    read: FxHashSet<String>,
}

/// The runs that sweeps have submitted.
struct Submitted {
    first_pause: Duration,
    /// For a group and the time at which its first run became due, the time of the next attempt, and the pause before it.
    again: FxHashMap<(String, SystemTime), (Instant, Duration)>,
}

impl Submitted {
    fn new(first_pause: Duration) -> Self {
        Self {
            first_pause,
            again: FxHashMap::default(),
        }
    }

    /// Returns `true` if a run is to be submitted, and takes note of that.
    fn is_next(&mut self, group: &str, due: SystemTime) -> bool {
        if self.again.len() >= NOTED {
            self.again.clear();
        }
        let time = Instant::now();
        match self.again.entry((group.to_owned(), due)) {
            Entry::Vacant(vacant) => {
                vacant.insert((time + self.first_pause, self.first_pause));
                true
            }
            Entry::Occupied(mut again) => {
                let (next, pause) = again.get_mut();
                let is_next = *next <= time;
                if is_next {
                    *pause = (*pause * 2).min(LONGEST_PAUSE);
                    *next = time + *pause;
                }
                is_next
            }
        }
    }

    /// Has a run that was not submitted seen to by the next sweep.
    fn forget(&mut self, group: &str, due: SystemTime) {
        self.again.remove(&(group.to_owned(), due));
    }
}

/// A part of a sweep.
struct Page {
    /// The number of runs of the engine.
    number: usize,
    is_last: bool,
    /// The error with which the page ended early.
    failure: Option<DurableError>,
}

impl Sweep {
    fn new(size: usize) -> Self {
        Self {
            size,
            from: SystemTime::UNIX_EPOCH,
            read: FxHashSet::default(),
        }
    }

    /// Sees to the next runs that are due at a time.
    async fn page(
        &mut self,
        engine: &dyn Swept,
        until: SystemTime,
        submitted: &mut Submitted,
    ) -> Result<Page, DurableError> {
        let listed = engine.runs().due_page(self.from, until, self.size).await?;
        let mut page = Page {
            number: 0,
            is_last: listed.next.is_none(),
            failure: None,
        };
        let mut failures = 0;
        for run in listed.runs {
            let due = run.due.unwrap_or(self.from);
            self.from = due;
            if !engine.executor().takes(&run) {
                continue;
            }
            if self.read.len() >= NOTED {
                self.read.clear();
            }
            let group = engine.group(&run);
            if !self.read.insert(group.to_owned()) || !submitted.is_next(group, due) {
                continue;
            }
            page.number += 1;
            let seen_to = engine.see_to(&run).await;
            if !matches!(seen_to, Ok(true)) {
                submitted.forget(group, due);
            }
            match seen_to {
                Ok(_) => failures = 0,
                Err(error) => {
                    tracing::warn!(run = run.id, %error, "a run that is due cannot be submitted; it is tried again");
                    failures += 1;
                    if failures == MAX_FAILURES {
                        (page.is_last, page.failure) = (false, Some(error));
                        return Ok(page);
                    }
                }
            }
        }
        // The last ones of the page may be unreadable.
        if let Some(next) = listed.next {
            self.from = next;
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::value::RawValue;
    use switchboard_core::conversation::Conversations;

    use super::*;
    use crate::active_runs::{ActiveRun, ActiveRuns};
    use crate::engine::StepLog;
    use crate::error::DurableErrorKind;
    use crate::executor::{Execute, Execution};
    use crate::run_store::NewRun;

    /// An engine that takes note of the runs that it sees to, of which some fail.
    struct Noting {
        runs: RunStore,
        executor: Executor,
        fails: fn(usize) -> bool,
        seen: Mutex<Vec<usize>>,
    }

    struct ExecutesNothing;

    impl Execute for ExecutesNothing {
        fn execute_stored<'a>(
            &'a self,
            _runs: &'a RunStore,
            _lease: Duration,
            _run: ActiveRun,
        ) -> BoxFuture<'a, Result<bool, DurableError>> {
            Box::pin(async { Ok(false) })
        }

        fn execute_logged<'a>(
            &'a self,
            _runs: &'a RunStore,
            _run: ActiveRun,
            _log: &'a mut dyn StepLog,
        ) -> BoxFuture<'a, Result<Execution, DurableError>> {
            Box::pin(async { Ok(Execution::Ended) })
        }
    }

    impl Swept for Noting {
        fn runs(&self) -> &RunStore {
            &self.runs
        }

        fn executor(&self) -> &Executor {
            &self.executor
        }

        fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<bool, DurableError>> {
            Box::pin(async {
                let number = run.key.parse().unwrap();
                self.seen.lock().unwrap().push(number);
                if (self.fails)(number) {
                    let message = "the server refuses it";
                    return Err(DurableError::new(DurableErrorKind::Engine, message));
                }
                Ok(true)
            })
        }
    }

    /// An engine with a number of runs that are due, and one that is another engine's.
    async fn noting(number: usize, fails: fn(usize) -> bool) -> Noting {
        let runs = RunStore::new(Conversations::in_memory());
        let executes: Arc<dyn Execute> = Arc::new(ExecutesNothing);
        for at in 0..=number {
            let key = at.to_string();
            let engine = if at == number { "other" } else { "noting" };
            let run = NewRun {
                id: &format!("talk/{at}"),
                conversation: "talk",
                key: &key,
                engine,
                team: None,
                version: None,
                start: RawValue::from_string("{}".to_owned()).unwrap(),
                lease_owner: key.clone(),
            };
            runs.create(run).await.unwrap();
        }
        // They are due from the next millisecond on.
        std::thread::sleep(Duration::from_millis(2));
        Noting {
            runs,
            executor: Executor::new(executes, ActiveRuns::default(), "noting".into(), None),
            fails,
            seen: Mutex::default(),
        }
    }

    impl Noting {
        fn seen(&self) -> Vec<usize> {
            let mut seen = self.seen.lock().unwrap().clone();
            seen.sort_unstable();
            seen
        }
    }

    #[tokio::test]
    async fn pages_have_each_run_once_also_of_those_that_became_due_at_the_same_time() {
        let engine = noting(50, |_| false).await;
        let (mut sweep, until) = (Sweep::new(7), now());
        let mut submitted = Submitted::new(LONGEST_PAUSE);
        let mut number = 0;
        loop {
            let page = sweep.page(&engine, until, &mut submitted).await.unwrap();
            assert!(page.failure.is_none());
            number += page.number;
            if page.is_last {
                break;
            }
        }
        assert_eq!(number, 50);
        assert_eq!(engine.seen(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn runs_that_fail_hold_no_others_up() {
        let engine = noting(50, |number| number % 3 == 0).await;
        assert_eq!(sweep_once(&engine).await.unwrap(), 50);
        assert_eq!(engine.seen(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_sweep_goes_on_behind_many_runs_that_fail() {
        let engine = noting(50, |number| number >= 20).await;
        let (mut sweep, until) = (Sweep::new(100), now());
        let mut submitted = Submitted::new(LONGEST_PAUSE);
        let mut pages = 0;
        loop {
            let page = sweep.page(&engine, until, &mut submitted).await;
            if page.unwrap().is_last {
                break;
            }
            pages += 1;
        }
        assert!((4..=6).contains(&pages), "{pages}");
        assert_eq!(engine.seen(), (0..50).collect::<Vec<_>>());
        let failed = sweep_once(&engine).await.unwrap_err();
        assert_eq!(failed.kind(), DurableErrorKind::Engine);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_stays_due_is_submitted_again_after_growing_pauses() {
        let engine = noting(3, |number| number == 2).await;
        let period = Duration::from_secs(1);
        let mut submitted = Submitted::new(period);
        for _ in 0..600 {
            let mut sweep = Sweep::new(PAGE);
            let page = sweep.page(&engine, now(), &mut submitted).await.unwrap();
            assert!(page.is_last);
            tokio::time::advance(period).await;
        }
        let times = |number| {
            let seen = engine.seen();
            seen.into_iter().filter(|seen| *seen == number).count()
        };
        // At once, after pauses of 1, 2, 4, 8, 16 and 32 seconds, and then each minute.
        assert_eq!((times(0), times(1)), (15, 15));
        // One that fails is tried in each sweep.
        assert_eq!(times(2), 600);
    }

    #[tokio::test]
    async fn a_run_that_is_stored_while_sweeps_go_on_is_seen_to() {
        let engine = noting(3, |_| false).await;
        let period = Duration::from_millis(5);
        tokio::select! {
            () = sweep(&engine, period) => {}
            () = async {
                while engine.seen().len() < 3 {
                    tokio::time::sleep(period).await;
                }
                let (key, id) = ("3", "talk/new");
                let run = NewRun {
                    id,
                    conversation: "talk",
                    key,
                    engine: "noting",
                    team: None,
                    version: None,
                    start: RawValue::from_string("{}".to_owned()).unwrap(),
                    lease_owner: key.to_owned(),
                };
                engine.runs.create(run).await.unwrap();
                while !engine.seen().contains(&3) {
                    tokio::time::sleep(period).await;
                }
            } => {}
        }
    }
}
