//! Starting, attaching to and recovering durable runs.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::Input;
use switchboard_core::journal::lease_owner;

use crate::active_runs::ActiveRuns;
use crate::durable_run::DurableRun;
use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::execution::TeamExecutor;
use crate::executor::Executor;
use crate::record::RunRecord;
use crate::run_store::{NewRun, run_id};
use crate::teams::IntoTeams;

/// Runs conversations that survive the end of their process; see the [crate documentation](crate). Clones share the
/// runs of the process.
///
/// # Panics
/// The methods panic outside of a Tokio runtime.
pub struct DurableRunner<C = ()> {
    pub(crate) team: Arc<TeamExecutor<C>>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) executor: Executor,
}

impl<C: Send + Sync + 'static> DurableRunner<C> {
    /// Creates a runner of a team, an agent, [several versions](crate::Teams) of one, or with the settings of a
    /// [`Runner`](switchboard_core::Runner). The conversations are those of the engine's store. If the runner has a
    /// session of another kind, that one is used; it is read once for each run, and an append to it may be repeated after
    /// a crash.
    pub fn new(engine: impl IntoEngine, teams: impl IntoTeams<C>) -> Self {
        let active = ActiveRuns::default();
        let team = Arc::new(TeamExecutor {
            teams: teams.into_teams(),
            active: active.clone(),
            engine: OnceLock::new(),
        });
        let team_name = team.teams.current.config().team_name.clone();
        let executor = Executor::new(team.clone(), active, engine.name().into(), team_name);
        let engine = engine.into_engine(executor.clone());
        let _ = team.engine.set(Arc::downgrade(&engine));
        Self {
            team,
            engine,
            executor,
        }
    }

    /// Starts a run for a message of a conversation. `key` identifies the message: if a run with it was started before, this
    /// attaches to that run, and `input` is not used.
    ///
    /// Once this has returned, the message is stored and is answered, whatever happens to this process.
    ///
    /// # Errors
    /// The error of the store or the engine. The message may be stored: start it again with the same key.
    /// [`DurableErrorKind::OtherEngine`] if the run with this key is one of another engine or team.
    pub async fn start(
        &self,
        conversation: &str,
        key: &str,
        input: impl Into<Input>,
    ) -> Result<DurableRun<C>, DurableError> {
        let id = run_id(conversation, key);
        let teams = &self.team.teams;
        let begun = teams.current.begin(input);
        let start = serde_json::to_string(&begun);
        let start = start.and_then(RawValue::from_string).map_err(|error| {
            let message = format!("the input of run \"{id}\" cannot be stored: {error}");
            DurableError::new(DurableErrorKind::Damaged, message)
        })?;
        let run = NewRun {
            id: &id,
            conversation,
            key,
            engine: self.executor.engine(),
            team: self.executor.team(),
            version: teams.version.as_deref(),
            start,
            lease_owner: lease_owner(&begun),
        };
        let (record, new) = self.engine.runs().create(run).await?;
        self.executor.check(&record)?;
        let active = self.executor.active();
        if let Some(new) = new {
            active.note_new(&id, new);
        }
        let submitted = self.engine.submit(&record).await;
        active.forget_new(&id);
        submitted?;
        Ok(self.run(id))
    }

    /// Attaches to a run by its identifier.
    ///
    /// # Errors
    /// An error if there is no such run, or the store cannot be read.
    pub async fn attach(&self, id: &str) -> Result<DurableRun<C>, DurableError> {
        self.engine.runs().record(id).await?;
        Ok(self.run(id.to_owned()))
    }

    /// Lists the runs, the last changed first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list(
        &self,
        limit: impl Into<Option<usize>>,
    ) -> Result<Vec<RunRecord>, DurableError> {
        self.engine.runs().list(limit.into()).await
    }

    /// Takes up the runs that are due: those whose process is gone, and those that paused. Returns how many begin at once; of the
    /// messages of a conversation that have not begun, the others follow the first.
    /// Call it at the start of a process, and from time to time (or [`work`](Self::work)) for runs of processes that end
    /// later.
    ///
    /// # Errors
    /// The error of the store or the engine.
    pub async fn recover(&self) -> Result<usize, DurableError> {
        self.engine.recover().await
    }

    /// Executes runs, also those of other processes that are gone, until [`drain`](Self::drain) is called.
    pub async fn work(&self) {
        self.engine.work().await;
    }

    /// Takes no more runs, lets steps in progress end, and makes the runs due for other processes. Returns `false` if some are
    /// still in a step after `time`; they go on elsewhere once their lease ends. [`work`](Self::work) has to go on meanwhile, in a
    /// task of its own for example: what carries the steps on Restate and DBOS is part of it.
    pub async fn drain(&self, time: Duration) -> bool {
        self.engine.drain(time).await
    }

    /// The engine.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    fn run(&self, id: String) -> DurableRun<C> {
        DurableRun {
            runner: self.clone(),
            id,
        }
    }
}

impl<C> Clone for DurableRunner<C> {
    fn clone(&self) -> Self {
        Self {
            team: self.team.clone(),
            engine: self.engine.clone(),
            executor: self.executor.clone(),
        }
    }
}

impl<C> fmt::Debug for DurableRunner<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableRunner")
            .field("teams", &self.team.teams)
            .finish_non_exhaustive()
    }
}
