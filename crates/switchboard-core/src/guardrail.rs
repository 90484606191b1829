//! Checks on what goes into a run and what comes out of it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::items::Input;
use crate::output::FinalOutput;

/// What a guardrail found.
///
/// A plain `bool` converts into it: `true` trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardrailVerdict {
    /// Whether the run must stop.
    pub tripped: bool,
    /// What the guardrail wants to say about it.
    #[serde(with = "crate::json::on_its_own")]
    pub info: Value,
}

impl GuardrailVerdict {
    /// Nothing to object to.
    pub const fn allow() -> Self {
        Self {
            tripped: false,
            info: Value::Null,
        }
    }

    /// The run must stop.
    pub const fn trip() -> Self {
        Self {
            tripped: true,
            info: Value::Null,
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
        Self {
            tripped,
            info: Value::Null,
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
