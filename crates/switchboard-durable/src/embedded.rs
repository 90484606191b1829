//! The embedded engine: journals in the store of the conversations.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::{Conversations, now};

use crate::active_runs::ActiveRun;
use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::events::POLL;
use crate::executor::Executor;
use crate::record::RunRecord;
use crate::run_store::RunStore;

mod clock_set_back;

use clock_set_back::FutureRuns;

/// The longest pause of a run that stays in memory meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(55);

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
    /// process do not wait. The default is 1,000.
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
    /// Begins to execute a run in this process. Returns `false` if it does already, or takes no more runs.
    fn take_up(&self, id: &str) -> bool {
        match self.0.executor.active().add(id) {
            Some(run) => self.execute(run),
            None => return false,
        }
        true
    }

    /// Begins to execute the runs whose leases and pauses are over, though the clock, which was set back, says otherwise.
    async fn take_up_abandoned(&self) -> Result<usize, DurableError> {
        let Inner {
            settings,
            executor,
            future,
        } = &*self.0;
        if !future.is_due(settings.lease / 3) {
            return Ok(0);
        }
        let runs = settings.runs.changed_after(now()).await?;
        let mut taken = 0;
        for record in future.look(runs) {
            if !executor.takes(&record) {
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
            match executed.await {
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
            let (changed, due) = match self.0.settings.runs.record(id).await {
                Ok(record) if record.is_ended() || !self.0.executor.takes(&record) => return,
                Ok(record) => match record.due {
                    Some(due) => (record.changed, due),
                    None => return,
                },
                Err(error) if error.kind() == DurableErrorKind::Store => {
                    tokio::time::sleep(POLL * 5).await;
                    continue;
                }
                Err(_) => return,
            };
            // Of both, in case the clock was set back.
            let pause = due.duration_since(now().max(changed)).unwrap_or_default();
            if pause > self.0.settings.lease.max(LONGEST_PAUSE) {
                return;
            }
            tokio::time::sleep(pause).await;
            self.take_up(id);
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
            self.take_up(&run.id);
        }
        Box::pin(async { Ok(()) })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        let executor = &self.0.executor;
        if !executor.wake(&run.id) && executor.takes(run) {
            self.take_up(&run.id);
        }
        Box::pin(async { Ok(()) })
    }

    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async {
            let Inner {
                settings, executor, ..
            } = &*self.0;
            let room = settings.at_once.saturating_sub(executor.active().number());
            if room == 0 {
                return Ok(0);
            }
            let mut due = settings.runs.due(now()).await?;
            due.retain(|run| executor.takes(run));
            // The messages of a conversation in their order, as later ones wait for earlier ones.
            due.sort_by_key(|run| (!run.has_begun, run.order));
            let taken = due.iter().filter(|run| self.take_up(&run.id));
            Ok(taken.take(room).count() + self.take_up_abandoned().await?)
        })
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let executor = &self.0.executor;
            while !executor.is_draining() {
                if let Err(error) = self.recover().await {
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
