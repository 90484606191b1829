//! The DBOS engine: PostgreSQL keeps the outcomes of steps, and processes find runs of others in it.
//!
//! A run is a DBOS workflow whose identifier is that of the run. Each batch of outcomes is a step of the workflow; a wait for
//! a person is a `recv` of a message without content.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::postgres::{Config as DatabaseConfig, PostgresSystemDatabase};
use dbos::sysdb::types::WorkflowStatus;
use dbos::{
    Client, ClientConfig, Config, DBOS, EngineOnly, EnqueueOptions, QueueConflict, QueueOptions,
    ResumeOptions, SendOptions, StartOptions, WorkflowRef,
};
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::{Conversations, to_millis};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::drain::{Stage, Work};
use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::Executor;
use crate::record::{RunRecord, RunStatus};
use crate::run_store::RunStore;
use crate::sweep::{self, Swept};

mod local_runs;
mod names;
mod takeover;
mod turns;
mod workflow;

use local_runs::LocalRuns;
use names::Names;
use takeover::Takeover;
use workflow::TOPIC;

/// The number of times that making the tables of DBOS is tried.
const MIGRATIONS: u32 = 20;

/// The reason for which a run stops whose workflow DBOS has given up.
const GIVEN_UP: &str = "DBOS has given the run up: the processes that had it have ended more than 100 times. Find out why, \
     and resume the run, or cancel it";

/// The number of looks in a lease.
const LOOKS: u32 = 4;

/// The pause between two looks at the queue.
const QUEUE_POLL: Duration = Duration::from_millis(100);

/// The engine on [DBOS](https://dbos.dev), which needs only PostgreSQL. The conversations, the states of runs and their
/// streams lie in a store that all processes share, in the same database for example.
///
/// Runs are executed by the processes that call [`DurableRunner::work`](crate::DurableRunner::work); one that is started
/// in such a process is executed there. Each shows in a table that it is alive. Runs of one that does not any
/// more are taken over by the others.
#[derive(Debug, Clone)]
pub struct Dbos {
    runs: RunStore,
    settings: Settings,
}

#[derive(Clone)]
struct Settings {
    url: String,
    application: String,
    version: String,
    executor: String,
    lease: Duration,
    at_once: usize,
    connections: u32,
}

impl Settings {
    /// The pause between two looks at other processes, and at runs that are due.
    fn pause(&self) -> Duration {
        self.lease / LOOKS
    }

    /// The names under which DBOS has the runs of a team.
    fn names(&self, team: Option<&str>) -> Names {
        Names::new(&self.application, team, &self.version)
    }
}

impl Dbos {
    /// Creates an engine with a PostgreSQL database (`postgres://…`), in which DBOS makes its tables.
    pub fn new(store: Conversations, database: impl Into<String>) -> Self {
        Self {
            runs: RunStore::new(store),
            settings: Settings {
                url: database.into(),
                application: "switchboard".to_owned(),
                version: "1".to_owned(),
                executor: format!("{:032x}", fastrand::u128(..)),
                lease: Duration::from_secs(10),
                at_once: 1_000,
                connections: 10,
            },
        }
    }

    /// Sets the name under which DBOS keeps the runs, for several applications in one database: 3 to 256 lower-case letters,
    /// digits, `-` and `_`. The default is `switchboard`. Teams with a name
    /// ([`Runner::team_name`](switchboard_core::Runner::team_name)) have a queue of their own in any case.
    #[must_use]
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.settings.application = name.into();
        self
    }

    /// Sets the version of the code. A process executes runs of its own version only. By default all have the same, as runs
    /// themselves check that the code of today does what they have recorded.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = version.into();
        self
    }

    /// Sets the name of this process, which no other one that is alive may have. The default is a random one. With a name
    /// that it keeps, a process that starts again takes up its runs at once.
    #[must_use]
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.settings.executor = name.into();
        self
    }

    /// Sets the time after which the runs of a process that shows no life are taken over. The default is 10 seconds.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.settings.lease = time;
        self
    }

    /// Sets the number of runs with which a process takes no more from the queue: after an outage there may be very many. Runs
    /// that are started in this process wait only for those before them in their conversation. Of those that wait for a person or
    /// a time, half as many stay in memory. The default is 1,000.
    #[must_use]
    pub fn at_once(mut self, runs: usize) -> Self {
        self.settings.at_once = runs.max(1);
        self
    }

    /// Sets the number of connections to the database. The default is 10.
    #[must_use]
    pub fn connections(mut self, number: u32) -> Self {
        self.settings.connections = number;
        self
    }

    /// The runs.
    pub fn runs(&self) -> &RunStore {
        &self.runs
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("application", &self.application)
            .field("executor", &self.executor)
            .finish_non_exhaustive()
    }
}

impl IntoEngine for Dbos {
    fn name(&self) -> String {
        format!("dbos/{}", self.settings.application)
    }

    fn into_engine(self, executor: Executor) -> Arc<dyn Engine> {
        Arc::new_cyclic(|this| DbosEngine {
            this: this.clone(),
            runs: self.runs,
            names: self.settings.names(executor.team()),
            local: LocalRuns::new(self.settings.at_once / 2),
            settings: self.settings,
            executor,
            launched: Mutex::default(),
            client: OnceCell::new(),
            work: Work::new(),
        })
    }
}

/// The DBOS engine of a process.
struct DbosEngine {
    /// The engine itself, for the workflows.
    this: Weak<Self>,
    runs: RunStore,
    settings: Settings,
    /// The names of the runs of the own team.
    names: Names,
    executor: Executor,
    local: LocalRuns,
    /// Set while this process executes runs.
    launched: Mutex<Option<Launched>>,
    client: OnceCell<Client>,
    work: Work,
}

#[derive(Clone)]
struct Launched {
    dbos: DBOS,
    workflow: WorkflowRef<String, (), EngineOnly>,
}

impl DbosEngine {
    fn launched(&self) -> MutexGuard<'_, Option<Launched>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn client(&self) -> Result<&Client, DurableError> {
        let connect = || async {
            // Processes that make the tables at the same moment get in each other's way.
            let mut attempts = 0;
            loop {
                attempts += 1;
                match self.connect().await {
                    Ok(client) => return Ok(client),
                    Err(error) if attempts == MIGRATIONS => return Err(failed(&error)),
                    Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                }
            }
        };
        self.client.get_or_try_init(connect).await
    }

    async fn connect(&self) -> dbos::Result<Client> {
        // A client makes no tables, and this process may be the first one.
        let database = DatabaseConfig {
            max_connections: 1,
            ..DatabaseConfig::new(&self.settings.url)
        };
        let database = PostgresSystemDatabase::connect(&database).await;
        database.map_err(dbos::Error::SystemDatabase)?.close().await;
        let config = ClientConfig {
            app_name: Some(self.settings.application.clone()),
            max_connections: self.settings.connections.min(5),
            ..ClientConfig::new(self.settings.url.clone())
        };
        Client::connect(config).await
    }

    /// Has a run executed here, if this process executes runs, or leaves it on the queue.
    async fn start(&self, run: &RunRecord) -> Result<(), DurableError> {
        let launched = self.launched().clone();
        if let Some(launched) = launched
            && run.team.as_deref() == self.executor.team()
            && !self.executor.is_draining()
        {
            let (workflow_id, id) = (self.names.workflow_id(run), run.id.clone());
            // In a task of its own: a workflow that is started within another one is a step of that.
            let started = tokio::spawn(async move {
                let options = StartOptions {
                    workflow_id: Some(&workflow_id),
                    ..StartOptions::default()
                };
                launched.workflow.start_with(id, options).await.map(drop)
            });
            return match started.await {
                Ok(started) => started.map_err(|error| failed(&error)),
                Err(error) => Err(DurableError::new(
                    DurableErrorKind::Engine,
                    format!("DBOS: {error}"),
                )),
            };
        }
        self.enqueue(run).await
    }

    /// Leaves a run on the queue, unless DBOS has it.
    async fn enqueue(&self, run: &RunRecord) -> Result<(), DurableError> {
        let names = self.settings.names(run.team.as_deref());
        let workflow_id = names.workflow_id(run);
        let options = EnqueueOptions {
            workflow_id: Some(&workflow_id),
            app_version: Some(&names.version),
            ..EnqueueOptions::new(&names.queue)
        };
        let client = self.client().await?;
        let (workflow, input) = (&names.workflow, run.id.clone());
        let queued = client.enqueue_with::<_, (), EngineOnly>(workflow, input, options);
        queued.await.map(drop).map_err(|error| failed(&error))
    }

    async fn launch(&self) -> Result<Launched, DurableError> {
        let Names {
            workflow,
            version,
            queue,
            prefix,
        } = self.names.clone();
        let Settings {
            url,
            application,
            executor,
            connections,
            ..
        } = self.settings.clone();
        let dbos = DBOS::new(Config {
            app_version: Some(version),
            executor_id: Some(executor),
            max_connections: connections,
            // Otherwise it takes from those of other teams too.
            listen_queues: Some(vec![queue.clone()]),
            ..Config::new(application, url)
        });
        let parts = workflow::Parts {
            engine: self.this.clone(),
            runs: self.runs.clone(),
            executor: self.executor.clone(),
            local: self.local.clone(),
            stage: self.work.watch(),
            prefix: prefix.into(),
        };
        let workflow = dbos.register_workflow(&workflow, move |id: String| {
            workflow::execute(parts.clone(), id)
        });
        let workflow = workflow.map_err(|error| failed(&error))?;
        dbos.launch().await.map_err(|error| failed(&error))?;
        let options = QueueOptions {
            polling_interval: QUEUE_POLL,
            worker_concurrency: Some(i32::try_from(self.settings.at_once).unwrap_or(i32::MAX)),
            ..QueueOptions::default()
        };
        let queue = dbos.register_queue(&queue, options, QueueConflict::AlwaysUpdate);
        queue.await.map_err(|error| failed(&error))?;
        Ok(Launched { dbos, workflow })
    }

    /// Executes runs, and takes over those of processes that are gone, until [`Engine::drain`] is called.
    async fn execute_runs(&self) -> Result<(), DurableError> {
        let mut takeover = Takeover::new(&self.settings, &self.names, self.local.clone()).await?;
        takeover.beat().await?;
        // By itself, so that nothing else that takes its time makes this process look as if it was gone.
        let mut beats = JoinSet::new();
        beats.spawn(takeover.beats());
        let launched = self.launch().await?;
        *self.launched() = Some(launched.clone());
        let client = self.client().await?;
        let mut stage = self.work.watch();
        tokio::select! {
            () = takeover.look_on(client) => {}
            () = sweep::sweep(self, self.settings.pause()) => {}
            () = stage.begun(Stage::Over) => {}
        }
        *self.launched() = None;
        launched.dbos.shutdown().await;
        beats.shutdown().await;
        takeover.give_back().await
    }

    /// Returns `true` if DBOS does not have the workflow of a run executed any more.
    async fn is_given_up(&self, run: &RunRecord) -> Result<bool, DurableError> {
        let id = self.settings.names(run.team.as_deref()).workflow_id(run);
        let status = self.client().await?.workflow_status(&id).await;
        let status = status.map_err(|error| failed(&error))?;
        Ok(status == Some(WorkflowStatus::MaxRecoveryAttemptsExceeded))
    }

    /// Has a workflow executed again that this process has suspended while it waits, or that DBOS has given up.
    async fn resume(&self, run: &RunRecord) -> Result<(), DurableError> {
        let names = self.settings.names(run.team.as_deref());
        let id = names.workflow_id(run);
        let client = self.client().await?;
        if !self.local.wake(&id) && !self.is_given_up(run).await? {
            return Ok(());
        }
        let options = ResumeOptions {
            queue: Some(&names.queue),
        };
        let resumed = client.resume_with::<(), EngineOnly>(&id, options).await;
        resumed.map(drop).map_err(|error| failed(&error))
    }

    /// Sends a run the message that wakes it; with a key, unless it was sent under that before.
    async fn send_wake(&self, run: &RunRecord, key: Option<&str>) -> Result<(), DurableError> {
        let options = SendOptions {
            topic: Some(TOPIC),
            idempotency_key: key,
            ..SendOptions::default()
        };
        let client = self.client().await?;
        let workflow = self.settings.names(run.team.as_deref()).workflow_id(run);
        let sent = client.send_with(&workflow, &(), options).await;
        sent.map_err(|error| failed(&error))
    }
}

impl Swept for DbosEngine {
    fn runs(&self) -> &RunStore {
        &self.runs
    }

    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn group<'a>(&self, run: &'a RunRecord) -> &'a str {
        turns::group(run)
    }

    fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<bool, DurableError>> {
        Box::pin(async move {
            if run.waits_in_log() {
                // Once for the time at which it is due.
                let names = self.settings.names(run.team.as_deref());
                let time = run.due.map(to_millis).unwrap_or_default();
                let key = format!("{}/{time}", names.workflow_id(run));
                self.send_wake(run, Some(&key)).await?;
                return self.resume(run).await.map(|()| true);
            }
            let Some(run) = self.in_turn(run).await? else {
                return Ok(false);
            };
            match self.enqueue(&run).await {
                Err(_) if self.is_given_up(&run).await? => {
                    self.runs.stop(&run, GIVEN_UP.to_owned()).await?;
                    self.submit_next(&run.id).await;
                    Ok(true)
                }
                queued => queued.map(|()| true),
            }
        })
    }
}

impl Engine for DbosEngine {
    fn runs(&self) -> &RunStore {
        &self.runs
    }

    fn submit<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async move {
            if run.is_ended() || !self.executor.takes(run) {
                return Ok(());
            }
            match self.in_turn(run).await? {
                Some(first) if first.id == run.id => self.start(run).await,
                Some(earlier) => {
                    if let Err(error) = self.enqueue(&earlier).await {
                        tracing::warn!(run = earlier.id, %error, "an earlier message cannot be submitted yet");
                    }
                    Ok(())
                }
                None => Ok(()),
            }
        })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async move {
            if let RunStatus::Stopped { .. } = run.status {
                let run = self.runs.record(&run.id).await?;
                return self.submit(&run).await;
            }
            self.executor.wake(&run.id);
            if !run.has_begun {
                // It is cancelled now, or waits for its turn, or for a process that submits it.
                self.submit_next(&run.id).await;
                return Ok(());
            }
            self.send_wake(run, None).await?;
            self.resume(run).await
        })
    }

    /// Runs whose process ended between storing and submitting them are submitted, and those that it did not wake for a
    /// message are woken.
    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(sweep::sweep_once(self))
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _worker = self.work.begin();
            if let Err(error) = self.execute_runs().await {
                tracing::error!(%error, "this process executes no runs");
            }
        })
    }

    fn drain(&self, time: Duration) -> BoxFuture<'_, bool> {
        Box::pin(self.work.drain(&self.executor, time))
    }
}

/// The error of a call of DBOS.
fn failed(error: &dbos::Error<EngineOnly>) -> DurableError {
    DurableError::new(DurableErrorKind::Engine, format!("DBOS: {error}"))
}
