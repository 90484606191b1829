//! Checks on what goes into a run and what comes out of it.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::handoff::HandoffInputData;
use crate::items::Input;
use crate::output::FinalOutput;
use crate::tool::{ToolContext, ToolOutput};

/// What a guardrail found.
///
/// A plain `bool` converts into it: `true` trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailVerdict {
    /// Whether the run must stop.
    pub tripped: bool,
    /// What is to be used instead of what was checked: the user's words, or the final output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// What the guardrail wants to say about it.
    #[serde(with = "crate::json::on_its_own")]
    pub info: Value,
}

impl GuardrailVerdict {
    /// Nothing to object to.
    pub const fn allow() -> Self {
        Self {
            tripped: false,
            replacement: None,
            info: Value::Null,
        }
    }

    /// The run must stop.
    pub const fn trip() -> Self {
        Self {
            tripped: true,
            replacement: None,
            info: Value::Null,
        }
    }

    /// The run goes on with this instead: of an input guardrail, in place of what the user said
    /// last; of an output guardrail, in place of the answer, as text. The record and the session hold
    /// the replacement. The raw responses of the run still hold what the model said, and a streamed
    /// run and hooks were told of it before the guardrail was asked. Where several guardrails want
    /// something else, one of them has it.
    pub fn replace(text: impl Into<String>) -> Self {
        Self {
            replacement: Some(text.into()),
            ..Self::allow()
        }
    }

    /// The same verdict with something to say about it.
    #[must_use]
    pub fn info(mut self, info: impl Into<Value>) -> Self {
        self.info = info.into();
        self
    }
}

impl From<bool> for GuardrailVerdict {
    fn from(tripped: bool) -> Self {
        match tripped {
            true => Self::trip(),
            false => Self::allow(),
        }
    }
}

/// What a guardrail found, and which and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailResult {
    /// The guardrail's name.
    pub guardrail: Arc<str>,
    /// The agent it ran for.
    pub agent: Arc<str>,
    /// What it found.
    pub verdict: GuardrailVerdict,
}

/// When an input guardrail runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardrailTiming {
    BeforeModel,
    BesideModel,
}

type InputCheck<C> =
    dyn Fn(RunContext<C>, Agent<C>, Input) -> Outcome<GuardrailVerdict> + Send + Sync;
type OutputCheck<C> =
    dyn Fn(RunContext<C>, Agent<C>, FinalOutput) -> Outcome<GuardrailVerdict> + Send + Sync;

/// A check on what the user said, run for the first agent of a run.
///
/// It runs before the model, so that nothing is spent and no tool runs on input that must not
/// pass. [`InputGuardrail::beside_model`] runs it beside the first model call instead, which is
/// faster; the call is cancelled when it trips.
///
/// ```
/// use switchboard_core::{Agent, InputGuardrail};
///
/// let agent: Agent = Agent::new("Triage").input_guardrail(InputGuardrail::new(
///     "no_secrets",
///     |_ctx, _agent, input| input.items().iter().any(|item| item.as_json().contains("SECRET")),
/// ));
/// ```
pub struct InputGuardrail<C = ()> {
    name: Arc<str>,
    timing: GuardrailTiming,
    check: Arc<InputCheck<C>>,
}

impl<C> InputGuardrail<C> {
    /// A guardrail. `check` returns a [`GuardrailVerdict`] or a `bool` (`true` trips), a `Result`
    /// of one, or a future of either.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<GuardrailVerdict, M>,
    {
        Self {
            name: name.into(),
            timing: GuardrailTiming::BeforeModel,
            check: Arc::new(move |ctx, agent, input| check(ctx, agent, input).into_outcome()),
        }
    }

    /// Runs beside the first model call instead of before it.
    #[must_use]
    pub fn beside_model(mut self) -> Self {
        self.timing = GuardrailTiming::BesideModel;
        self
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn timing(&self) -> GuardrailTiming {
        self.timing
    }

    pub(crate) fn check(
        &self,
        ctx: RunContext<C>,
        agent: Agent<C>,
        input: Input,
    ) -> Outcome<GuardrailVerdict> {
        (self.check)(ctx, agent, input)
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }
}

impl<C> Clone for InputGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            timing: self.timing,
            check: self.check.clone(),
        }
    }
}

impl<C> fmt::Debug for InputGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputGuardrail({})", self.name)
    }
}

/// A check on the final output, run for the last agent of a run.
pub struct OutputGuardrail<C = ()> {
    name: Arc<str>,
    check: Arc<OutputCheck<C>>,
}

impl<C> OutputGuardrail<C> {
    /// A guardrail; see [`InputGuardrail::new`] for what `check` may return.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, FinalOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<GuardrailVerdict, M>,
    {
        Self {
            name: name.into(),
            check: Arc::new(move |ctx, agent, output| check(ctx, agent, output).into_outcome()),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(
        &self,
        ctx: RunContext<C>,
        agent: Agent<C>,
        output: FinalOutput,
    ) -> Outcome<GuardrailVerdict> {
        (self.check)(ctx, agent, output)
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }
}

impl<C> Clone for OutputGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            check: self.check.clone(),
        }
    }
}

impl<C> fmt::Debug for OutputGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputGuardrail({})", self.name)
    }
}

/// What a handoff guardrail found. `()` converts into it and allows the handoff.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HandoffVerdict {
    /// Nothing to object to.
    Allow,
    /// The handoff must not take place. The model is told why, and goes on as the same agent.
    Refuse(String),
    /// The run must stop.
    Trip(Value),
}

impl HandoffVerdict {
    /// The handoff must not take place; the model is told why.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(reason.into())
    }

    /// The run must stop, with something to say about it.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }
}

impl From<()> for HandoffVerdict {
    fn from((): ()) -> Self {
        Self::Allow
    }
}

/// What a handoff guardrail looks at.
#[non_exhaustive]
pub struct HandoffCheck<C = ()> {
    /// The agent that has the conversation.
    pub from: Agent<C>,
    /// The agent that would get it.
    pub to: Agent<C>,
    /// What the model sent along, where the handoff takes a payload.
    pub payload: Option<Value>,
    /// What would be carried over, after filters.
    pub data: HandoffInputData<C>,
}

impl<C> HandoffCheck<C> {
    /// The run's context.
    pub fn ctx(&self) -> &RunContext<C> {
        self.data.run_context()
    }

    /// The payload as a value of the type the handoff takes; `None` where it takes none, or one of
    /// another type.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.payload.as_ref()?).ok()
    }
}

impl<C> Clone for HandoffCheck<C> {
    fn clone(&self) -> Self {
        Self {
            from: self.from.clone(),
            to: self.to.clone(),
            payload: self.payload.clone(),
            data: self.data.clone(),
        }
    }
}

impl<C> fmt::Debug for HandoffCheck<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandoffCheck({} → {})", self.from.name(), self.to.name())
    }
}

type EdgeCheck<C> = dyn Fn(HandoffCheck<C>) -> Outcome<HandoffVerdict> + Send + Sync;

/// A check on handoffs: of one edge, or of all edges of a run. It runs before the handoff's first
/// side effect.
///
/// ```
/// use switchboard_core::{Agent, HandoffCheck, HandoffGuardrail, HandoffVerdict, handoff};
///
/// let refunds: Agent = Agent::new("Refunds");
/// let limit = HandoffGuardrail::new("limit", |check: HandoffCheck| {
///     match check.payload.as_ref().and_then(|payload| payload["amount"].as_u64()) {
///         Some(1_000..) => HandoffVerdict::refuse("Refunds of 1,000 and more need a manager."),
///         _ => HandoffVerdict::Allow,
///     }
/// });
/// let triage = Agent::new("Triage").handoff(handoff(&refunds).guardrail(limit));
/// ```
pub struct HandoffGuardrail<C = ()> {
    name: Arc<str>,
    check: Arc<EdgeCheck<C>>,
}

impl<C> HandoffGuardrail<C> {
    /// A guardrail. `check` returns a [`HandoffVerdict`] or `()` (which allows), a `Result` of one,
    /// or a future of either.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(HandoffCheck<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffVerdict, M>,
    {
        Self {
            name: name.into(),
            check: Arc::new(move |handoff| check(handoff).into_outcome()),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(&self, handoff: HandoffCheck<C>) -> Outcome<HandoffVerdict> {
        (self.check)(handoff)
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }
}

impl<C> Clone for HandoffGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            check: self.check.clone(),
        }
    }
}

impl<C> fmt::Debug for HandoffGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandoffGuardrail({})", self.name)
    }
}

/// What a tool guardrail found. `()` converts into it and allows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolVerdict {
    /// Nothing to object to.
    Allow,
    /// The model is told this instead: of a call, the tool does not run; of an output, it is not
    /// shown.
    Replace(String),
    /// The run must stop.
    Trip(Value),
}

impl ToolVerdict {
    /// The model is told this instead.
    pub fn replace(text: impl Into<String>) -> Self {
        Self::Replace(text.into())
    }

    /// The run must stop, with something to say about it.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }
}

impl From<()> for ToolVerdict {
    fn from((): ()) -> Self {
        Self::Allow
    }
}

type CallCheck<C> = dyn Fn(ToolContext<C>) -> Outcome<ToolVerdict> + Send + Sync;
type ResultCheck<C> = dyn Fn(ToolContext<C>, ToolOutput) -> Outcome<ToolVerdict> + Send + Sync;

/// A check on the calls of a tool, or on its outputs.
///
/// ```
/// use switchboard_core::{Tool, ToolGuardrail, ToolVerdict, tool};
///
/// let read: Tool = tool("read_file")
///     .guardrail(ToolGuardrail::<()>::on_call("inside", |ctx| {
///         match ctx.arguments().contains("..") {
///             true => ToolVerdict::replace("That file is outside the project."),
///             false => ToolVerdict::Allow,
///         }
///     }))
///     .run(|_ctx, (): ()| "contents");
/// ```
pub struct ToolGuardrail<C = ()> {
    name: Arc<str>,
    check: ToolCheck<C>,
}

pub(crate) enum ToolCheck<C> {
    Call(Arc<CallCheck<C>>),
    Output(Arc<ResultCheck<C>>),
}

impl<C> ToolGuardrail<C> {
    /// A check before the tool runs. `check` returns a [`ToolVerdict`] or `()` (which allows), a
    /// `Result` of one, or a future of either.
    pub fn on_call<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(ToolContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolVerdict, M>,
    {
        Self {
            name: name.into(),
            check: ToolCheck::Call(Arc::new(move |ctx| check(ctx).into_outcome())),
        }
    }

    /// A check on what the tool returned.
    pub fn on_output<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(ToolContext<C>, ToolOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolVerdict, M>,
    {
        Self {
            name: name.into(),
            check: ToolCheck::Output(Arc::new(move |ctx, output| {
                check(ctx, output).into_outcome()
            })),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn tool_check(&self) -> &ToolCheck<C> {
        &self.check
    }
}

impl<C> Clone for ToolGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            check: match &self.check {
                ToolCheck::Call(check) => ToolCheck::Call(check.clone()),
                ToolCheck::Output(check) => ToolCheck::Output(check.clone()),
            },
        }
    }
}

impl<C> fmt::Debug for ToolGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolGuardrail({})", self.name)
    }
}
