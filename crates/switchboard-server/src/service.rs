//! The layer that all protocols are translations of.
//!
//! A protocol reads its request, finds out the [`Caller`], and calls one of these:
//!
//! | call | meaning |
//! | --- | --- |
//! | [`Service::send`] | begins a run for a message of a conversation (or of none) |
//! | [`Service::decide`], [`Service::answer`] | decides calls that wait, or answers for a person, and goes on with the run |
//! | [`Service::run`], [`Service::runs`], [`RunRecord::cancel`] | finds, lists and cancels runs |
//! | [`Service::conversations_of`], [`Service::search`], [`Service::show`], [`Service::fork`], [`Service::delete`] | stored conversations |
//! | [`Service::team`], [`Service::teams`] | the teams that the caller may use |
//!
//! A run is a task of its own: it goes on when the client that began it disconnects. Its events go to an
//! [`EventLog`](crate::event_log::EventLog), which any number of readers follow from any event on; a protocol reads
//! [`RunRecord::log`] and translates each event. The last event is logged once everything is stored. Limits, tenants,
//! metrics and shutting down are handled here, so that a protocol cannot forget them.

mod conversations;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use switchboard_core::approval::{Decision, DecisionError, Interruption, InterruptionKind};
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::model::RequestUsage;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::Price;
use switchboard_core::stream::StopHandle;
use switchboard_core::tool::ToolOutput;
use switchboard_core::{Input, Item, ModelSettings, Run};

pub(crate) use conversations::{Listed, Shown};

use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::event_log::{EventLog, LogLimits};
use crate::keys::{Key, Keys, random_id};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::runs::{RunRecord, Runs};
use crate::team::{EndStatus, RunRequest, RunStart, ServedTeam};
use crate::tenant::Tenant;

/// The time between stopping a run after its turn and stopping it at once.
const STOP_TIME: Duration = Duration::from_secs(30);

/// The time for which the calls of a client that keeps its conversations itself wait for their outputs.
const KEEP_WAITING: Duration = Duration::from_secs(24 * 60 * 60);

/// Teams as a service. Clones share it.
///
/// ```
/// use switchboard_core::conversation::Conversations;
/// use switchboard_core::{Agent, Team};
/// use switchboard_server::{ServedTeam, Service};
///
/// let team: Team = Team::new().agent(Agent::new("Support")).build()?;
/// let service = Service::builder()
///     .team(ServedTeam::new("support", team, ()))
///     .conversations(Conversations::in_memory())
///     .build()?;
/// let app: axum::Router = axum::Router::new().merge(service.router());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Service(Arc<Inner>);

pub(crate) struct Inner {
    teams: Vec<ServedTeam>,
    pub(crate) store: Conversations,
    pub(crate) keys: Option<Keys>,
    pub(crate) limits: Limits,
    prices: Vec<(Arc<str>, Price)>,
    pub(crate) logs_content: bool,
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) metrics: Metrics,
    runs: Runs,
    is_draining: AtomicBool,
    pub(crate) requests: Arc<tokio::sync::Semaphore>,
}

/// Builds a [`Service`]; see [`Service::builder`].
#[derive(Debug)]
#[must_use]
pub struct ServiceBuilder {
    teams: Vec<ServedTeam>,
    store: Option<Conversations>,
    keys: Option<Keys>,
    limits: Limits,
    prices: Vec<(Arc<str>, Price)>,
    logs_content: bool,
    hosts: Option<Vec<String>>,
}

impl ServiceBuilder {
    /// Adds a team.
    pub fn team(mut self, team: ServedTeam) -> Self {
        self.teams.push(team);
        self
    }

    /// Sets the store of conversations. Without one, they are in memory, as long as the service runs.
    pub fn conversations(mut self, store: Conversations) -> Self {
        self.store = Some(store);
        self
    }

    /// Asks every client for a key. Without keys anybody who reaches the service may use it, as one tenant.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the price of a model, by its name, for the limits on cost.
    pub fn price(mut self, model: impl Into<Arc<str>>, price: Price) -> Self {
        self.prices.push((model.into(), price));
        self
    }

    /// Writes messages and answers to the log. Otherwise it has no content of conversations.
    pub fn log_content(mut self, logs_content: bool) -> Self {
        self.logs_content = logs_content;
        self
    }

    /// Answers only requests whose `Host` header has one of these names, without a port. On a loopback address
    /// this keeps pages of other sites out that have made their name lead to it (DNS rebinding).
    pub fn hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    /// An error if there is no team, or two of one name, or a name with a `/`.
    pub fn build(self) -> Result<Service, ServiceError> {
        if self.teams.is_empty() {
            return Err(ServiceError::invalid("a service needs a team"));
        }
        for (at, team) in self.teams.iter().enumerate() {
            let name = team.name();
            if name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
                let message = format!("{name:?} is no name of a team: it is empty or has a \"/\"");
                return Err(ServiceError::invalid(message));
            }
            if self.teams[..at].iter().any(|other| other.name() == name) {
                return Err(ServiceError::invalid(format!("two teams are named {name:?}")));
            }
        }
        Ok(Service(Arc::new(Inner {
            teams: self.teams,
            store: self.store.unwrap_or_else(Conversations::in_memory),
            keys: self.keys,
            requests: Arc::new(tokio::sync::Semaphore::new(self.limits.requests)),
            limits: self.limits,
            prices: self.prices,
            logs_content: self.logs_content,
            hosts: self.hosts,
            metrics: Metrics::new(),
            runs: Runs::default(),
            is_draining: AtomicBool::new(false),
        })))
    }
}

/// The client that a request is from.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) key: Option<Arc<Key>>,
}

/// A message to a team.
pub(crate) struct Message {
    pub(crate) team: ServedTeam,
    /// The agent that a new conversation begins with, instead of the team's first one.
    pub(crate) agent: Option<Arc<str>>,
    /// The conversation's identifier; `None` if nothing is kept.
    pub(crate) conversation: Option<Arc<str>>,
    pub(crate) input: Input,
    pub(crate) options: MessageOptions,
}

/// The parts of a message that most protocols do not use.
#[derive(Debug, Default)]
pub(crate) struct MessageOptions {
    pub(crate) client_tools: ClientTools,
    pub(crate) settings: ModelSettings,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) without_tools: bool,
    /// Two messages of a tenant with the same key are one.
    pub(crate) idempotency_key: Option<Arc<str>>,
    /// Set if the conversation is deleted after the run, unless it waits for something.
    pub(crate) is_temporary: bool,
    /// The identifier of the run, where the protocol has told it already.
    pub(crate) run_id: Option<Arc<str>>,
    /// Messages that follow the outputs of tools.
    pub(crate) added: Vec<Item>,
}

impl Service {
    /// Returns a builder for a service.
    pub fn builder() -> ServiceBuilder {
        ServiceBuilder {
            teams: Vec::new(),
            store: None,
            keys: None,
            limits: Limits::default(),
            prices: Vec::new(),
            logs_content: false,
            hosts: None,
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The teams that the caller may use.
    pub(crate) fn teams(&self, caller: &Caller) -> impl Iterator<Item = &ServedTeam> {
        let key = caller.key.clone();
        let is_allowed = move |team: &&ServedTeam| {
            key.as_ref().is_none_or(|key| key.allows_team(team.name()))
        };
        self.0.teams.iter().filter(is_allowed)
    }

    /// The team of this name.
    pub(crate) fn team(&self, caller: &Caller, name: &str) -> Result<&ServedTeam, ServiceError> {
        let found = self.teams(caller).find(|team| team.name() == name);
        found.ok_or_else(|| ServiceError::not_found(format!("there is no team {name:?}")))
    }

    /// The team of a stored conversation, or the only one.
    pub(crate) async fn team_of(
        &self,
        caller: &Caller,
        conversation: &Conversation,
    ) -> Result<&ServedTeam, ServiceError> {
        let head = conversation.head().await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        let details = head.and_then(|head| head.details);
        match details.as_deref().and_then(conversations::team_name) {
            Some(name) => self.team(caller, &name),
            None => self.default_team(caller),
        }
    }

    /// The team of a message that names none.
    pub(crate) fn default_team(&self, caller: &Caller) -> Result<&ServedTeam, ServiceError> {
        let mut teams = self.teams(caller);
        match (teams.next(), teams.next()) {
            (Some(team), None) => Ok(team),
            (None, _) => Err(ServiceError::not_found("there is no team for this key")),
            _ => Err(ServiceError::invalid("there are several teams; name one")),
        }
    }

    /// A handle to a conversation of the caller.
    pub(crate) fn conversation(&self, caller: &Caller, id: &str) -> Result<Conversation, ServiceError> {
        Ok(self.0.store.get(caller.tenant.stored_name(id)?))
    }

    /// Begins a run for a message.
    pub(crate) fn send(&self, caller: &Caller, message: Message) -> Result<Arc<RunRecord>, ServiceError> {
        let Message { team, agent, conversation, input, options } = message;
        if let Some(key) = &options.idempotency_key
            && let Some(run) = self.0.runs.with_key(&caller.tenant, key)
        {
            return Ok(run);
        }
        let stored = match &conversation {
            Some(id) => Some(self.conversation(caller, id)?),
            None => None,
        };
        let request = RunRequest {
            start: RunStart::Input(input),
            agent,
            conversation: stored,
            client_tools: options.client_tools,
            settings: options.settings,
            instructions: options.instructions,
            without_tools: options.without_tools,
            exclusive: self.0.limits.conversation_wait,
        };
        let identity = RunIdentity {
            id: options.run_id,
            idempotency_key: options.idempotency_key,
            is_temporary: options.is_temporary,
        };
        self.start(caller, &team, conversation, request, identity)
    }

    /// Decides calls that wait, and goes on with their run.
    pub(crate) async fn decide(
        &self,
        caller: &Caller,
        id: &str,
        decisions: Vec<(Arc<str>, Decision)>,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        if decisions.is_empty() {
            return Err(ServiceError::invalid("there is no decision"));
        }
        let (conversation, mut run) = self.waiting(caller, id).await?;
        for (call_id, decision) in decisions {
            let waiting = find_waiting(&run, |waiting| {
                waiting.call_id == call_id && !is_person(waiting)
            })?;
            let decided = run.decide(&waiting, decision);
            decided.map_err(|error| ServiceError::new(ServiceErrorKind::Conflict, error.to_string()))?;
        }
        self.resume(caller, id, conversation, run, MessageOptions::default()).await
    }

    /// Answers for a person that a run waits for, and goes on with it.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        id: &str,
        person: Option<&str>,
        answer: PersonAnswer,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let (conversation, mut run) = self.waiting(caller, id).await?;
        let waiting = find_waiting(&run, |waiting| {
            is_person(waiting) && person.is_none_or(|person| *waiting.agent == *person)
        })?;
        let answered = run.answer(&waiting, answer);
        answered.map_err(|error| ServiceError::invalid(error.to_string()))?;
        self.resume(caller, id, conversation, run, MessageOptions::default()).await
    }

    /// Gives the outputs of a client's tools, and goes on with their run. Returns `None` if no such call waits.
    pub(crate) async fn give_outputs(
        &self,
        caller: &Caller,
        id: &str,
        outputs: Vec<(Arc<str>, ToolOutput)>,
        mut options: MessageOptions,
    ) -> Result<Option<Arc<RunRecord>>, ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let run = conversation.waiting_run().await;
        let Some(mut run) = run.map_err(|error| ServiceError::of_store(&error))? else {
            return Ok(None);
        };
        let team = self.team_of(caller, &conversation).await?;
        let waiting = run.interruptions();
        let calls = outputs.into_iter().filter_map(|(call_id, output)| {
            let call = waiting.iter().find(|waiting| waiting.call_id == call_id)?;
            team.is_client_call(call).then_some((call, output))
        });
        let calls: Vec<(&Interruption, ToolOutput)> = calls.collect();
        if calls.is_empty() {
            return Ok(None);
        }
        let conflict = |error: DecisionError| {
            ServiceError::new(ServiceErrorKind::Conflict, error.to_string())
        };
        if !options.added.is_empty() {
            run.add_input(std::mem::take(&mut options.added)).map_err(conflict)?;
        }
        for (call, output) in calls {
            run.decide(call, Decision::approve()).map_err(conflict)?;
            options.client_tools.set_output(&call.call_id, output);
        }
        if waiting.iter().all(|waiting| team.is_client_call(waiting)) {
            // A client may describe its tools otherwise, or not at all, when it sends their outputs.
            run.accept_schema_changes();
        }
        options.client_tools.add_waiting(&waiting, |waiting| team.is_client_call(waiting));
        self.resume(caller, id, conversation, run, options).await.map(Some)
    }

    /// The run of a conversation that waits.
    async fn waiting(&self, caller: &Caller, id: &str) -> Result<(Conversation, Run), ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let head = conversation.head().await;
        if head.map_err(|error| ServiceError::of_store(&error))?.is_none() {
            return Err(ServiceError::not_found("there is no such conversation"));
        }
        let run = conversation.waiting_run().await;
        let run = run.map_err(|error| ServiceError::of_store(&error))?;
        let run = run.ok_or_else(|| {
            ServiceError::new(ServiceErrorKind::Conflict, "nothing waits in this conversation")
        })?;
        Ok((conversation, run))
    }

    async fn resume(
        &self,
        caller: &Caller,
        id: &str,
        conversation: Conversation,
        run: Run,
        options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let team = self.team_of(caller, &conversation).await?.clone();
        let request = RunRequest {
            start: RunStart::Resume(Box::new(run)),
            agent: None,
            conversation: Some(conversation),
            client_tools: options.client_tools,
            settings: options.settings,
            instructions: options.instructions,
            without_tools: false,
            exclusive: self.0.limits.conversation_wait,
        };
        let identity = RunIdentity {
            id: options.run_id,
            idempotency_key: options.idempotency_key,
            is_temporary: options.is_temporary,
        };
        self.start(caller, &team, Some(id.into()), request, identity)
    }

    /// Begins a run as a task.
    fn start(
        &self,
        caller: &Caller,
        team: &ServedTeam,
        conversation: Option<Arc<str>>,
        request: RunRequest,
        identity: RunIdentity,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let inner = &self.0;
        let refuse = |reason: &str, error: ServiceError| {
            inner.metrics.refused(reason);
            Err(error)
        };
        if self.is_draining() {
            return refuse("draining", draining());
        }
        if inner.runs.running() >= inner.limits.runs {
            let error = ServiceError::new(ServiceErrorKind::Unavailable, "too many runs are under way");
            return refuse("runs", error.retry_after(Duration::from_secs(1)));
        }
        let permit = match &caller.key {
            None => None,
            Some(key) => match key.take_run() {
                Ok(permit) => Some(permit),
                Err(error) => return refuse("key", error),
            },
        };
        inner.runs.forget_ended(inner.limits.keep_ended, inner.limits.ended_runs);
        let log = Arc::new(EventLog::new(LogLimits {
            events: inner.limits.events,
            bytes: inner.limits.event_bytes,
            is_copied: inner.logs_content,
        }));
        let sink = {
            let (service, log, team) = (self.clone(), log.clone(), team.clone());
            Box::new(move |event| {
                let metrics = &service.0.metrics;
                metrics.observe(team.name(), &event, |tool| team.has_tool(tool));
                log.push(event);
            })
        };
        let stored = request.conversation.clone();
        let prepared = team.prepare(request, sink)?;
        let id = match identity.id {
            Some(id) => id,
            None => random_id("run")?,
        };
        let record = Arc::new(RunRecord::new(
            id,
            caller.tenant.clone(),
            team.name().into(),
            conversation,
            log,
            prepared.stop.clone(),
            identity.idempotency_key,
        ));
        inner.runs.insert(&record);
        inner.metrics.run_started();
        tracing::info!(
            run = &*record.id,
            team = team.name(),
            tenant = caller.tenant.name(),
            key = caller.key.as_ref().map(|key| key.id()),
            "a run begins"
        );
        let (service, caller) = (self.clone(), caller.clone());
        let running = record.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            // A panic in the task must not leave the run in the list of those that are under way.
            let limit = service.0.limits.run_time;
            let end = match tokio::spawn(within_time(prepared.future, prepared.stop, limit)).await {
                Ok(end) => end,
                Err(_) => {
                    running.log.push_failure("the run has panicked");
                    crate::team::RunEnd::panicked()
                }
            };
            if let Some(conversation) = stored.filter(|_| identity.is_temporary) {
                end_temporary(&conversation, end.status).await;
            }
            let cost = service.cost(&end.request_usage);
            if let Some(key) = &caller.key {
                key.add_usage(end.usage.total_tokens(), cost);
            }
            drop(permit);
            let status = status_name(end.status, running.is_cancelled());
            let time = began.elapsed();
            let metrics = &service.0.metrics;
            metrics.run_ended(&running.team, status, time, &end.usage, cost);
            service.0.runs.ended(&running, &end);
            running.log.close();
            tracing::info!(
                run = &*running.id,
                status,
                seconds = time.as_secs_f64(),
                tokens = end.usage.total_tokens(),
                "a run has ended"
            );
        });
        Ok(record)
    }

    /// The cost of model calls whose prices are known.
    fn cost(&self, usage: &[RequestUsage]) -> f64 {
        let costs = usage.iter().filter_map(|request| {
            let model = request.model.as_deref()?;
            let (_, price) = self.0.prices.iter().rev().find(|(name, _)| **name == *model)?;
            Some(price.cost(&request.usage))
        });
        costs.sum()
    }

    /// A run of the caller.
    pub(crate) fn run(&self, caller: &Caller, id: &str) -> Result<Arc<RunRecord>, ServiceError> {
        let found = self.0.runs.get(&caller.tenant, id);
        found.ok_or_else(|| {
            ServiceError::not_found("there is no such run, or it ended some time ago")
        })
    }

    /// The runs of the caller, the latest first.
    pub(crate) fn runs(&self, caller: &Caller) -> Vec<Arc<RunRecord>> {
        self.0.runs.list(&caller.tenant)
    }

    /// Returns `true` once the service takes no new runs.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
    }

    /// Ends the service's work: new runs are refused with 503, and runs under way may go on for half of `time`,
    /// then until the end of their turn, and are then stopped. Everything that they did in whole turns is
    /// stored, and so is a run that waits for a person. Returns when no run is under way; the store is left open.
    pub async fn drain(&self, time: Duration) {
        self.0.is_draining.store(true, Ordering::Relaxed);
        let runs = &self.0.runs;
        if tokio::time::timeout(time / 2, runs.all_ended()).await.is_ok() {
            return;
        }
        runs.stop_all(StopHandle::stop_after_turn);
        if tokio::time::timeout(time / 2, runs.all_ended()).await.is_ok() {
            return;
        }
        runs.stop_all(StopHandle::stop);
        if tokio::time::timeout(STOP_TIME, runs.all_ended()).await.is_err() {
            tracing::error!(runs = runs.running(), "runs could not be stopped");
        }
    }

    /// Checks that the store of conversations answers.
    pub(crate) async fn check_store(&self) -> Result<(), ServiceError> {
        let probe = self.0.store.get("~ready");
        let head = probe.head();
        match tokio::time::timeout(Duration::from_secs(5), head).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(ServiceError::of_store(&error)),
            Err(_) => Err(ServiceError::new(
                ServiceErrorKind::Unavailable,
                "the store of conversations does not answer",
            )),
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Service").field(&self.0.teams).finish()
    }
}

/// The identity of a run.
struct RunIdentity {
    id: Option<Arc<str>>,
    idempotency_key: Option<Arc<str>>,
    is_temporary: bool,
}

/// Deletes the conversation of a client that keeps its conversations itself, unless it waits.
async fn end_temporary(conversation: &Conversation, status: EndStatus) {
    let ended = if status == EndStatus::Interrupted {
        let time = SystemTime::now() + KEEP_WAITING;
        conversation.expire_at(time).await
    } else {
        let store = conversation.conversations();
        store.delete(conversation.name()).await.map(drop)
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "a temporary conversation could not be removed");
    }
}

/// The error for requests that would begin new work while the service shuts down.
pub(crate) fn draining() -> ServiceError {
    ServiceError::new(ServiceErrorKind::Unavailable, "the service is shutting down")
        .retry_after(Duration::from_secs(5))
}

/// Carries a run out within a time.
async fn within_time(
    mut run: futures_util::future::BoxFuture<'static, crate::team::RunEnd>,
    stop: StopHandle,
    limit: Duration,
) -> crate::team::RunEnd {
    if let Ok(end) = tokio::time::timeout(limit, &mut run).await {
        return end;
    }
    stop.stop_after_turn();
    if let Ok(end) = tokio::time::timeout(STOP_TIME, &mut run).await {
        return end;
    }
    stop.stop();
    run.await
}

/// The status of a run that has ended, as clients and metrics see it.
pub(crate) fn status_name(status: EndStatus, is_cancelled: bool) -> &'static str {
    match status {
        EndStatus::Completed => "completed",
        EndStatus::Interrupted => "waiting",
        EndStatus::Stopped if is_cancelled => "cancelled",
        EndStatus::Stopped => "stopped",
        EndStatus::Failed(_) => "failed",
    }
}

fn is_person(waiting: &Interruption) -> bool {
    matches!(waiting.kind, InterruptionKind::Person { .. })
}

fn find_waiting(
    run: &Run,
    is_meant: impl Fn(&Interruption) -> bool,
) -> Result<Interruption, ServiceError> {
    let waiting = run.interruptions().into_iter().find(is_meant);
    waiting.ok_or_else(|| {
        let message = "no such call or person waits in this conversation";
        ServiceError::new(ServiceErrorKind::Conflict, message)
    })
}
