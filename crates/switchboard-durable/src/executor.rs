//! Executing runs for an engine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::callback::BoxFuture;

use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::engine::StepLog;
use crate::error::{DurableError, DurableErrorKind};
use crate::record::RunRecord;
use crate::run_store::RunStore;

/// Executes runs with the teams of a [`DurableRunner`](crate::DurableRunner). Clones share it.
#[derive(Clone)]
pub struct Executor {
    execute: Arc<dyn Execute>,
    active: ActiveRuns,
    engine: Arc<str>,
    team: Option<Arc<str>>,
}

/// The way in which an execution has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Execution {
    /// The run has ended; its state says how.
    Ended,
    /// The run cannot go on with the team of today.
    Stopped {
        /// The difference.
        reason: String,
    },
    /// This process takes no further steps: another one is to execute the run.
    Draining,
    /// The run goes on in another log, as it had stopped and was resumed, or it was deleted. This log is of no use any more.
    Superseded,
    /// The run is one of another engine or team, whose processes are to execute it with this log.
    OtherEngine,
    /// Another execution has taken the run.
    Taken,
    /// This process executes the run already.
    Active,
}

/// The execution of runs, whatever their context.
pub(crate) trait Execute: Send + Sync {
    /// Takes a run whose steps lie in the store, and drives it until it ends, waits, or has to pause. Returns `true` if it has
    /// ended for good, or waits behind an earlier one of this process.
    fn execute_stored<'a>(
        &'a self,
        runs: &'a RunStore,
        lease: Duration,
        run: ActiveRun,
    ) -> BoxFuture<'a, Result<bool, DurableError>>;

    /// Drives a run whose steps lie in a log until it ends.
    fn execute_logged<'a>(
        &'a self,
        runs: &'a RunStore,
        run: ActiveRun,
        log: &'a mut dyn StepLog,
    ) -> BoxFuture<'a, Result<Execution, DurableError>>;
}

impl Executor {
    /// Creates an executor for an engine, with the name of its team where it has one.
    pub(crate) fn new(
        execute: Arc<dyn Execute>,
        active: ActiveRuns,
        engine: Arc<str>,
        team: Option<Arc<str>>,
    ) -> Self {
        Self {
            execute,
            active,
            engine,
            team,
        }
    }

    /// Returns `true` if a run is one of this engine, and of this team, unless one of the teams has no name. Others lie in the
    /// same store.
    pub fn takes(&self, run: &RunRecord) -> bool {
        let is_same = |own: Option<&str>, of_run: Option<&str>| match (own, of_run) {
            (Some(own), Some(of_run)) => own == of_run,
            _ => true,
        };
        is_same(Some(&self.engine), run.engine.as_deref())
            && is_same(self.team.as_deref(), run.team.as_deref())
    }

    /// Checks that a run is one of this engine and team.
    pub(crate) fn check(&self, run: &RunRecord) -> Result<(), DurableError> {
        if self.takes(run) {
            return Ok(());
        }
        let place = |engine: Option<&str>, team: Option<&str>| {
            let engine = engine.unwrap_or("any engine");
            match team {
                Some(team) => format!("{engine} and of team \"{team}\""),
                None => engine.to_owned(),
            }
        };
        let message = format!(
            "the run \"{}\" is one of {}, and this is {}: use that engine and team",
            run.id,
            place(run.engine.as_deref(), run.team.as_deref()),
            place(Some(&self.engine), self.team.as_deref())
        );
        Err(DurableError::new(DurableErrorKind::OtherEngine, message))
    }

    pub(crate) fn engine(&self) -> &str {
        &self.engine
    }

    pub(crate) fn team(&self) -> Option<&str> {
        self.team.as_deref()
    }

    /// Executes a run from its start, or makes it again and goes on: until it ends, with its waits in between. `log_name`
    /// is the name that the log had when the run was submitted; see [`RunRecord::log_name`](crate::RunRecord::log_name).
    ///
    /// # Errors
    /// An error of the store or the log. The run is to be executed again.
    pub async fn execute(
        &self,
        runs: &RunStore,
        id: &str,
        log_name: &str,
        log: &mut dyn StepLog,
    ) -> Result<Execution, DurableError> {
        if self.active.is_draining() {
            return Ok(Execution::Draining);
        }
        let known = match runs.known(id).await {
            Err(error) if error.kind() == DurableErrorKind::NotFound => {
                return Ok(Execution::Superseded);
            }
            known => known?,
        };
        let record = known.to_record(id);
        if record.log_name() != log_name {
            return Ok(Execution::Superseded);
        }
        if !self.takes(&record) {
            return Ok(Execution::OtherEngine);
        }
        let Some(run) = self.active.add(id) else {
            return Ok(Execution::Active);
        };
        run.note_known(known);
        self.execute.execute_logged(runs, run, log).await
    }

    /// Lets a run that this process has look for messages. Returns `false` if it has not.
    pub fn wake(&self, id: &str) -> bool {
        self.active.wake(id)
    }

    /// Lets no run of this process begin a further step.
    pub fn drain(&self) {
        self.active.drain();
    }

    /// Returns `true` if this process takes no further steps.
    pub fn is_draining(&self) -> bool {
        self.active.is_draining()
    }

    /// Waits until this process has no runs. Returns `false` if it has some after `time`.
    pub async fn emptied(&self, time: Duration) -> bool {
        self.active.emptied(time).await
    }

    pub(crate) fn active(&self) -> &ActiveRuns {
        &self.active
    }

    pub(crate) async fn execute_stored(
        &self,
        runs: &RunStore,
        lease: Duration,
        run: ActiveRun,
    ) -> Result<bool, DurableError> {
        self.execute.execute_stored(runs, lease, run).await
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}
