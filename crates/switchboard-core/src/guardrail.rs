//! Checks on what goes into a run, what comes out of it, and what happens on the way.

mod handoff;
mod tool;
mod verdict;

use std::fmt;
use std::sync::Arc;

pub use handoff::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
pub(crate) use tool::ToolCheck;
pub use tool::ToolGuardrail;
pub(crate) use verdict::Said;
pub use verdict::{
    GuardrailOutcome, GuardrailResult, GuardrailVerdict, InputVerdict, OutputVerdict, ToolVerdict,
    Verdict,
};

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::items::Input;
use crate::output::FinalOutput;

type InputCheck<C, V> = Arc<dyn Fn(RunContext<C>, Agent<C>, Input) -> Outcome<V> + Send + Sync>;
type OutputCheck<C, V> =
    Arc<dyn Fn(RunContext<C>, Agent<C>, FinalOutput) -> Outcome<V> + Send + Sync>;

/// A check on what the user said, run for the first agent of a run.
///
/// There are three. One that [replaces](Self::replacing) comes first: those of the agent and then
/// those of the run, each given what the one before it made of the words. One that only checks runs
/// after them and [before the model](Self::new), so that nothing is spent and no tool runs on input
/// that must not pass; or [beside the first model call](Self::beside_model), which is faster, and the
/// call is cancelled when it trips. Those that only check run side by side.
///
/// Each is given the whole input, also what a session had already; [`Input::last_words`] are those
/// that nobody has answered yet. A session is given the words once all that may replace them have
/// let them pass, also where one that only checks then trips. One that has replaced them is not
/// asked again when the run is resumed.
///
/// ```
/// use switchboard_core::filters::Redaction;
/// use switchboard_core::{Agent, Input, InputGuardrail};
///
/// let no_mail = Redaction::new().emails();
/// let agent: Agent = Agent::new("Triage")
///     .input_guardrail(InputGuardrail::replacing("no_mail", move |_ctx, _agent, input: Input| {
///         input.last_words().map(|words| no_mail.text(&words).into_owned())
///     }))
///     .input_guardrail(InputGuardrail::new("no_secrets", |_ctx, _agent, input| {
///         input.items().iter().any(|item| item.as_json().contains("SECRET"))
///     }));
/// ```
///
/// One that uses the application's state is made with its type, which the compiler cannot guess
/// inside a closure:
///
/// ```
/// use switchboard_core::{Agent, InputGuardrail};
///
/// struct App { banned: Vec<String> }
///
/// let banned = InputGuardrail::<App>::new("banned", |ctx, _agent, input| {
///     let words = input.last_words().unwrap_or_default();
///     ctx.banned.iter().any(|banned| words.contains(banned.as_str()))
/// });
/// let agent = Agent::new("Triage").input_guardrail(banned);
/// ```
pub struct InputGuardrail<C = ()> {
    name: Arc<str>,
    kind: InputKind<C>,
}

pub(crate) enum InputKind<C> {
    Replacing(InputCheck<C, InputVerdict>),
    BeforeModel(InputCheck<C, GuardrailVerdict>),
    BesideModel(InputCheck<C, GuardrailVerdict>),
}

impl<C> InputGuardrail<C> {
    /// A check before the model is asked. `check` returns a [`GuardrailVerdict`] or a `bool` (`true`
    /// trips), a `Result` of one, or a future of either.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<GuardrailVerdict, M>,
    {
        let check = move |ctx, agent, input| check(ctx, agent, input).into_outcome();
        Self {
            name: name.into(),
            kind: InputKind::BeforeModel(Arc::new(check)),
        }
    }

    /// A check beside the first model call; otherwise as [`InputGuardrail::new`].
    pub fn beside_model<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<GuardrailVerdict, M>,
    {
        let check = move |ctx, agent, input| check(ctx, agent, input).into_outcome();
        Self {
            name: name.into(),
            kind: InputKind::BesideModel(Arc::new(check)),
        }
    }

    /// A check that may put other words in place of what the user says now. `check` returns an
    /// [`InputVerdict`], an `Option` of the words or `()` (which allows), a `Result` of one, or a
    /// future of either.
    pub fn replacing<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<InputVerdict, M>,
    {
        let check = move |ctx, agent, input| check(ctx, agent, input).into_outcome();
        Self {
            name: name.into(),
            kind: InputKind::Replacing(Arc::new(check)),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn kind(&self) -> &InputKind<C> {
        &self.kind
    }
}

impl<C> Clone for InputGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            kind: match &self.kind {
                InputKind::Replacing(check) => InputKind::Replacing(check.clone()),
                InputKind::BeforeModel(check) => InputKind::BeforeModel(check.clone()),
                InputKind::BesideModel(check) => InputKind::BesideModel(check.clone()),
            },
        }
    }
}

impl<C> fmt::Debug for InputGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputGuardrail({})", self.name)
    }
}

/// A check on the final output, run for the last agent of a run.
///
/// One that [replaces](Self::replacing) comes before those that only check, and is given what the
/// one before it made of the output; those that only check run side by side. The raw responses of a
/// run still hold what the model said, and a streamed run and hooks were told of it before any
/// guardrail was asked.
///
/// One that uses the application's state is made with its type:
///
/// ```
/// use switchboard_core::{Agent, OutputGuardrail};
///
/// struct App { codename: String }
///
/// let secret = OutputGuardrail::<App>::new("secret", |ctx, _agent, output| {
///     output.text().contains(&ctx.codename)
/// });
/// let agent = Agent::new("Support").output_guardrail(secret);
/// ```
pub struct OutputGuardrail<C = ()> {
    name: Arc<str>,
    kind: OutputKind<C>,
}

pub(crate) enum OutputKind<C> {
    Replacing(OutputCheck<C, OutputVerdict>),
    Checking(OutputCheck<C, GuardrailVerdict>),
}

impl<C> OutputGuardrail<C> {
    /// A check; see [`InputGuardrail::new`] for what `check` may return.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, FinalOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<GuardrailVerdict, M>,
    {
        let check = move |ctx, agent, output| check(ctx, agent, output).into_outcome();
        Self {
            name: name.into(),
            kind: OutputKind::Checking(Arc::new(check)),
        }
    }

    /// A check that may put another output in place of the agent's. `check` returns an
    /// [`OutputVerdict`], an `Option` of the output or of its words, or `()` (which allows), a `Result`
    /// of one, or a future of either.
    ///
    /// ```
    /// use switchboard_core::{Agent, FinalOutput, OutputGuardrail, OutputVerdict};
    ///
    /// let masked = OutputGuardrail::replacing("masked", |_ctx, _agent, output: FinalOutput| {
    ///     match output.text().contains("password") {
    ///         true => OutputVerdict::replace("I cannot say that."),
    ///         false => OutputVerdict::Allow,
    ///     }
    /// });
    /// let agent: Agent = Agent::new("Support").output_guardrail(masked);
    /// ```
    pub fn replacing<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, FinalOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<OutputVerdict, M>,
    {
        let check = move |ctx, agent, output| check(ctx, agent, output).into_outcome();
        Self {
            name: name.into(),
            kind: OutputKind::Replacing(Arc::new(check)),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn kind(&self) -> &OutputKind<C> {
        &self.kind
    }
}

impl<C> Clone for OutputGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            kind: match &self.kind {
                OutputKind::Replacing(check) => OutputKind::Replacing(check.clone()),
                OutputKind::Checking(check) => OutputKind::Checking(check.clone()),
            },
        }
    }
}

impl<C> fmt::Debug for OutputGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputGuardrail({})", self.name)
    }
}
