//! Journals: the outcomes of a run's effects, from which the run can be made again after a crash.
//!
//! A run is a machine without I/O: the same start and the same outcomes of its effects (model answers,
//! results of tools, decisions of callbacks) give the same run. A [`Journal`] keeps these outcomes. A run
//! with one ([`Runner::journal`](crate::Runner::journal)) passes each effect through [`Journal::step`]: if
//! its outcome is recorded, the effect does not take place again. So a run that is begun again with
//! the start and the journal of one that was interrupted gets to the same place, and goes on from there.
//!
//! The outcome of a step is small: a response, an output, a decision; it does not grow with the history.
//! Code that is pure, as filters mostly are, runs again, and only a hash of its result is recorded:
//! a difference is a warning with its name. Conditions run again too; if one answers differently, the
//! recorded answer counts.
//!
//! `switchboard-durable` has engines with journals.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::callback::{BoxError, BoxFuture};
use crate::error::{Error, ErrorKind, StoredFailure};
use crate::lock::lock;
use crate::model::TextHash;
use crate::run::Run;

/// Records the outcomes of a run's steps.
///
/// Steps of one run may overlap: tools of one response run concurrently.
pub trait Journal: Send + Sync + 'static {
    /// Carries out a step, unless its outcome is recorded. A new outcome is recorded before this returns, or before that of the
    /// next step if the effect is [`Idempotent`](Repeat::Idempotent).
    ///
    /// An [`AtMostOnce`](Repeat::AtMostOnce) effect is marked as begun before it starts. If the mark is there
    /// and no outcome, the effect was interrupted and must not start again.
    ///
    /// # Errors
    /// An error if the journal cannot be read or written, or may not be written any more because
    /// another process has the run. The run then stops.
    fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: Effect<'_>,
    ) -> impl Future<Output = Result<Stepped, BoxError>> + Send;

    /// Returns `true` if the run is not tried again after a failure that may pass. It then stores the outcomes of the tools that
    /// have run, as a run without a journal does. By default it is tried again.
    fn is_last_attempt(&self) -> bool {
        false
    }
}

/// An effect of a run, which returns what is to be recorded of it.
pub type Effect<'a> = BoxFuture<'a, Outcome>;

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A result or a final error, as JSON. The effect does not take place again.
    Value(Arc<str>),
    /// The effect failed for a reason that may pass: the step is tried again when the run is.
    Failed,
    /// A tool waits for a person, in a run inside it. Whenever the run is made again, the effect takes place again,
    /// with the steps inside it. After the wait, the call is a step with the next number.
    Waits,
}

/// The place of a step in its run: the same whenever the run is made again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepKey {
    /// The tool calls that the step lies inside of, each with its turn and followed by a slash; empty for
    /// the steps of the run itself.
    #[serde(default = "no_path", skip_serializing_if = "str::is_empty")]
    pub path: Arc<str>,
    /// The number of turns that the run, or the run inside a tool, has taken.
    pub turn: u32,
    /// The kind of step.
    pub kind: StepKind,
    /// The name of what is called, with the identifier of the call where there is one.
    pub name: Arc<str>,
    /// The number of earlier steps with the same path, turn, kind and name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u32,
}

fn no_path() -> Arc<str> {
    "".into()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            turn,
            kind,
            name,
            number,
        } = self;
        write!(f, "{path}{turn}/{kind}/{name}")?;
        if *number > 0 {
            write!(f, "#{number}")?;
        }
        Ok(())
    }
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// A model call.
    Model,
    /// A tool.
    Tool,
    /// Hooks.
    Hook,
    /// A guardrail.
    Guardrail,
    /// The callback of a handoff, or the function that picks its agent.
    Handoff,
    /// Conditions of tools and handoffs.
    Condition,
    /// The rule by which a call needs approval.
    Approval,
    /// A filter; only a hash of its result is recorded.
    Filter,
    /// Reading or writing the stored conversation.
    Conversation,
    /// Other code of the application.
    Code,
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Guardrail => "guardrail",
            Self::Handoff => "handoff",
            Self::Condition => "condition",
            Self::Approval => "approval",
            Self::Filter => "filter",
            Self::Conversation => "conversation",
            Self::Code => "code",
        })
    }
}

/// The permission to repeat an effect that was interrupted, by the end of its process for example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Repeat {
    /// It begins again, with the same idempotency key.
    #[default]
    Allowed,
    /// It begins again and makes no difference, as reading the conversation does, or a commit with a number. Its outcome
    /// may be recorded later, together with that of another step.
    Idempotent,
    /// It does not begin again; its outcome is unknown.
    AtMostOnce,
}

/// The way in which a step got its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stepped {
    /// The effect took place, and its outcome, if it has one, is recorded.
    Ran,
    /// The effect took place before, with this outcome.
    Recorded(Arc<str>),
    /// The effect may take place once, and was interrupted.
    Unknown,
}

/// A handle to a journal. Clones share it.
#[derive(Clone)]
pub struct JournalHandle(Arc<dyn DynJournal>);

impl JournalHandle {
    /// Creates a handle.
    pub fn new(journal: impl Journal) -> Self {
        Self(Arc::new(journal))
    }
}

impl_debug!(JournalHandle);

/// [`Journal`] as a trait object.
trait DynJournal: Send + Sync {
    fn step_dyn<'a>(
        &'a self,
        key: &'a StepKey,
        repeat: Repeat,
        effect: Effect<'a>,
    ) -> BoxFuture<'a, Result<Stepped, BoxError>>;

    fn is_last_attempt_dyn(&self) -> bool;
}

impl<J: Journal> DynJournal for J {
    fn step_dyn<'a>(
        &'a self,
        key: &'a StepKey,
        repeat: Repeat,
        effect: Effect<'a>,
    ) -> BoxFuture<'a, Result<Stepped, BoxError>> {
        Box::pin(self.step(key, repeat, effect))
    }

    fn is_last_attempt_dyn(&self) -> bool {
        self.is_last_attempt()
    }
}

/// A failure that may pass: the run of a journal stops before the step that failed, and the step is tried
/// again later. Failures of other kinds are final.
///
/// ```
/// use switchboard_core::journal::Transient;
/// use switchboard_core::{Tool, tool};
///
/// let book: Tool = tool("book").fail_run().run(|_ctx, (): ()| {
///     Err::<&str, _>(Transient::new("the database restarts"))
/// });
/// ```
#[derive(Debug)]
pub struct Transient(BoxError);

impl Transient {
    /// Marks an error as one that may pass.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for Transient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Transient {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// The outcome of a tool that has not finished: it waits for a time, or for work that goes on elsewhere. The tool is called
/// again at that time, with the same idempotency key.
///
/// Until then the run of a journal pauses: it holds no memory and no connection. A run without a journal waits where it is.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use switchboard_core::callback::BoxError;
/// use switchboard_core::journal::Later;
/// use switchboard_core::{Tool, ToolContext, tool};
///
/// let remind: Tool = tool("remind_tomorrow").run(|ctx: ToolContext, (): ()| async move {
///     // Recorded, so that it is the same time whenever the tool is called again.
///     let begin = async { Ok::<_, BoxError>(SystemTime::now()) };
///     let due = ctx.run_context().step("begin", begin).await? + Duration::from_secs(24 * 3600);
///     if SystemTime::now() < due {
///         return Err(Later::at(due).into());
///     }
///     Ok::<_, BoxError>("It is time.")
/// });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later(SystemTime);

/// The longest time that a run without a journal waits before it looks at the clock again. Timers cannot hold any time.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

impl Later {
    /// Calls the tool again at a time.
    pub fn at(time: SystemTime) -> Self {
        Self(time)
    }

    /// Calls the tool again after a pause.
    pub fn after(pause: Duration) -> Self {
        Self(SystemTime::now() + pause)
    }

    /// The time at which the tool is called again.
    pub fn time(&self) -> SystemTime {
        self.0
    }

    /// The time that is left until then.
    pub(crate) fn remaining(&self) -> Duration {
        let left = self.0.duration_since(SystemTime::now());
        left.unwrap_or_default().min(LONGEST_WAIT)
    }
}

impl_error!(
    Later,
    |_error| "the tool has not finished; it is called again later"
);

/// The owner of a conversation's lease, and the name in its record, of a run with a journal. They are the same whenever the
/// run is made again, so that it keeps its conversation over the end of a process.
pub fn lease_owner(run: &Run) -> String {
    format!("{:032x}", run.id)
}

/// The cause of the error that ends a step whose tool waits for a person.
#[derive(Debug)]
pub(crate) struct ToolWaits;

impl_error!(ToolWaits, |_error| "the tool waits");

/// A journal, and the place of a run in it.
#[derive(Clone)]
pub(crate) struct JournalScope {
    shared: Arc<Shared>,
    path: Arc<str>,
}

struct Shared {
    journal: JournalHandle,
    /// The number of steps of each key, without its own number.
    numbers: Mutex<FxHashMap<String, u32>>,
}

impl JournalScope {
    pub(crate) fn new(journal: JournalHandle) -> Self {
        Self {
            shared: Arc::new(Shared {
                journal,
                numbers: Mutex::default(),
            }),
            path: "".into(),
        }
    }

    /// The place of runs and steps inside a tool call of this run.
    pub(crate) fn inside(&self, turn: u32, call_id: &str) -> Self {
        Self {
            shared: self.shared.clone(),
            path: format!("{}{turn}.{call_id}/", self.path).into(),
        }
    }

    /// Returns `true` if the run is tried again after an error.
    pub(crate) fn goes_on_after(&self, error: &Error) -> bool {
        let is_timer = error.retry_at().is_some();
        error.is_transient() && (is_timer || !self.shared.journal.0.is_last_attempt_dyn())
    }

    /// The identifier of the next run inside the call with this idempotency key.
    pub(crate) fn run_id(&self, call: &str) -> u64 {
        let key = self.key((0, StepKind::Code, "run inside"));
        let mut hash = TextHash::new();
        hash.text(call);
        hash.text(&key.to_string());
        let hash = hash.to_string();
        let digits = hash.get(..16).unwrap_or(&hash);
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }

    /// The key of the next step of this turn, kind and name.
    fn key(&self, (turn, kind, name): Place<'_>) -> StepKey {
        let mut key = StepKey {
            path: self.path.clone(),
            turn,
            kind,
            name: name.into(),
            number: 0,
        };
        let mut numbers = lock(&self.shared.numbers);
        let number = numbers.entry(key.to_string()).or_default();
        key.number = *number;
        *number += 1;
        key
    }

    /// Carries out an effect, unless its outcome is recorded.
    pub(crate) fn carry_out<'a, T, E>(
        &'a self,
        place: Place<'_>,
        effect: BoxFuture<'a, Result<T, E>>,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        E: Failure + 'a,
    {
        let step = self.step(place, Repeat::Allowed, effect);
        Box::pin(async { step.await?.into_value() })
    }

    /// Evaluates a condition, also if its answer is recorded: that one counts.
    pub(crate) fn check<'a, T, E>(
        &'a self,
        place: Place<'_>,
        mut condition: BoxFuture<'a, Result<T, E>>,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Serialize + DeserializeOwned + PartialEq + Send + 'a,
        E: Failure + 'a,
    {
        let key = self.key(place);
        Box::pin(async move {
            let made = self.step_at(&key, Repeat::Allowed, Box::pin(condition.as_mut()));
            let recorded = match made.await? {
                Carried::Recorded(recorded) => recorded,
                made => return made.into_value(),
            };
            if !matches!(condition.await, Ok(again) if again == recorded) {
                tracing::warn!(
                    step = %key,
                    "a condition answers differently than before the run was interrupted; the answer from \
                     before is used"
                );
            }
            Ok(recorded)
        })
    }

    /// Carries out an effect, unless its outcome is recorded or unknown.
    pub(crate) fn step<'a, T, E>(
        &'a self,
        place: Place<'_>,
        repeat: Repeat,
        effect: BoxFuture<'a, Result<T, E>>,
    ) -> BoxFuture<'a, Result<Carried<T>, E>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        E: Failure + 'a,
    {
        let key = self.key(place);
        Box::pin(async move { self.step_at(&key, repeat, effect).await })
    }

    async fn step_at<T, E>(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: BoxFuture<'_, Result<T, E>>,
    ) -> Result<Carried<T>, E>
    where
        T: Serialize + DeserializeOwned + Send,
        E: Failure,
    {
        let mut outcome = None;
        let record = async {
            let made = outcome.insert(effect.await);
            match made {
                Ok(value) => to_outcome(&RecordedRef::Ok(value)),
                Err(error) if error.is_wait() => Outcome::Waits,
                Err(error) => match error.stored() {
                    Some(stored) => to_outcome(&RecordedRef::<()>::Err(Box::new(stored))),
                    None => Outcome::Failed,
                },
            }
        };
        let journal = &self.shared.journal.0;
        let stepped = journal.step_dyn(key, repeat, Box::pin(record)).await;
        match stepped.map_err(E::of_journal)? {
            Stepped::Recorded(json) => match serde_json::from_str(&json) {
                Ok(Recorded::Ok(value)) => Ok(Carried::Recorded(value)),
                Ok(Recorded::Err(stored)) => Err(E::from_stored(*stored)),
                Err(error) => Err(E::of_journal(
                    format!("the recorded outcome of step \"{key}\" cannot be read: {error}")
                        .into(),
                )),
            },
            Stepped::Unknown => Ok(Carried::Unknown),
            Stepped::Ran => match outcome {
                Some(made) => made.map(Carried::Ran),
                None => Err(E::of_journal(
                    format!("the journal did not carry out step \"{key}\"").into(),
                )),
            },
        }
    }
}

/// The place of a step in its run: the turn, the kind and the name.
pub(crate) type Place<'a> = (u32, StepKind, &'a str);

/// The outcome of a step, and how it was got.
pub(crate) enum Carried<T> {
    Ran(T),
    Recorded(T),
    Unknown,
}

impl<T> Carried<T> {
    pub(crate) fn into_value<E: Failure>(self) -> Result<T, E> {
        match self {
            Self::Ran(value) | Self::Recorded(value) => Ok(value),
            Self::Unknown => Err(E::of_journal("an effect was interrupted".into())),
        }
    }
}

/// An outcome as it is recorded.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Recorded<T> {
    Ok(T),
    Err(Box<StoredFailure>),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum RecordedRef<'a, T> {
    Ok(&'a T),
    Err(Box<StoredFailure>),
}

/// The outcome as it is recorded. A value that has no JSON (a map with keys that are no strings) is not recorded, so
/// that its effect takes place again.
fn to_outcome(outcome: &impl Serialize) -> Outcome {
    match serde_json::to_string(outcome) {
        Ok(json) => Outcome::Value(json.into()),
        Err(error) => {
            tracing::warn!(%error, "the outcome of a step cannot be recorded");
            Outcome::Failed
        }
    }
}

/// An error that a journal can record.
pub(crate) trait Failure: Send + Sized {
    /// The error as it is recorded; `None` if it may pass.
    fn stored(&self) -> Option<StoredFailure>;
    fn from_stored(stored: StoredFailure) -> Self;
    /// Returns `true` if nothing has failed: a tool waits.
    fn is_wait(&self) -> bool {
        false
    }
    /// The error of a journal.
    fn of_journal(error: BoxError) -> Self;
}

impl Failure for Error {
    fn stored(&self) -> Option<StoredFailure> {
        (!self.is_transient()).then(|| self.to_stored())
    }

    fn from_stored(stored: StoredFailure) -> Self {
        Self::of_stored(stored)
    }

    fn is_wait(&self) -> bool {
        self.cause().is_some_and(|cause| cause.is::<ToolWaits>())
    }

    fn of_journal(error: BoxError) -> Self {
        let message = format!("the journal of the run cannot be used: {error}");
        Self::new(ErrorKind::Session, message)
            .caused_by(error)
            .transient()
    }
}

impl Failure for BoxError {
    fn stored(&self) -> Option<StoredFailure> {
        match self.downcast_ref::<Error>() {
            Some(error) => error.stored(),
            None if self.is::<Transient>() || self.is::<Later>() => None,
            None => Some(StoredFailure::of_text(self.to_string())),
        }
    }

    fn from_stored(stored: StoredFailure) -> Self {
        stored.message.into()
    }

    fn of_journal(error: BoxError) -> Self {
        Error::of_journal(error).into()
    }
}

impl_debug!(JournalScope);
