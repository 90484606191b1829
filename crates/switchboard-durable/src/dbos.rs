//! The DBOS engine: PostgreSQL keeps the outcomes of steps, and processes find runs of others in it.
//!
//! A run is a DBOS workflow whose identifier is that of the run. Each batch of outcomes is a step of the workflow; a wait for
//! a person is a `recv` of a message without content.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::postgres::{Config as DatabaseConfig, PostgresSystemDatabase};
use dbos::{
    Client, ClientConfig, Config, DBOS, EngineOnly, EnqueueOptions, QueueConflict, QueueOptions,
    SendOptions, StartOptions, WorkflowRef,
};
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::{Conversations, now, to_millis};
use tokio::sync::OnceCell;

use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::Executor;
use crate::record::{RunRecord, RunStatus};
use crate::run_store::RunStore;
use crate::work::{Stage, Work};

mod takeover;
mod workflow;

use takeover::Takeover;
use workflow::{LocalRuns, TOPIC};

/// The name of the workflow.
const WORKFLOW: &str = "switchboard_run";

/// The number of times that making the tables of DBOS is tried.
const MIGRATIONS: u32 = 20;

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
    connections: u32,
}

/// Names of versions, queues and workflows must differ between the applications in a database.
impl Settings {
    fn version_name(&self) -> String {
        format!("{}/{}", self.application, self.version)
    }

    /// The workflow of a run.
    fn workflow_id(&self, run: &RunRecord) -> String {
        format!("{}{}", self.prefix(), run.log_name())
    }

    fn prefix(&self) -> String {
        format!("{}/", self.application)
    }

    /// The queue for runs that no process has.
    fn queue(&self) -> String {
        format!("{}/runs", self.application)
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
                connections: 10,
            },
        }
    }

    /// Sets the name under which DBOS keeps the runs, for several applications in one database: 3 to 256 lower-case letters,
    /// digits, `-` and `_`. The default is `switchboard`.
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
        Arc::new(DbosEngine {
            runs: self.runs,
            settings: self.settings,
            executor,
            local: LocalRuns::default(),
            launched: Mutex::default(),
            client: OnceCell::new(),
            work: Work::new(),
        })
    }
}

/// The DBOS engine of a process.
struct DbosEngine {
    runs: RunStore,
    settings: Settings,
    executor: Executor,
    /// The runs that this process executes.
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
            && !self.executor.is_draining()
        {
            let workflow_id = self.settings.workflow_id(run);
            let options = StartOptions {
                workflow_id: Some(&workflow_id),
                ..StartOptions::default()
            };
            let started = launched.workflow.start_with(run.id.clone(), options).await;
            return started.map(drop).map_err(|error| failed(&error));
        }
        self.enqueue(run).await
    }

    /// Leaves a run on the queue, unless DBOS has it.
    async fn enqueue(&self, run: &RunRecord) -> Result<(), DurableError> {
        let (queue, version) = (self.settings.queue(), self.settings.version_name());
        let workflow_id = self.settings.workflow_id(run);
        let options = EnqueueOptions {
            workflow_id: Some(&workflow_id),
            app_version: Some(&version),
            ..EnqueueOptions::new(&queue)
        };
        let client = self.client().await?;
        let queued = client.enqueue_with::<_, (), EngineOnly>(WORKFLOW, run.id.clone(), options);
        queued.await.map(drop).map_err(|error| failed(&error))
    }

    async fn launch(&self) -> Result<Launched, DurableError> {
        let (queue, version) = (self.settings.queue(), self.settings.version_name());
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
            ..Config::new(application, url)
        });
        let parts = workflow::Parts {
            runs: self.runs.clone(),
            executor: self.executor.clone(),
            local: self.local.clone(),
            stage: self.work.watch(),
            prefix: self.settings.prefix().into(),
        };
        let workflow = dbos.register_workflow(WORKFLOW, move |id: String| {
            workflow::execute(parts.clone(), id)
        });
        let workflow = workflow.map_err(|error| failed(&error))?;
        dbos.launch().await.map_err(|error| failed(&error))?;
        let options = QueueOptions {
            polling_interval: QUEUE_POLL,
            ..QueueOptions::default()
        };
        let queue = dbos.register_queue(&queue, options, QueueConflict::AlwaysUpdate);
        queue.await.map_err(|error| failed(&error))?;
        Ok(Launched { dbos, workflow })
    }

    /// Executes runs, and takes over those of processes that are gone, until [`Engine::drain`] is called.
    async fn execute_runs(&self) -> Result<(), DurableError> {
        let mut takeover = Takeover::new(&self.settings, self.local.clone()).await?;
        takeover.beat().await?;
        let launched = self.launch().await?;
        *self.launched() = Some(launched.clone());
        if let Err(error) = self.recover().await {
            tracing::warn!(%error, "the runs that DBOS does not know cannot be submitted");
        }
        let client = self.client().await?;
        let mut stage = self.work.watch();
        let mut woken = Instant::now();
        loop {
            tokio::select! {
                () = takeover.pause() => {}
                // Until then, this process shows that it is alive, so that no other one takes over its steps in progress.
                () = stage.begun(Stage::Over) => break,
            }
            if let Err(error) = takeover.look(client).await {
                tracing::warn!(%error, "the processes that execute runs cannot be listed");
            }
            if woken.elapsed() >= self.settings.lease {
                woken = Instant::now();
                if let Err(error) = self.wake_again().await {
                    tracing::warn!(%error, "the runs that were sent messages cannot be woken");
                }
            }
        }
        *self.launched() = None;
        launched.dbos.shutdown().await;
        takeover.give_back().await
    }

    /// Wakes the runs whose messages came without that.
    async fn wake_again(&self) -> Result<(), DurableError> {
        for run in self.runs.unwoken(now() - self.settings.lease).await? {
            self.wake_once(&run).await?;
        }
        Ok(())
    }

    /// Wakes a run that is due, once for that time.
    async fn wake_once(&self, run: &RunRecord) -> Result<(), DurableError> {
        if !self.executor.takes(run) {
            return Ok(());
        }
        let time = run.due.map(to_millis).unwrap_or_default();
        let key = format!("{}/{time}", self.settings.workflow_id(run));
        self.send_wake(run, Some(&key)).await
    }

    /// Sends a run the message that wakes it; with a key, unless it was sent under that before.
    async fn send_wake(&self, run: &RunRecord, key: Option<&str>) -> Result<(), DurableError> {
        let options = SendOptions {
            topic: Some(TOPIC),
            idempotency_key: key,
            ..SendOptions::default()
        };
        let client = self.client().await?;
        let workflow = self.settings.workflow_id(run);
        let sent = client.send_with(&workflow, &(), options).await;
        sent.map_err(|error| failed(&error))
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
            self.start(run).await
        })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async move {
            if let RunStatus::Stopped { .. } = run.status {
                let run = self.runs.record(&run.id).await?;
                return self.submit(&run).await;
            }
            self.executor.wake(&run.id);
            self.send_wake(run, None).await
        })
    }

    /// Runs whose process ended between storing and submitting them are submitted, and those that it did not wake for a
    /// message are woken.
    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async {
            let mut due = self.runs.due(now()).await?;
            due.retain(|run| self.executor.takes(run));
            for run in &due {
                if run.waits_in_log() {
                    self.wake_once(run).await?;
                } else {
                    self.enqueue(run).await?;
                }
            }
            Ok(due.len())
        })
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
