//! Guardrails: checks on the input and the output of a run, on tool calls and on handoffs.
//!
//! | guardrail | checks | verdict |
//! | --- | --- | --- |
//! | [`InputGuardrail`] | the user's input | [`InputVerdict`] |
//! | [`OutputGuardrail`] | the final output | [`OutputVerdict`] |
//! | [`ToolGuardrail`] | a tool's call or its output | [`ToolVerdict`] |
//! | [`HandoffGuardrail`] | a handoff | [`HandoffVerdict`] |

/// Implements the methods and traits that all guardrails share.
macro_rules! named_guardrail {
    ($guardrail:ident { $($field:ident),* }) => {
        impl<C> $guardrail<C> {
            /// The guardrail's name.
            pub fn name(&self) -> &str {
                &self.name
            }

            pub(crate) fn name_arc(&self) -> &Arc<str> {
                &self.name
            }
        }

        impl_clone! { struct $guardrail<C> { name, $($field),* } }
        impl_debug!($guardrail<C>, |guardrail| guardrail.name);
    };
}

mod handoff;
mod tool;
mod verdict;

use std::sync::Arc;

pub use handoff::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
pub(crate) use tool::ToolCheck;
pub use tool::ToolGuardrail;
pub(crate) use verdict::Decision;
pub use verdict::{
    GuardrailKind, GuardrailOutcome, GuardrailResult, InputVerdict, OutputVerdict, ToolVerdict,
    Verdict,
};

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::items::Input;
use crate::output::FinalOutput;

type InputCheck<C> = dyn Fn(RunContext<C>, Agent<C>, Input) -> Outcome<InputVerdict> + Send + Sync;
type OutputCheck<C> =
    dyn Fn(RunContext<C>, Agent<C>, FinalOutput) -> Outcome<OutputVerdict> + Send + Sync;

/// A check on the user's input, for the first agent of a run. In a stored conversation that another
/// agent has, the guardrails of the runner's agent check each message as well.
///
/// There are three modes. Guardrails that [replace](Self::replacing) run first, one after the other,
/// each with the input as the one before it left it: the agent's, then the run's. Guardrails that
/// only check run concurrently: after them and [before the model](Self::new), so that nothing is
/// spent and no tool runs on rejected input, or [beside the first model call](Self::beside_model),
/// which is faster, and which cancels the call when one trips.
///
/// Each gets the whole input, including the session's history; [`Input::last_words`] is the message
/// that has not been answered yet. A message that is refused is not stored: the conversation's record
/// gets a mark with the guardrail's name. With [`HistoryPolicy::Reference`](crate::run::HistoryPolicy)
/// the session gets the message once all guardrails that may replace it have run, even if one that only
/// checks then trips. A guardrail that has replaced the input is not asked again when the run is
/// resumed.
///
/// ```
/// use switchboard_core::filters::{Pii, Redaction};
/// use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
/// use switchboard_core::{Agent, Input};
///
/// let no_mail = Redaction::new().only([Pii::Email]);
/// let agent: Agent = Agent::new("Triage")
///     .input_guardrail(InputGuardrail::replacing("no_mail", move |_ctx, _agent, input: Input| {
///         input.last_words().map(|words| no_mail.text(&words).into_owned())
///     }))
///     .input_guardrail(InputGuardrail::new("no_secrets", |_ctx, _agent, input: Input| {
///         let has_secret = input.items().iter().any(|item| item.as_json().contains("SECRET"));
///         InputVerdict::trip_if(has_secret, "a secret")
///     }));
/// ```
///
/// A guardrail that uses the application's context names its type, which a closure cannot infer:
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
///
/// struct App { banned: Vec<String> }
///
/// let banned = InputGuardrail::<App>::new("banned", |ctx, _agent, input| {
///     let words = input.last_words().unwrap_or_default();
///     let is_banned = ctx.banned.iter().any(|banned| words.contains(banned.as_str()));
///     InputVerdict::trip_if(is_banned, "a banned word")
/// });
/// let agent = Agent::new("Triage").input_guardrail(banned);
/// ```
pub struct InputGuardrail<C = ()> {
    name: Arc<str>,
    pub(crate) mode: InputMode,
    pub(crate) check: Arc<InputCheck<C>>,
}

/// The time at which an input guardrail runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputMode {
    Replacing,
    BeforeModel,
    BesideModel,
}

impl<C> InputGuardrail<C> {
    /// Creates a check that runs before the model is asked.
    ///
    /// `check` returns an [`InputVerdict`] or `()` (which allows), a `Result` of one, or a future of
    /// either. To replace the input, use [`InputGuardrail::replacing`]: a replacement returned here
    /// is an error.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<InputVerdict, M>,
    {
        Self {
            name: name.into(),
            mode: InputMode::BeforeModel,
            check: Arc::new(move |ctx, agent, input| check(ctx, agent, input).into_outcome()),
        }
    }

    /// Creates a check that runs beside the first model call; otherwise as [`InputGuardrail::new`].
    pub fn beside_model<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<InputVerdict, M>,
    {
        Self {
            mode: InputMode::BesideModel,
            ..Self::new(name, check)
        }
    }

    /// Creates a check that may replace the user's message. `check` returns an [`InputVerdict`], an
    /// `Option` of the new text or `()` (which allows), a `Result` of one, or a future of either.
    pub fn replacing<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, Input) -> R + Send + Sync + 'static,
        R: IntoOutcome<InputVerdict, M>,
    {
        Self {
            mode: InputMode::Replacing,
            ..Self::new(name, check)
        }
    }

    /// Returns `true` if both are clones of one guardrail.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.check), Arc::as_ptr(&other.check))
    }
}

named_guardrail!(InputGuardrail { mode, check });

/// A check on the final output, for the last agent of a run.
///
/// Guardrails that [replace](Self::replacing) run first, one after the other, each with the output
/// as the one before it left it; those that only check run concurrently. A stream shows the output
/// once they have passed it, unless [`StreamedOutput::AtOnce`](crate::run::StreamedOutput::AtOnce) is
/// set; hooks get it before, and the raw responses of a run still hold what the model said.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
///
/// struct App { codename: String }
///
/// let secret = OutputGuardrail::<App>::new("secret", |ctx, _agent, output| {
///     OutputVerdict::trip_if(output.text().contains(&ctx.codename), "the codename")
/// });
/// let agent = Agent::new("Support").output_guardrail(secret);
/// ```
pub struct OutputGuardrail<C = ()> {
    name: Arc<str>,
    pub(crate) may_replace: bool,
    judges_parts: bool,
    pub(crate) check: Arc<OutputCheck<C>>,
}

impl<C> OutputGuardrail<C> {
    /// Creates a check. `check` returns an [`OutputVerdict`] or `()` (which allows), a `Result` of
    /// one, or a future of either. To replace the output, use [`OutputGuardrail::replacing`]: a
    /// replacement returned here is an error.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, FinalOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<OutputVerdict, M>,
    {
        Self {
            name: name.into(),
            may_replace: false,
            judges_parts: false,
            check: Arc::new(move |ctx, agent, output| check(ctx, agent, output).into_outcome()),
        }
    }

    /// Creates a check that may replace the output. `check` returns an [`OutputVerdict`], an
    /// `Option` of the new output or its text, or `()` (which allows), a `Result` of one, or a
    /// future of either.
    ///
    /// ```
    /// use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
    /// use switchboard_core::{Agent, FinalOutput};
    ///
    /// let masked = OutputGuardrail::replacing("masked", |_ctx, _agent, output: FinalOutput| {
    ///     if output.text().contains("password") {
    ///         OutputVerdict::replace("I cannot say that.")
    ///     } else {
    ///         OutputVerdict::Allow
    ///     }
    /// });
    /// let agent: Agent = Agent::new("Support").output_guardrail(masked);
    /// ```
    pub fn replacing<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, FinalOutput) -> R + Send + Sync + 'static,
        R: IntoOutcome<OutputVerdict, M>,
    {
        Self {
            may_replace: true,
            ..Self::new(name, check)
        }
    }

    /// Lets the check judge parts of an output, from its beginning on, so that a streamed text is shown
    /// sentence by sentence: the check gets the text so far, and later the whole output. If it trips, the
    /// model is stopped.
    ///
    /// The text waits for its end all the same if another guardrail judges whole outputs only.
    ///
    /// ```
    /// use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
    /// use switchboard_core::{Agent, FinalOutput};
    ///
    /// let polite = OutputGuardrail::new("polite", |_ctx, _agent, output: FinalOutput| {
    ///     OutputVerdict::trip_if(output.text().contains("damn"), "a curse")
    /// });
    /// let agent: Agent = Agent::new("Support").output_guardrail(polite.judging_parts());
    /// ```
    #[must_use]
    pub fn judging_parts(mut self) -> Self {
        self.judges_parts = true;
        self
    }

    pub(crate) fn can_judge_parts(&self) -> bool {
        self.judges_parts && !self.may_replace
    }
}

named_guardrail!(OutputGuardrail {
    may_replace,
    judges_parts,
    check
});
