//! Checks on the calls of tools and on what they return.

use std::fmt;
use std::sync::Arc;

use super::verdict::ToolVerdict;
use crate::callback::{IntoOutcome, Outcome};
use crate::tool::{ToolContext, ToolOutput};

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
///
/// One that uses the application's state is made with its type:
///
/// ```
/// use switchboard_core::{Agent, ToolGuardrail};
///
/// struct App { is_read_only: bool }
///
/// let agent = Agent::new("Clerk").tool_guardrail(ToolGuardrail::<App>::on_call("writes", |ctx| {
///     (ctx.is_read_only && ctx.tool().starts_with("write")).then_some("Writing is switched off.")
/// }));
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
    /// A check before the tool runs. `check` returns a [`ToolVerdict`], an `Option` of what the model
    /// is told instead, or `()` (which allows), a `Result` of one, or a future of either.
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
