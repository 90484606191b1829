//! Tools: functions that an agent's model can call.

mod builder;
mod context;
mod error;
mod hosted;
mod output;
mod output_part;
mod tool_info;

use std::sync::Arc;
use std::time::Duration;

pub use builder::{ToolBuilder, tool};
pub(crate) use context::{CallInfo, ProgressReporter};
pub use context::{OuterToolCall, ToolContext};
use error::TimedOut;
pub(crate) use error::{NotApproved, OutcomeUnknown, ToolNotFound};
pub use error::{ToolError, ToolErrorKind, ToolFailure};
use futures_timer::Delay;
use futures_util::future::{Either, select};
pub use hosted::HostedTool;
pub use output::{Json, ToolOutput};
pub use output_part::{OutputFile, OutputImage, OutputPart};
pub use tool_info::{ToolInfo, ToolOrigin};

use serde_json::Value;

use crate::agent::Agent;
use crate::approval::ApprovalRule;
use crate::callback::{Outcome, call};
use crate::condition::Enabled;
use crate::guardrail::ToolGuardrail;
use crate::journal::Repeat;
use crate::model::{ToolInput, ToolSpec};
use crate::schema::{Payload, fingerprint};

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
type FailureText<C> = dyn Fn(ToolContext<C>, ToolError) -> Outcome<String> + Send + Sync;

struct Inner<C> {
    settings: Settings<C>,
    info: Arc<ToolInfo>,
    invoke: Box<Invoke<C>>,
    problem: Option<String>,
}

/// The parts of a tool that are set before its code.
struct Settings<C> {
    spec: ToolSpec,
    title: Option<Arc<str>>,
    /// The format of the input of a free-form tool.
    text_format: Option<Arc<Value>>,
    on_failure: OnFailure<C>,
    guardrails: Vec<ToolGuardrail<C>>,
    timeout: Option<Duration>,
    /// Set if a timeout ends the run.
    timeout_ends_run: bool,
    /// Set if numbers and booleans may be sent as text.
    coerces: bool,
    /// Set if the code is neither async nor run on a thread of its own.
    is_sync: bool,
    /// The arguments that the code takes, where they are validated.
    arguments: Option<Payload>,
    enabled: Enabled<C>,
    approval: ApprovalRule<ToolContext<C>>,
    agent: Option<Agent<C>>,
    /// The permission to call it again after an interruption.
    repeat: Repeat,
    /// Set if the provider runs the tool.
    hosted: Option<HostedTool>,
}

/// The consequence of a failure.
enum OnFailure<C> {
    /// The model gets the default text.
    TellDefault,
    /// The model gets the text that this function makes.
    TellText(Arc<FailureText<C>>),
    EndRun,
}

impl<C> Tool<C> {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.0.settings.spec.name
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.0.settings.spec.name
    }

    /// The tool's description.
    pub fn description(&self) -> &str {
        &self.0.settings.spec.description
    }

    /// The tool's title for user interfaces, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.0.settings.title.as_deref()
    }

    /// The tool as user interfaces show it.
    pub(crate) fn info(&self) -> &Arc<ToolInfo> {
        &self.0.info
    }

    /// The tool as the model sees it.
    pub fn spec(&self) -> &ToolSpec {
        &self.0.settings.spec
    }

    /// The agent behind the tool, where it is one; see [`Agent::as_tool`].
    pub fn agent(&self) -> Option<&Agent<C>> {
        self.0.settings.agent.as_ref()
    }

    /// The permission to call the tool again where its run was interrupted; see [`ToolBuilder::at_most_once`].
    pub fn repeat(&self) -> Repeat {
        self.0.settings.repeat
    }

    pub(crate) fn enabled(&self) -> &Enabled<C> {
        &self.0.settings.enabled
    }

    /// The fingerprint of the schema of its input.
    pub(crate) fn schema_fingerprint(&self) -> String {
        let spec = self.spec();
        match &spec.input {
            ToolInput::Text { format } => {
                let format = format.as_ref().map(ToString::to_string);
                fingerprint(&format.unwrap_or_default())
            }
            _ => fingerprint(spec.parameters.get()),
        }
    }

    /// Returns `true` if the provider runs the tools of this MCP server for it.
    pub(crate) fn is_of_server(&self, label: &str) -> bool {
        let hosted = self.0.settings.hosted.as_ref();
        hosted.is_some_and(|hosted| hosted.config()["server_label"] == *label)
    }

    pub(crate) fn approval(&self) -> &ApprovalRule<ToolContext<C>> {
        &self.0.settings.approval
    }

    /// The problem with how the tool was built.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.problem.as_deref()
    }

    /// Returns `true` if the tool has a timeout that cannot interrupt its code.
    pub(crate) fn ignores_timeout(&self) -> bool {
        self.0.settings.timeout.is_some() && self.0.settings.is_sync
    }

    /// The arguments as the tool reads them, where that is not as the model wrote them.
    pub(crate) fn coerced(&self, arguments: &str) -> Option<String> {
        self.0.settings.arguments.as_ref()?.coerced(arguments)
    }

    pub(crate) fn guardrails(&self) -> &[ToolGuardrail<C>] {
        &self.0.settings.guardrails
    }

    /// Calls the tool's code, for at most its timeout.
    pub(crate) async fn invoke(&self, ctx: ToolContext<C>) -> Result<ToolOutput, ToolError> {
        let work = call(|| (self.0.invoke)(ctx));
        let outcome = match self.0.settings.timeout {
            None => work.await,
            Some(after) => match select(Box::pin(work), Delay::new(after)).await {
                Either::Left((outcome, _)) => outcome,
                // Dropping the work cancels it.
                Either::Right(((), _)) => {
                    let tool = self.0.settings.spec.name.clone();
                    Err(TimedOut { tool, after }.into())
                }
            },
        };
        outcome.map_err(ToolError::new)
    }

    /// Returns `true` if this failure ends the run.
    pub(crate) fn ends_run(&self, error: &ToolError) -> bool {
        match error.kind() {
            ToolErrorKind::TimedOut => self.0.settings.timeout_ends_run,
            _ => matches!(self.0.settings.on_failure, OnFailure::EndRun),
        }
    }

    /// The tool's own failure text for the model, if it has one.
    pub(crate) async fn failure_text(
        &self,
        ctx: ToolContext<C>,
        error: &ToolError,
    ) -> Option<String> {
        let OnFailure::TellText(text) = &self.0.settings.on_failure else {
            return None;
        };
        match call(|| text(ctx, error.clone())).await {
            Ok(text) => Some(text),
            Err(_) => {
                tracing::warn!(
                    tool = self.name(),
                    "the function for the failure text of a tool failed; the model gets the default"
                );
                None
            }
        }
    }
}

impl<C: Send + Sync + 'static> Tool<C> {
    /// Calls the tool outside of a run, as a model would, for a unit test. Its guardrails and its
    /// conditions are not asked.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use switchboard_core::{Tool, tool};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    /// let greet: Tool = tool("greet")
    ///     .run_checked(schema, |_ctx, arguments: Value| format!("Hello {}", arguments["name"]));
    /// let output = greet.call((), json!({"name": "Ann"})).await?;
    /// assert_eq!(output.text(), "Hello \"Ann\"");
    /// # Ok::<(), switchboard_core::tool::ToolError>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub async fn call(
        &self,
        state: impl Into<Arc<C>>,
        arguments: impl Into<serde_json::Value>,
    ) -> Result<ToolOutput, ToolError> {
        let ctx = ToolContext::outside_run(state.into(), self, &arguments.into());
        self.invoke(ctx).await
    }
}

impl_clone! { struct Tool<C> { 0 } }

impl_debug!(Tool<C>, |tool| tool.name());
