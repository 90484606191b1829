//! The services that a Restate server calls.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use restate_sdk::discovery::ServiceName;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Discoverable, Service};
use serde::{Deserialize, Serialize};
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::now;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use super::Settings;
use super::client::Client;
use crate::drain::{InProgress, Stage, StageWatch};
use crate::engine::{BeginWait, NewBatch, StepLog, is_empty_batch};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::{Execution, Executor};
use crate::run_store::RunStore;

/// The start of the names of virtual objects, whose keys are conversations.
const OBJECT: &str = "SwitchboardConversation";

/// The name of the handler that executes a run.
pub(super) const HANDLER: &str = "run";

/// The number of runs on one connection. The server then makes another, which may go to another process.
const STREAMS: u32 = 32;

/// The pause before a retry, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The time that the answers of the last runs have to be sent, before connections are cut off.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// The name of the virtual object for the runs of a team. The server calls an object in the process that was registered
/// last, so each application and each team has its own.
pub(super) fn object_name(application: Option<&str>, team: Option<&str>) -> String {
    if application.is_none() && team.is_none() {
        return OBJECT.to_owned();
    }
    // Letters, digits, `.`, `_` and `-` are allowed.
    let escaped = |name: Option<&str>| {
        let escaped = utf8_percent_encode(name.unwrap_or_default(), NON_ALPHANUMERIC);
        escaped.to_string().replace('%', "_")
    };
    format!("{OBJECT}.{}.{}", escaped(application), escaped(team))
}

/// A conversation, as a virtual object: its runs take place one after the other.
struct Conversation {
    runs: RunStore,
    executor: Executor,
    client: Arc<Client>,
    stage: StageWatch,
    /// The invocations in progress on the connection.
    in_progress: InProgress,
}

/// The input of an invocation.
#[derive(Serialize, Deserialize)]
struct Invocation {
    /// The identifier of the run.
    run: String,
    /// The name of its log.
    log: String,
}

#[object]
impl Conversation {
    /// Executes a run until it ends.
    #[handler(name = "run")]
    async fn run(&self, ctx: ObjectContext<'_>, invocation: Json<Invocation>) -> HandlerResult<()> {
        let _call = self.in_progress.begin();
        let Invocation { run: id, log: name } = invocation.into_inner();
        let mut log = InvocationLog {
            ctx: &ctx,
            stage: self.stage.clone(),
            ended: None,
        };
        let executed = self
            .executor
            .execute(&self.runs, &id, &name, &mut log)
            .await;
        if let Some(terminal) = log.ended.take() {
            // Somebody has cancelled the invocation at the server.
            return Err(terminal.into());
        }
        match executed {
            Ok(Execution::Ended) => Ok(()),
            Ok(Execution::Stopped { reason }) => self.give_up(&ctx, reason).await,
            Ok(Execution::Superseded) => {
                let reason = "the run was resumed, and goes on in another invocation";
                self.give_up(&ctx, reason.to_owned()).await
            }
            Ok(Execution::OtherEngine) => Err(retried("the run is one of another team")),
            Ok(Execution::Draining) => Err(retried("this process shuts down")),
            Ok(Execution::Taken) => Err(retried("another process has the run")),
            Ok(Execution::Active) => Err(retried("an earlier execution is about to end")),
            Err(error) => Err(error.into()),
        }
    }
}

impl Conversation {
    /// Ends an invocation that has not made the calls of its journal again.
    async fn give_up(&self, ctx: &ObjectContext<'_>, reason: String) -> HandlerResult<()> {
        if let Err(error) = self.client.kill(ctx.invocation_id()).await {
            return Err(error.into());
        }
        Err(TerminalError::new(reason).into())
    }
}

/// The virtual object under a name that is known when the process runs. The code that `#[object]` generates for constant
/// names is the same.
struct NamedConversation(Arc<Conversation>);

impl Service for NamedConversation {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let conversation = self.0.clone();
        Box::pin(async move {
            if ctx.handler_name() != HANDLER {
                let (object, handler) = (ctx.service_name(), ctx.handler_name());
                let error = restate_sdk::endpoint::Error::unknown_handler(object, handler);
                return Err(error);
            }
            let (invocation, metadata) = ctx.input().await;
            let ran = conversation.run((&ctx, metadata).into(), invocation);
            ctx.handle_handler_result(ran.await);
            ctx.end();
            Ok(())
        })
    }
}

impl Conversation {
    fn named(self, name: ServiceName) -> ServiceDefinition {
        let mut discovery = Self::discover();
        discovery.name = name;
        service_definition(NamedConversation(Arc::new(self)), discovery)
    }
}

/// An error after which the server calls again.
fn retried(reason: &str) -> HandlerError {
    let error: Box<dyn std::error::Error + Send + Sync> = reason.into();
    error.into()
}

/// The journal of an invocation, as the log of a run.
struct InvocationLog<'a, 'ctx> {
    ctx: &'a ObjectContext<'ctx>,
    stage: StageWatch,
    /// The error with which the server ended the invocation.
    ended: Option<TerminalError>,
}

impl InvocationLog<'_, '_> {
    fn end(&mut self, error: TerminalError) -> DurableError {
        let message = format!("the invocation has ended: {error}");
        self.ended = Some(error);
        DurableError::new(DurableErrorKind::Closed, message)
    }
}

impl StepLog for InvocationLog<'_, '_> {
    fn next<'a>(&'a mut self, batch: NewBatch) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            let step = self.ctx.run(move || async move { Ok(batch().await?) });
            step.name("step").await.map_err(|error| self.end(error))
        })
    }

    fn wait<'a>(
        &'a mut self,
        begin: BeginWait,
        until: Option<SystemTime>,
    ) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            loop {
                let (name, woken) = self.ctx.awakeable::<Json<serde_json::Value>>();
                let begin = begin.clone();
                let step = self
                    .ctx
                    .run(move || async move { Ok(begin(Some(name)).await?) });
                let batch = step.name("wait").await.map_err(|error| self.end(error))?;
                if !is_empty_batch(&batch) {
                    return Ok(batch);
                }
                let woken = async {
                    let Some(until) = until else {
                        return woken.await.map(drop);
                    };
                    let left = until.duration_since(now()).unwrap_or_default();
                    restate_sdk::select! {
                        woken = woken => woken.map(drop),
                        slept = self.ctx.sleep(left) => slept,
                    }
                };
                let woken = tokio::select! {
                    woken = woken => woken,
                    () = self.stage.begun(Stage::Draining) => {
                        let message = "the run waits, and this process shuts down";
                        return Err(DurableError::new(DurableErrorKind::Closed, message));
                    }
                };
                woken.map_err(|error| self.end(error))?;
            }
        })
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn is_compared(&self) -> bool {
        true
    }
}

/// Binds the address at which a server reaches this process. Other processes can bind it too.
pub(super) fn listen(address: Option<SocketAddr>) -> std::io::Result<TcpListener> {
    let address = address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// The services of this process, with the parts that they need.
#[derive(Clone)]
pub(super) struct Services {
    pub(super) settings: Settings,
    /// The name of the virtual object.
    pub(super) object: ServiceName,
    pub(super) runs: RunStore,
    pub(super) executor: Executor,
    pub(super) client: Arc<Client>,
    pub(super) stage: StageWatch,
}

/// The services, as one connection has them.
fn endpoint(services: &Services, in_progress: &InProgress) -> Endpoint {
    let Services { settings, .. } = services;
    let conversation = Conversation {
        runs: services.runs.clone(),
        executor: services.executor.clone(),
        client: services.client.clone(),
        stage: services.stage.clone(),
        in_progress: in_progress.clone(),
    };
    let (first, longest) = RETRY;
    let options = ServiceOptions::new()
        .inactivity_timeout(settings.suspend_after)
        .abort_timeout(settings.longest_step)
        .retry_policy_initial_interval(first)
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(longest)
        // A run is never given up.
        .retry_policy_max_attempts(u64::from(u32::MAX));
    let conversation = conversation.named(services.object.clone()).options(options);
    Endpoint::builder().bind(conversation).build()
}

/// Serves connections until the process drains, and what they carry until it is over.
pub(super) async fn serve(listener: TcpListener, services: Services) {
    let mut stage = services.stage.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a connection of the Restate server is lost");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.max_concurrent_streams(STREAMS);
                let in_progress = InProgress::new();
                let endpoint = HyperEndpoint::new(endpoint(&services, &in_progress));
                let connection = builder.serve_connection(TokioIo::new(stream), endpoint);
                let mut stage = stage.clone();
                connections.spawn(async move {
                    let mut connection = pin!(connection);
                    let idle = async {
                        stage.begun(Stage::Draining).await;
                        // A server that calls on a connection that was told to close breaks it, with the steps on it. What it
                        // calls before is refused, and called again.
                        in_progress.ended().await;
                    };
                    let served = tokio::select! {
                        served = connection.as_mut() => served,
                        () = idle => {
                            connection.as_mut().graceful_shutdown();
                            connection.await
                        }
                    };
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection of the Restate server has ended");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
            () = stage.begun(Stage::Draining) => break,
        }
    }
    drop(listener);
    let cut = async {
        stage.begun(Stage::Over).await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    // What is cut off is called again by the server, in another process.
    tokio::select! {
        _ = connections.join_all() => {}
        () = cut => {}
    }
}
