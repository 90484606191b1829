//! What agents can do besides talking.

mod builder;
mod context;
mod output;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use builder::{ToolBuilder, tool};
pub(crate) use context::ThisCall;
pub use context::ToolContext;
pub use output::{Json, ToolOutput};

use crate::agent::Agent;
use crate::callback::{BoxError, Outcome, caught};
use crate::enabled::Enabled;
use crate::guardrail::ToolGuardrail;
use crate::model::ToolSpec;
use crate::schema::InvalidPayload;

/// What the model is told when a tool fails and says nothing else about it.
pub(crate) const DEFAULT_FAILURE: &str =
    "An error occurred while running the tool. Please try again.";

/// A function an agent's model may call.
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
    spec: ToolSpec,
    invoke: Box<Invoke<C>>,
    failure: Option<Arc<Failure<C>>>,
    guardrails: Vec<ToolGuardrail<C>>,
    timeout: Option<Duration>,
    enabled: Enabled<C>,
    agent: Option<Agent<C>>,
    problem: Option<String>,
}

impl<C> Tool<C> {
    /// The name the model calls it by.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// What it is for, as the model is told.
    pub fn description(&self) -> &str {
        &self.0.spec.description
    }

    /// The tool as a model sees it.
    pub fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    /// The agent that answers, where the tool is one; see [`Agent::as_tool`].
    pub fn agent(&self) -> Option<&Agent<C>> {
        self.0.agent.as_ref()
    }

    pub(crate) fn enabled(&self) -> &Enabled<C> {
        &self.0.enabled
    }

    /// What is wrong with how the tool was built.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.problem.as_deref()
    }

    pub(crate) fn invoke(&self, ctx: ToolContext<C>) -> Outcome<ToolOutput> {
        (self.0.invoke)(ctx)
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.0.timeout
    }

    pub(crate) fn guardrails(&self) -> &[ToolGuardrail<C>] {
        &self.0.guardrails
    }

    /// What the model is told of a failure: what the tool says about it, unless that fails too.
    pub(crate) fn failure_text(&self, ctx: &ToolContext<C>, error: &BoxError) -> String {
        if let Some(failure) = &self.0.failure {
            match caught(|| failure(ctx, error)) {
                Ok(text) => return text,
                Err(_) => tracing::warn!(
                    tool = self.name(),
                    "the text about a tool's failure could not be made; the model is told the usual"
                ),
            }
        }
        // That a tool took too long is nobody's secret, nor what is wrong with arguments, told without them.
        if error.is::<TimedOut>() || error.is::<InvalidPayload>() {
            error.to_string()
        } else {
            DEFAULT_FAILURE.to_owned()
        }
    }
}

impl<C> Clone for Tool<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Tool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.0.spec.name)
    }
}

/// A tool that took longer than it may.
#[derive(Debug)]
pub(crate) struct TimedOut {
    pub(crate) tool: Arc<str>,
    pub(crate) after: Duration,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.after.as_secs_f64();
        write!(f, "Tool '{}' timed out after {seconds} seconds.", self.tool)
    }
}

impl std::error::Error for TimedOut {}
