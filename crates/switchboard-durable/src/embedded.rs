//! The embedded engine: journals in the store of the conversations.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::{Conversations, now};

use crate::active_runs::ActiveRun;
use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::events::POLL;
use crate::executor::Executor;
use crate::message_queues::{Added, Following};
use crate::record::RunRecord;
use crate::run_store::RunStore;

mod clock_set_back;
mod due_search;

use clock_set_back::FutureRuns;
use due_search::DueSearch;

/// The longest pause of a run that stays in memory meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(55);

/// The pause before the store is asked again after an error.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// The engine that needs no server: journals lie in the store of the conversations. Clones share it.
///
/// A journal is a record that only grows, and a write says at which length it expects it. A process that takes a run adds
/// an entry first, so that the writes of a process that had it before are refused.
///
/// It is made for one service with a few processes. They find runs of others by asking the store for those that are due.
#[derive(Debug, Clone)]
pub struct Embedded {
    runs: RunStore,
    lease: Duration,
    at_once: usize,
    application: Option<String>,
}

impl Embedded {
    /// Creates an engine with the journals of a store. Use the same store for the conversations.
    pub fn new(store: Conversations) -> Self {
        Self {
            runs: RunStore::new(store),
            lease: Duration::from_secs(15),
            at_once: 1_000,
            application: None,
        }
    }

    /// Sets the time after which another process may take a run of one that is gone. A process that works extends it.
    /// The default is 15 seconds. The clocks of the processes should differ by less.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets the number of runs with which a process takes up no more that others have left: after an outage there may be
    /// very many. [`work`](crate::DurableRunner::work) takes up the next ones as others end. Runs that are started in this
    /// process do not wait, except for those before them in their conversation. The default is 1,000.
    #[must_use]
    pub fn at_once(mut self, runs: usize) -> Self {
        self.at_once = runs.max(1);
        self
    }

    /// Sets the name of the application, for several that share a store: each executes its own runs. Teams with a name
    /// ([`Runner::team_name`](switchboard_core::Runner::team_name)) execute their own runs in any case.
    #[must_use]
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.application = Some(name.into());
        self
    }

    /// The runs.
    pub fn runs(&self) -> &RunStore {
        &self.runs
    }
}

impl IntoEngine for Embedded {
    fn name(&self) -> String {
        match &self.application {
            None => "embedded".to_owned(),
            Some(application) => format!("embedded/{application}"),
        }
    }

    fn into_engine(self, executor: Executor) -> Arc<dyn Engine> {
        Arc::new(EmbeddedEngine(Arc::new(Inner {
            settings: self,
            executor,
            future: FutureRuns::default(),
        })))
    }
}

/// The embedded engine of a process.
#[derive(Clone)]
struct EmbeddedEngine(Arc<Inner>);

struct Inner {
    settings: Embedded,
    executor: Executor,
    future: FutureRuns,
}

impl EmbeddedEngine {
    /// Executes a run in this process: at once, or after the messages of its conversation that came before. Returns `true` if it
    /// begins at once.
    fn take_up(&self, run: &RunRecord) -> bool {
        // It has the conversation, or is the next that gets it.
        if run.has_begun {
            return self.begin(&run.id);
        }
        let active = self.0.executor.active();
        match active.queues().add(run) {
            Added::First => self.begin_first(run.id.clone()),
            Added::Behind => false,
            Added::Before(later) => {
                active.wake(&later);
                false
            }
        }
    }

    /// Takes up a run that no process has. The messages that have waited for one that has begun follow it.
    fn take_up_due_run(&self, run: &RunRecord) -> bool {
        let active = self.0.executor.active();
        if !run.has_begun {
            return self.take_up(run);
        }
        if active.has(&run.id) {
            return false;
        }
        active.queues().add_begun(run);
        self.begin_first(run.id.clone())
    }

    /// Begins to execute a run. Returns `false` if this process does already, or takes no more runs.
    fn begin(&self, id: &str) -> bool {
        let run = self.0.executor.active().add(id);
        let begins = run.is_some();
        if let Some(run) = run {
            self.execute(run);
        }
        begins
    }

    /// Begins to execute the first run of a queue, or the next one if this process does not.
    fn begin_first(&self, mut id: String) -> bool {
        let queues = self.0.executor.active().queues();
        while !self.begin(&id) {
            match queues.remove(&id) {
                Following::Run(next) => id = next,
                Following::InStore | Following::None => return false,
            }
        }
        true
    }

    /// Begins to execute the run that follows one of a queue.
    async fn take_up_next(&self, id: &str) {
        match self.0.executor.active().queues().remove(id) {
            Following::None => {}
            Following::Run(next) => {
                self.begin_first(next);
            }
            Following::InStore => self.take_up_messages_beside(id).await,
        }
    }

    /// Takes up the messages of a run's conversation that have not begun.
    async fn take_up_messages_beside(&self, id: &str) {
        let Inner {
            settings, executor, ..
        } = &*self.0;
        while !executor.is_draining() {
            let mut runs = match settings.runs.unsettled_beside(id).await {
                Ok(runs) => runs,
                Err(error) => {
                    tracing::warn!(run = id, %error, "the messages after a run cannot be listed");
                    tokio::time::sleep(STORE_PAUSE).await;
                    continue;
                }
            };
            runs.retain(|run| !run.has_begun && run.is_overdue() && executor.takes(run));
            runs.sort_by(|one, other| (one.order, &one.id).cmp(&(other.order, &other.id)));
            for run in &runs {
                self.take_up(run);
            }
            return;
        }
    }

    /// Begins to execute the runs whose leases and pauses are over, though the clock, which was set back, says otherwise.
    async fn take_up_abandoned(&self, room: usize) -> Result<usize, DurableError> {
        let Inner {
            settings,
            executor,
            future,
        } = &*self.0;
        if room == 0 || !future.is_due(settings.lease / 3) {
            return Ok(0);
        }
        let runs = settings.runs.changed_after(now()).await?;
        let mut taken = 0;
        for record in future.look(runs) {
            if !executor.takes(&record) {
                continue;
            }
            if taken == room {
                break;
            }
            // One that has not begun was left by nobody: it may wait here, or elsewhere, for those before it.
            if !record.has_begun {
                taken += usize::from(self.take_up(&record));
                continue;
            }
            if let Some(mut run) = executor.active().add(&record.id) {
                run.is_abandoned = true;
                self.execute(run);
                taken += 1;
            }
        }
        Ok(taken)
    }

    fn execute(&self, active: ActiveRun) {
        let (this, id) = (self.clone(), active.id.clone());
        drop(tokio::spawn(async move {
            let Inner {
                settings, executor, ..
            } = &*this.0;
            let executed = executor.execute_stored(&settings.runs, settings.lease, active);
            let executed = executed.await;
            this.take_up_next(&id).await;
            match executed {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    if !matches!(
                        error.kind(),
                        DurableErrorKind::Taken
                            | DurableErrorKind::NotWaiting
                            | DurableErrorKind::Closed
                    ) {
                        tracing::warn!(run = id, %error, "a run cannot be executed; it is taken up again later");
                    }
                    tokio::time::sleep(POLL).await;
                }
            }
            this.take_up_later(&id).await;
        }));
    }

    /// Takes a run that has paused up again, when it is due. One that has paused for long is left to
    /// [`recover`](Engine::recover), so that it takes no memory.
    async fn take_up_later(&self, id: &str) {
        while !self.0.executor.is_draining() {
            let run = match self.0.settings.runs.record(id).await {
                Ok(run) if run.is_ended() || !self.0.executor.takes(&run) => return,
                Ok(run) => run,
                Err(error) if error.kind() == DurableErrorKind::Store => {
                    tokio::time::sleep(STORE_PAUSE).await;
                    continue;
                }
                Err(_) => return,
            };
            let Some(due) = run.due else {
                return;
            };
            // Of both, in case the clock was set back.
            let pause = due.duration_since(now().max(run.changed));
            let pause = pause.unwrap_or_default();
            if pause > self.0.settings.lease.max(LONGEST_PAUSE) {
                return;
            }
            tokio::time::sleep(pause).await;
            self.take_up(&run);
            return;
        }
    }
}

impl Engine for EmbeddedEngine {
    fn runs(&self) -> &RunStore {
        &self.0.settings.runs
    }

    fn submit<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        // One that has paused keeps to its pause, however often its message is sent.
        if run.is_overdue() && self.0.executor.takes(run) {
            self.take_up(run);
        }
        Box::pin(async { Ok(()) })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        let executor = &self.0.executor;
        if !executor.wake(&run.id) && executor.takes(run) {
            self.take_up(run);
        }
        Box::pin(async { Ok(()) })
    }

    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async {
            let room = self.room();
            let all = SystemTime::UNIX_EPOCH..now();
            let (taken, _) = self.take_up_due(all, room, usize::MAX).await?;
            Ok(taken + self.take_up_abandoned(room - taken).await?)
        })
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let executor = &self.0.executor;
            let mut search = DueSearch::new(self.0.settings.lease);
            while !executor.is_draining() {
                if let Err(error) = self.look(&mut search).await {
                    tracing::warn!(%error, "the runs that are due cannot be listed");
                }
                let mut looks = 0;
                while looks < 5 && !executor.is_draining() {
                    tokio::time::sleep(POLL).await;
                    looks += 1;
                }
            }
        })
    }

    fn drain(&self, time: Duration) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let executor = &self.0.executor;
            executor.drain();
            executor.emptied(time).await
        })
    }
}
