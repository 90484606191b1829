//! Guardrails on tool calls and their outputs.

use std::sync::Arc;

use super::verdict::ToolVerdict;
use crate::callback::{IntoOutcome, Outcome};
use crate::tool::{ToolContext, ToolOutput};

type CallCheck<C> = dyn Fn(ToolContext<C>) -> Outcome<ToolVerdict> + Send + Sync;
type ResultCheck<C> = dyn Fn(ToolContext<C>, ToolOutput) -> Outcome<ToolVerdict> + Send + Sync;

/// A check on the calls of a tool, or on its outputs.
///
/// ```
/// use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
/// use switchboard_core::{Tool, tool};
///
/// let read: Tool = tool("read_file")
///     .guardrail(ToolGuardrail::<()>::on_call("inside", |ctx| {
///         if ctx.arguments().contains("..") {
///             ToolVerdict::replace("That file is outside the project.")
///         } else {
///             ToolVerdict::Allow
///         }
///     }))
///     .run(|_ctx, (): ()| "contents");
/// ```
///
/// A guardrail that uses the application's context names its type:
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_core::guardrail::ToolGuardrail;
///
/// struct App { is_read_only: bool }
///
/// let agent = Agent::new("Clerk").tool_guardrail(ToolGuardrail::<App>::on_call("writes", |ctx| {
///     (ctx.is_read_only && ctx.tool().starts_with("write")).then_some("Writing is switched off.")
/// }));
/// ```
pub struct ToolGuardrail<C = ()> {
    name: Arc<str>,
    pub(crate) check: ToolCheck<C>,
}

pub(crate) enum ToolCheck<C> {
    Call(Arc<CallCheck<C>>),
    Output(Arc<ResultCheck<C>>),
}

impl<C> ToolGuardrail<C> {
    /// Creates a check that runs before the tool. `check` returns a [`ToolVerdict`], an `Option` of
    /// the output for the model, or `()` (which allows), a `Result` of one, or a future of either.
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

    /// Creates a check on the tool's output; see [`ToolGuardrail::on_call`].
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
}

impl_clone! { enum ToolCheck<C> { Call(check), Output(check) } }

named_guardrail!(ToolGuardrail { check });
