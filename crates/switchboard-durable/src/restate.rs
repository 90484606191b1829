//! The Restate engine: a Restate server keeps the outcomes of steps, and calls the processes that execute runs.
//!
//! A conversation is a virtual object of its team, so that its messages are answered one after the other, and a run is an invocation
//! with the identifier of the run as idempotency key. Each batch of outcomes is a step of the invocation; a wait for
//! a person is an awakeable, whose name [`RunRecord::wake`] has.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use restate_sdk::discovery::ServiceName;
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::Conversations;

use crate::drain::Work;
use crate::engine::{Engine, IntoEngine};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::Executor;
use crate::record::{RunRecord, RunStatus};
use crate::run_store::RunStore;
use crate::sweep::{self, Swept};

mod client;
mod service;

use client::Client;

/// The time between two looks at the runs that are due.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);

/// The engine on a [Restate](https://restate.dev) server, with the conversations, the states of runs and their streams in a
/// store that all processes share.
///
/// A process that only starts runs, decides and reads needs the address of the server's ingress. One that executes runs
/// ([`DurableRunner::work`](crate::DurableRunner::work)) also listens, and registers itself with the server's admin
/// address.
#[derive(Debug, Clone)]
pub struct Restate {
    runs: RunStore,
    settings: Settings,
}

#[derive(Clone)]
struct Settings {
    application: Option<String>,
    ingress: String,
    admin: Option<String>,
    token: Option<String>,
    listen: Option<SocketAddr>,
    uri: Option<String>,
    suspend_after: Duration,
    longest_step: Duration,
}

impl Restate {
    /// Creates an engine with a Restate server, by the address of its ingress (`http://127.0.0.1:8080`).
    pub fn new(store: Conversations, ingress: impl Into<String>) -> Self {
        Self {
            runs: RunStore::new(store),
            settings: Settings {
                application: None,
                ingress: ingress.into().trim_end_matches('/').to_owned(),
                admin: None,
                token: None,
                listen: None,
                uri: None,
                suspend_after: Duration::from_secs(60),
                longest_step: Duration::from_secs(24 * 3600),
            },
        }
    }

    /// Sets the address at which this process listens for the server; without one it takes a free port of this machine.
    ///
    /// Several processes of one machine can listen at the same address: the system spreads the server's connections over
    /// them, and those of a process that ends go to the others. On several machines, put a load balancer for HTTP/2
    /// before them, and name it with [`uri`](Self::uri).
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.settings.listen = Some(address);
        self
    }

    /// Sets the server's admin address (`http://127.0.0.1:9070`), with which a process that executes runs registers
    /// itself. Without one, register it yourself: `restate deployments register URI`.
    #[must_use]
    pub fn admin(mut self, address: impl Into<String>) -> Self {
        self.settings.admin = Some(address.into().trim_end_matches('/').to_owned());
        self
    }

    /// Sets the address by which the server reaches this process, if it is not that of [`listen`](Self::listen).
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.settings.uri = Some(uri.into());
        self
    }

    /// Sets the name of the application, for several that share a Restate server: each has virtual objects of its own, as
    /// teams with a name ([`Runner::team_name`](switchboard_core::Runner::team_name)) have. The processes of each need an
    /// address of their own.
    #[must_use]
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.settings.application = Some(name.into());
        self
    }

    /// Sets a bearer token for the server.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
        self
    }

    /// Sets the time after which a run that waits leaves the memory of its process, and a step that runs is followed by a
    /// replay. The default is a minute.
    #[must_use]
    pub fn suspend_after(mut self, time: Duration) -> Self {
        self.settings.suspend_after = time;
        self
    }

    /// Sets the longest time that a step may take; one that takes longer is interrupted and begins again. The default is a
    /// day.
    #[must_use]
    pub fn longest_step(mut self, time: Duration) -> Self {
        self.settings.longest_step = time;
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
            .field("ingress", &self.ingress)
            .field("admin", &self.admin)
            .field("listen", &self.listen)
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl IntoEngine for Restate {
    fn name(&self) -> String {
        match &self.settings.application {
            None => "restate".to_owned(),
            Some(application) => format!("restate/{application}"),
        }
    }

    fn into_engine(self, executor: Executor) -> Arc<dyn Engine> {
        let Self { runs, settings } = self;
        Arc::new(RestateEngine {
            client: Arc::new(Client::new(&settings)),
            runs,
            settings,
            executor,
            work: Work::new(),
        })
    }
}

/// The Restate engine of a process.
struct RestateEngine {
    runs: RunStore,
    settings: Settings,
    client: Arc<Client>,
    executor: Executor,
    work: Work,
}

impl RestateEngine {
    /// Serves until [`Engine::drain`] is called.
    async fn serve(&self) -> Result<(), DurableError> {
        let listener = service::listen(self.settings.listen).map_err(|error| {
            let address = self.settings.listen.map(|at| at.to_string());
            let at = address.unwrap_or_else(|| "a free port".to_owned());
            DurableError::new(
                DurableErrorKind::Closed,
                format!("this process cannot listen at {at}: {error}"),
            )
        })?;
        let address = listener
            .local_addr()
            .map_err(|error| DurableError::new(DurableErrorKind::Closed, error.to_string()))?;
        let uri = self.settings.uri.clone();
        let uri = uri.unwrap_or_else(|| format!("http://{address}"));
        let application = self.settings.application.as_deref();
        let object = service::object_name(application, self.executor.team());
        let name = ServiceName::try_from(&object);
        let services = service::Services {
            settings: self.settings.clone(),
            object: name
                .map_err(|error| DurableError::new(DurableErrorKind::Engine, error.to_string()))?,
            runs: self.runs.clone(),
            executor: self.executor.clone(),
            client: self.client.clone(),
            stage: self.work.watch(),
        };
        let serve = service::serve(listener, services);
        let register = async {
            // The server asks this process for its services while it registers them.
            while let Err(error) = self.client.register(&uri, &object).await {
                tracing::warn!(%error, "this process cannot be registered; it is tried again");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tracing::info!(uri, "runs of the Restate server are executed here");
            sweep::sweep(self, SWEEP_PAUSE).await;
        };
        tokio::select! {
            () = serve => {}
            () = register => {}
        }
        Ok(())
    }
}

impl Swept for RestateEngine {
    fn runs(&self) -> &RunStore {
        &self.runs
    }

    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn see_to<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<bool, DurableError>> {
        Box::pin(async move {
            if run.waits_in_log() {
                self.wake(run).await?;
            } else {
                self.client.invoke(run).await?;
            }
            Ok(true)
        })
    }
}

impl Engine for RestateEngine {
    fn runs(&self) -> &RunStore {
        &self.runs
    }

    fn submit<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async move {
            if run.is_ended() || !self.executor.takes(run) {
                return Ok(());
            }
            self.client.invoke(run).await
        })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async move {
            if !self.executor.takes(run) {
                return Ok(());
            }
            if let RunStatus::Stopped { .. } = run.status {
                let run = self.runs.record(&run.id).await?;
                return self.submit(&run).await;
            }
            self.executor.wake(&run.id);
            match &run.wake {
                Some(awakeable) => self.client.resolve(awakeable).await,
                None => Ok(()),
            }
        })
    }

    /// The server calls again what was interrupted. Runs whose process ended between storing and submitting them are
    /// submitted, and those that it did not wake for a message are woken.
    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(sweep::sweep_once(self))
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _worker = self.work.begin();
            if let Err(error) = self.serve().await {
                tracing::error!(%error, "this process executes no runs");
            }
        })
    }

    fn drain(&self, time: Duration) -> BoxFuture<'_, bool> {
        Box::pin(self.work.drain(&self.executor, time))
    }
}
