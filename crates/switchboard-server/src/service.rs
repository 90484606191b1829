//! The layer that all protocols are translations of.
//!
//! A protocol reads its request, finds out the [`Caller`], and calls one of these:
//!
//! | call | meaning |
//! | --- | --- |
//! | [`Service::lock_conversation`], [`Service::wait_for_runs`], [`Service::admit`] | what comes before a run whose conversation is changed first |
//! | [`Service::send`] | begins a run for a message of a conversation (or of none) |
//! | [`Service::decide`], [`Service::answer`], [`Service::resolve`] | decides calls that wait, or answers for a person, and goes on with the run |
//! | [`Service::waiting_for`], [`Service::resumptions`], [`Service::hold_wait`] | shows what a conversation waits for and what became of its decisions, and ends the wait without one |
//! | [`Service::run`], [`Service::runs`], [`RunRecord::cancel`] | finds, lists and cancels runs |
//! | [`Service::conversations_of`], [`Service::search`], [`Service::show`], [`Service::fork`], [`Service::delete`] | stored conversations |
//! | [`Service::team`], [`Service::teams`] | the teams that the caller may use |
//!
//! A run is a task of its own: it goes on when the client that began it disconnects. Its events go to an
//! [`EventLog`](crate::event_log::EventLog), which any number of readers follow from any event on; a protocol reads
//! [`RunRecord::log`] and translates each event. The last event is logged once everything is stored. Limits, tenants,
//! metrics and shutting down are handled here, so that a protocol cannot forget them.

mod admission;
mod builder;
mod conversations;
mod processes;
mod resumptions;
mod start;
mod temporary;
mod turns;
mod unanswered;
mod usage;
mod waiting;
mod waiting_marks;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_core::conversation::{Conversation, Conversations, Revision};
use switchboard_core::run::Price;
use switchboard_core::stream::StopHandle;
use switchboard_core::{Input, Item, ModelSettings};

pub(crate) use admission::{Admission, ConversationLock};
pub use builder::ServiceBuilder;
pub(crate) use conversations::{ConversationDetails, HeadPages, Listed, ListedConversation, Shown};
pub(crate) use resumptions::{EndedResumption, ResumptionEnd, store_persistently};
pub(crate) use turns::{TurnInfo, Turns};
pub(crate) use waiting::{GivenOutputs, OutputsGiven, Resolution, Wait};
pub(crate) use waiting_marks::WaitingConversation;

use self::admission::ConversationLocks;
use self::processes::Renewal;
use self::resumptions::Beginning;
use self::start::RunIdentity;
use self::waiting_marks::WaitingMarks;
use crate::changes::{Change, Changes, TeamChange};
use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::idempotency::IdempotencyKey;
use crate::keys::{Key, Keys};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::realtime::{CloseReason, Sessions, Signal, Tickets};
use crate::recording::Recordings;
use crate::runs::{RunRecord, Runs};
use crate::studio::Studio;
use crate::team::{EndStatus, RunRequest, RunStart, ServedTeam};
use crate::tenant::Tenant;

/// The longest chain of copies of copies that is followed.
const MAX_ORIGINS: usize = 8;

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
    teams: RwLock<Vec<ServedTeam>>,
    pub(crate) store: Conversations,
    pub(crate) keys: Option<Keys>,
    pub(crate) limits: Limits,
    prices: Arc<[(Arc<str>, Price)]>,
    pub(crate) logs_content: bool,
    pub(crate) hosts: Option<Vec<String>>,
    /// The address that clients reach the service by, without a `/` at its end.
    pub(crate) public_url: Option<String>,
    pub(crate) metrics: Metrics,
    /// Notified when a record of the service is stored.
    pub(crate) records_changed: tokio::sync::Notify,
    runs: Arc<Runs>,
    locks: ConversationLocks,
    pub(crate) recordings: Option<Recordings>,
    pub(crate) changes: Changes,
    waiting: WaitingMarks,
    beginning: Beginning,
    sources: std::sync::Mutex<()>,
    /// The name of this process among those that share a store.
    process: Arc<str>,
    renewal: tokio::sync::Mutex<Renewal>,
    pub(crate) studio: Option<Studio>,
    is_draining: AtomicBool,
    pub(crate) requests: Arc<tokio::sync::Semaphore>,
    pub(crate) tickets: Tickets,
    pub(crate) sessions: Arc<Sessions>,
}

/// The client that a request is from.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) key: Option<Arc<Key>>,
    /// The identifier of the request, for the log.
    pub(crate) request: Arc<str>,
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
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// The permission to begin the run, where it was asked for before.
    pub(crate) admission: Option<Admission>,
    /// Set if the conversation is a new one that is deleted after the run, unless it waits for something. Of
    /// others, the store knows it.
    pub(crate) is_temporary: bool,
    /// The identifier of the run, where the protocol has told it already.
    pub(crate) run_id: Option<Arc<str>>,
    /// The place of the wait that decisions and answers are for; `None` is the one that there is.
    pub(crate) wait: Option<Revision>,
    /// Messages that follow the outputs of tools.
    pub(crate) added: Vec<Item>,
    /// Keeps a record of the run.
    pub(crate) follower: Option<Follower>,
}

/// Follows a run from its beginning, to keep a record of it. It reads the log to its end; the run counts as ended,
/// and its log is closed, once the follower has.
pub(crate) struct Follower(FollowFn);

type FollowFn = Box<dyn FnOnce(Arc<RunRecord>) -> BoxFuture<'static, ()> + Send>;

impl Follower {
    pub(crate) fn new<F: Future<Output = ()> + Send + 'static>(
        follow: impl FnOnce(Arc<RunRecord>) -> F + Send + 'static,
    ) -> Self {
        Self(Box::new(|run| Box::pin(follow(run))))
    }

    pub(crate) fn follow(self, run: Arc<RunRecord>) -> BoxFuture<'static, ()> {
        (self.0)(run)
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

impl Caller {
    /// Returns `true` if the client may change team files: with the key's permission, or where there are no keys or
    /// the token of the studio was sent.
    pub(crate) fn may_edit_teams(&self) -> bool {
        self.key.as_ref().is_none_or(|key| key.allows_editing())
    }
}

impl Service {
    /// Returns a builder for a service.
    pub fn builder() -> ServiceBuilder {
        ServiceBuilder::new()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The teams that the caller may use.
    pub(crate) fn teams(&self, caller: &Caller) -> Vec<ServedTeam> {
        let key = caller.key.as_ref();
        let is_allowed = |team: &&ServedTeam| key.is_none_or(|key| key.allows_team(team.name()));
        let teams = self.0.teams.read();
        let teams = teams.unwrap_or_else(PoisonError::into_inner);
        teams.iter().filter(is_allowed).cloned().collect()
    }

    /// Returns `false` once the key of the caller was removed.
    pub(crate) fn is_key_valid(&self, caller: &Caller) -> bool {
        match (&self.0.keys, &caller.key) {
            (Some(keys), Some(key)) => keys.has(key),
            _ => true,
        }
    }

    /// The team of this name.
    pub(crate) fn team(&self, caller: &Caller, name: &str) -> Result<ServedTeam, ServiceError> {
        let found = self
            .teams(caller)
            .into_iter()
            .find(|team| team.name() == name);
        found.ok_or_else(|| ServiceError::not_found(format!("there is no team {name:?}")))
    }

    /// The first team, whoever asks.
    pub(crate) fn first_team(&self) -> Option<ServedTeam> {
        self.all_teams().into_iter().next()
    }

    /// The team of this name, whoever asks.
    pub(crate) fn any_team(&self, name: &str) -> Option<ServedTeam> {
        let mut teams = self.all_teams().into_iter();
        teams.find(|team| team.name() == name)
    }

    /// All teams.
    pub(crate) fn all_teams(&self) -> Vec<ServedTeam> {
        let teams = self.0.teams.read();
        teams.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps others from changing sources of teams meanwhile.
    pub(crate) fn lock_sources(&self) -> std::sync::MutexGuard<'_, ()> {
        let lock = self.0.sources.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a team in the place of the one of the same name. Runs under way go on with the team that they
    /// began with; the next message of a conversation goes to the new one. Returns `false` if there is no team of
    /// that name.
    pub fn replace_team(&self, team: ServedTeam) -> bool {
        let teams = self.0.teams.write();
        let mut teams = teams.unwrap_or_else(PoisonError::into_inner);
        let Some(known) = teams.iter_mut().find(|known| known.name() == team.name()) else {
            return false;
        };
        let team = team.or_speech_of(known);
        let (name, version) = (team.name().into(), team.version().into());
        *known = team;
        drop(teams);
        let change = TeamChange { name, version };
        self.0.changes.tell_all(Change::Team(change));
        true
    }

    /// The team of a stored conversation, or the only one, or that of the conversation that it is a copy of, with the
    /// context of the conversation.
    pub(crate) async fn team_of(
        &self,
        caller: &Caller,
        conversation: &Conversation,
    ) -> Result<ServedTeam, ServiceError> {
        let head = conversation.head().await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        let details = head.and_then(|head| head.details);
        let details = ConversationDetails::read(details.as_deref());
        let team = match &details.team {
            Some(name) => self.team(caller, name)?,
            None => match (self.default_team(caller), &details.forked_from) {
                (Err(error), Some((origin, _))) => {
                    let team = self.team_of_origin(caller, origin).await?;
                    self.team(caller, &team.ok_or(error)?)?
                }
                (team, _) => team?,
            },
        };
        team.with_context(&details.context)
    }

    /// The name of the team of a conversation that was copied, or of the one that this is a copy of. A copy
    /// itself has no team before its first message.
    async fn team_of_origin(
        &self,
        caller: &Caller,
        origin: &str,
    ) -> Result<Option<String>, ServiceError> {
        let mut origin = origin.to_owned();
        for _ in 0..MAX_ORIGINS {
            // Only conversations of the tenant, whatever the details say.
            let Some(id) = caller.tenant.id_of(&origin) else {
                break;
            };
            let head = self.conversation(caller, id)?.head().await;
            let head = head.map_err(|error| ServiceError::of_store(&error))?;
            let details = head.and_then(|head| head.details);
            let details = ConversationDetails::read(details.as_deref());
            match (details.team, details.forked_from) {
                (Some(team), _) => return Ok(Some(team)),
                (None, Some((next, _))) => origin = next,
                (None, None) => break,
            }
        }
        Ok(None)
    }

    /// A team with the context that was chosen for a conversation.
    pub(crate) async fn with_chosen_context(
        &self,
        team: ServedTeam,
        conversation: &Conversation,
    ) -> Result<ServedTeam, ServiceError> {
        if !team.has_context() {
            return Ok(team);
        }
        let head = conversation.head().await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        let details = head.and_then(|head| head.details);
        team.with_context(&ConversationDetails::read(details.as_deref()).context)
    }

    /// The team of a message that names none.
    pub(crate) fn default_team(&self, caller: &Caller) -> Result<ServedTeam, ServiceError> {
        let mut teams = self.teams(caller).into_iter();
        match (teams.next(), teams.next()) {
            (Some(team), None) => Ok(team),
            (None, _) => Err(ServiceError::not_found("there is no team for this key")),
            _ => Err(ServiceError::invalid("there are several teams; name one")),
        }
    }

    /// A handle to a conversation of the caller.
    pub(crate) fn conversation(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Conversation, ServiceError> {
        Ok(self.0.store.get(caller.tenant.stored_name(id)?))
    }

    /// Begins a run for a message, with the context that was chosen for its conversation.
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        message: Message,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let Message {
            team,
            agent,
            conversation,
            input,
            options,
        } = message;
        if let Some(key) = &options.idempotency_key
            && let Some(run) = self.run_with_key(caller, key)?
        {
            return Ok(run);
        }
        let (team, stored) = match &conversation {
            Some(id) => {
                let stored = self.conversation(caller, id)?;
                let team = self.with_chosen_context(team, &stored).await?;
                (team, Some(stored))
            }
            None => (team, None),
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
            recording: None,
        };
        let is_temporary = match &conversation {
            Some(id) => options.is_temporary || self.is_temporary(caller, id).await?,
            None => false,
        };
        let identity = RunIdentity {
            id: options.run_id,
            idempotency_key: options.idempotency_key,
            admission: options.admission,
            is_temporary,
            resumed_from: None,
            follower: options.follower,
        };
        self.start(caller, &team, conversation, request, identity)
    }

    /// A run of the caller.
    pub(crate) fn run(&self, caller: &Caller, id: &str) -> Result<Arc<RunRecord>, ServiceError> {
        let found = self.0.runs.get(&caller.tenant, id);
        found.ok_or_else(|| {
            ServiceError::not_found("there is no such run, or it ended some time ago")
        })
    }

    /// The run that the caller has begun with this idempotency key.
    pub(crate) fn run_with_key(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
    ) -> Result<Option<Arc<RunRecord>>, ServiceError> {
        self.0.runs.with_key(&caller.tenant, key)
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
    /// stored, and so is a run that waits for a person. Realtime sessions end after the answer that is under way, or
    /// after half of `time`. Returns when no run and no session is under way; the store is left open.
    pub async fn drain(&self, time: Duration) {
        self.0.is_draining.store(true, Ordering::Relaxed);
        let (runs, sessions) = (&self.0.runs, &self.0.sessions);
        let all_ended = || futures_util::future::join(runs.all_ended(), sessions.all_ended());
        sessions.signal_all(Signal::EndSoon);
        if tokio::time::timeout(time / 2, all_ended()).await.is_ok() {
            return;
        }
        runs.stop_all(StopHandle::stop_after_turn);
        sessions.signal_all(Signal::End(CloseReason::Draining));
        if tokio::time::timeout(time / 2, all_ended()).await.is_ok() {
            return;
        }
        runs.stop_all(StopHandle::stop);
        let time = self.0.limits.stop_time;
        if tokio::time::timeout(time, all_ended()).await.is_err() {
            let (runs, sessions) = (runs.running(), sessions.len());
            tracing::error!(runs, sessions, "runs or sessions could not be stopped");
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

/// The error for requests that would begin new work while the service shuts down.
pub(crate) fn draining() -> ServiceError {
    ServiceError::new(
        ServiceErrorKind::Unavailable,
        "the service is shutting down",
    )
    .retry_after(Duration::from_secs(5))
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
