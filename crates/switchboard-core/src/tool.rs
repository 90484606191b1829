//! Tools: functions that an agent's model can call.

mod builder;
mod context;
mod output;

use std::sync::Arc;
use std::time::Duration;

pub use builder::{ToolBuilder, tool};
pub use context::ToolContext;
pub(crate) use context::{CallInfo, ProgressReporter};
pub use output::{Json, ToolOutput};

use crate::agent::Agent;
use crate::callback::{BoxError, Outcome, catch_panic_sync};
use crate::enabled::Enabled;
use crate::guardrail::ToolGuardrail;
use crate::model::ToolSpec;
use crate::schema::InvalidPayload;

/// The default failure text for the model.
pub(crate) const DEFAULT_FAILURE: &str =
    "An error occurred while running the tool. Please try again.";

/// A function that an agent's model can call. Clones share it.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use switchboard_core::{Agent, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Lookup {
///     /// The account's number.
///     account: u32,
/// }
///
/// let agent: Agent = Agent::new("Billing").tool(
///     tool("lookup")
///         .description("Looks an account up.")
///         .run(|_ctx, args: Lookup| async move { format!("account {}", args.account) }),
/// );
/// ```
pub struct Tool<C = ()>(Arc<Inner<C>>);

type Invoke<C> = dyn Fn(ToolContext<C>) -> Outcome<ToolOutput> + Send + Sync;
type Failure<C> = dyn Fn(&ToolContext<C>, &BoxError) -> String + Send + Sync;

struct Inner<C> {
    settings: Settings<C>,
    invoke: Box<Invoke<C>>,
    problem: Option<String>,
}

/// The parts of a tool that are set before its code.
struct Settings<C> {
    spec: ToolSpec,
    failure: Option<Box<Failure<C>>>,
    guardrails: Vec<ToolGuardrail<C>>,
    timeout: Option<Duration>,
    enabled: Enabled<C>,
    agent: Option<Agent<C>>,
}

impl<C> Tool<C> {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.0.settings.spec.name
    }

    /// The tool's description.
    pub fn description(&self) -> &str {
        &self.0.settings.spec.description
    }

    /// The tool as the model sees it.
    pub fn spec(&self) -> &ToolSpec {
        &self.0.settings.spec
    }

    /// The agent behind the tool, where it is one; see [`Agent::as_tool`].
    pub fn agent(&self) -> Option<&Agent<C>> {
        self.0.settings.agent.as_ref()
    }

    pub(crate) fn enabled(&self) -> &Enabled<C> {
        &self.0.settings.enabled
    }

    /// The problem with how the tool was built.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.problem.as_deref()
    }

    pub(crate) fn invoke(&self, ctx: ToolContext<C>) -> Outcome<ToolOutput> {
        (self.0.invoke)(ctx)
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.0.settings.timeout
    }

    pub(crate) fn guardrails(&self) -> &[ToolGuardrail<C>] {
        &self.0.settings.guardrails
    }

    /// The failure text for the model: the tool's own, or a default that reveals nothing.
    pub(crate) fn failure_text(&self, ctx: &ToolContext<C>, error: &BoxError) -> String {
        if let Some(failure) = &self.0.settings.failure {
            match catch_panic_sync(|| failure(ctx, error)) {
                Ok(text) => return text,
                Err(_) => tracing::warn!(
                    tool = self.name(),
                    "the failure text of a tool panicked; the model gets the default"
                ),
            }
        }
        // These two messages hold no private data.
        if error.is::<TimedOut>() || error.is::<InvalidPayload>() {
            error.to_string()
        } else {
            DEFAULT_FAILURE.to_owned()
        }
    }
}

impl_clone! { struct Tool<C> { 0 } }

impl_debug!(Tool<C>, |tool| tool.name());

/// A tool exceeded its timeout.
#[derive(Debug)]
pub(crate) struct TimedOut {
    pub(crate) tool: Arc<str>,
    pub(crate) after: Duration,
}

impl_error!(
    TimedOut,
    |error| "Tool '{}' timed out after {} seconds.",
    error.tool,
    error.after.as_secs_f64()
);
