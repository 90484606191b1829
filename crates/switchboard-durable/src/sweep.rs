//! The look at the runs that are due, for engines that keep the outcomes of steps in a log of their own. A process may end
//! between storing a run and submitting it, or between storing a message and waking the run that waits for it, and a server
//! may refuse for a while: whatever a sweep finds is submitted or woken again.
//!
//! A sweep reads a page at a time, in the order in which the runs became due, and takes a third of the time at most, however
//! many there are. A run that cannot be submitted holds no others up.

use std::time::{Duration, SystemTime};

use rustc_hash::FxHashSet;
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

/// An engine whose runs are swept.
pub(crate) trait Swept: Send + Sync {
    fn runs(&self) -> &RunStore;

    fn executor(&self) -> &Executor;

    /// Submits a run that is due, or wakes it if it waits. Does nothing that was done before.
    fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>>;
}

/// Sees to the runs that are due, now and from then on, until it is dropped. `period` is the time between two sweeps, and the
/// time for which a run is due before it is seen to: others may be about to.
pub(crate) async fn sweep(engine: &dyn Swept, period: Duration) {
    // What lies there from before this process began is due for long.
    let mut grace = Duration::ZERO;
    let mut sweep = Sweep::new(PAGE);
    loop {
        let begun = Instant::now();
        let pause = match sweep.page(engine, now() - grace).await {
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
    let mut number = 0;
    loop {
        let page = sweep.page(engine, until).await?;
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
    /// The time at which the runs that were read last became due, and their names: the next page may have them again.
    from: SystemTime,
    read: FxHashSet<String>,
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
    async fn page(&mut self, engine: &dyn Swept, until: SystemTime) -> Result<Page, DurableError> {
        let listed = engine.runs().due_page(self.from, until, self.size).await?;
        let mut page = Page {
            number: 0,
            is_last: listed.next.is_none(),
            failure: None,
        };
        let mut failures = 0;
        for run in listed.runs {
            if let Some(due) = run.due
                && due != self.from
            {
                (self.from, self.read) = (due, FxHashSet::default());
            }
            if !self.read.insert(run.id.clone()) || !engine.executor().takes(&run) {
                continue;
            }
            page.number += 1;
            match engine.see_to(&run).await {
                Ok(()) => failures = 0,
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
        if let Some(next) = listed.next
            && next != self.from
        {
            (self.from, self.read) = (next, FxHashSet::default());
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

        fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
            Box::pin(async {
                let number = run.key.parse().unwrap();
                self.seen.lock().unwrap().push(number);
                if (self.fails)(number) {
                    let message = "the server refuses it";
                    return Err(DurableError::new(DurableErrorKind::Engine, message));
                }
                Ok(())
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
        let mut number = 0;
        loop {
            let page = sweep.page(&engine, until).await.unwrap();
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
        let mut pages = 0;
        while !sweep.page(&engine, until).await.unwrap().is_last {
            pages += 1;
        }
        assert!((4..=6).contains(&pages), "{pages}");
        assert_eq!(engine.seen(), (0..50).collect::<Vec<_>>());
        let failed = sweep_once(&engine).await.unwrap_err();
        assert_eq!(failed.kind(), DurableErrorKind::Engine);
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
