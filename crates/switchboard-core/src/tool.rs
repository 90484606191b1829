//! What agents can do besides talking.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome, Outcome, call, caught};
use crate::context::RunContext;
use crate::guardrail::ToolGuardrail;
use crate::model::{ToolSpec, Usage};
use crate::run::RunConfig;
use crate::schema;
use crate::team::Registry;

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
        // That a tool took too long is nobody's secret.
        match error.is::<TimedOut>() {
            true => error.to_string(),
            false => DEFAULT_FAILURE.to_owned(),
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

/// Begins a tool; [`ToolBuilder::run`] completes it.
///
/// A tool that uses the application's state is begun with its type, which the compiler cannot
/// guess inside a closure: `tool::<App>("lookup")`.
pub fn tool<C>(name: impl Into<Arc<str>>) -> ToolBuilder<C> {
    ToolBuilder {
        name: name.into(),
        description: "".into(),
        enabled: Enabled::Always,
        failure: None,
        guardrails: Vec::new(),
        timeout: None,
        strict: true,
        agent: None,
    }
}

/// A tool in the making; see [`tool`].
pub struct ToolBuilder<C = ()> {
    name: Arc<str>,
    description: Arc<str>,
    enabled: Enabled<C>,
    failure: Option<Arc<Failure<C>>>,
    guardrails: Vec<ToolGuardrail<C>>,
    timeout: Option<Duration>,
    strict: bool,
    agent: Option<Agent<C>>,
}

impl<C> ToolBuilder<C> {
    /// What the tool is for; the model reads it to decide.
    #[must_use]
    pub fn description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Whether the tool is offered to the model at all.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = match enabled {
            true => Enabled::Always,
            false => Enabled::Never,
        };
        self
    }

    /// Offers the tool to the model only while `condition` holds; asked every turn.
    #[must_use]
    pub fn enabled_if<F, R, M>(mut self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.enabled = Enabled::when(condition);
        self
    }

    /// What the model is told when the tool fails. Without it, only that it failed: the error
    /// itself may hold what a model should not see.
    #[must_use]
    pub fn failure_text<F>(mut self, text: F) -> Self
    where
        F: Fn(&ToolContext<C>, &BoxError) -> String + Send + Sync + 'static,
    {
        self.failure = Some(Arc::new(text));
        self
    }

    /// How long the tool may take. One that takes longer is cancelled where it awaits, and the model
    /// is told.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A check on the tool's calls and outputs.
    #[must_use]
    pub fn guardrail(mut self, guardrail: ToolGuardrail<C>) -> Self {
        self.guardrails.push(guardrail);
        self
    }

    /// Whether the model must keep to the schema of the arguments; it must unless this says
    /// otherwise. A type with a map in it, for one, has no strict schema.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Notes the agent that answers.
    pub(crate) fn answered_by(mut self, agent: Agent<C>) -> Self {
        self.agent = Some(agent);
        self
    }

    /// The tool, with its code. The type of the arguments is the schema the model is given; a tool
    /// without arguments takes `()`.
    ///
    /// The code may return anything that converts into a [`ToolOutput`], a `Result` of it, or a
    /// future of either. An error is told to the model, which can go on with it.
    pub fn run<T, F, R, M>(self, code: F) -> Tool<C>
    where
        T: JsonSchema + DeserializeOwned,
        F: Fn(ToolContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let mut described = schema::of::<T>();
        // `()` stands for no arguments, whatever the model sends.
        let takes_none = described["type"] == "null";
        if takes_none {
            described = json!({});
        }
        let strict = self.strict;
        let (parameters, problem) = match strict {
            false => (described, None),
            true => match schema::strict(described) {
                Ok(schema) => (schema, None),
                Err(error) => {
                    let problem = format!(
                        "its arguments cannot have a strict schema ({error}); change their type, or \
                         allow it with `.strict(false)`"
                    );
                    (Value::Null, Some(problem))
                }
            },
        };
        let invoke = move |ctx: ToolContext<C>| {
            let arguments = match ctx.arguments().trim() {
                _ if takes_none => "null",
                "" => "{}",
                arguments => arguments,
            };
            match serde_json::from_str::<T>(arguments) {
                Ok(arguments) => code(ctx, arguments).into_outcome(),
                Err(error) => Outcome::Ready(Err(error.into())),
            }
        };
        self.finish(schema::raw(&parameters), strict, problem, invoke)
    }

    /// The tool with a JSON schema written by hand and code that reads the arguments itself, with
    /// [`ToolContext::arguments`]. The schema is passed on as it is.
    pub fn run_raw<F, R, M>(self, parameters: &Value, code: F) -> Tool<C>
    where
        F: Fn(ToolContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let invoke = move |ctx| code(ctx).into_outcome();
        self.finish(schema::raw(parameters), false, None, invoke)
    }

    fn finish(
        self,
        parameters: Arc<RawValue>,
        strict: bool,
        problem: Option<String>,
        invoke: impl Fn(ToolContext<C>) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C> {
        Tool(Arc::new(Inner {
            spec: ToolSpec {
                name: self.name,
                description: self.description,
                parameters,
                strict,
            },
            invoke: Box::new(invoke),
            failure: self.failure,
            guardrails: self.guardrails,
            timeout: self.timeout,
            enabled: self.enabled,
            agent: self.agent,
            problem,
        }))
    }
}

impl<C> fmt::Debug for ToolBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolBuilder({})", self.name)
    }
}

/// What a tool's code is given: the run's context, and which call this is.
///
/// It dereferences to the application's state.
pub struct ToolContext<C = ()> {
    run: RunContext<C>,
    agent: Arc<str>,
    tool: Arc<str>,
    call_id: Arc<str>,
    arguments: Arc<str>,
    /// The settings of the run the tool is part of.
    config: Arc<RunConfig<C>>,
    /// The team of the agent whose model called the tool.
    team: Option<Arc<Registry<C>>>,
}

/// One call of a tool.
pub(crate) struct ThisCall {
    pub(crate) agent: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) call_id: Arc<str>,
    pub(crate) arguments: Arc<str>,
}

impl<C> ToolContext<C> {
    pub(crate) fn new(
        run: RunContext<C>,
        call: ThisCall,
        config: Arc<RunConfig<C>>,
        team: Option<&Arc<Registry<C>>>,
    ) -> Self {
        Self {
            run,
            agent: call.agent,
            tool: call.tool,
            call_id: call.call_id,
            arguments: call.arguments,
            config,
            team: team.cloned(),
        }
    }

    pub(crate) fn config(&self) -> &Arc<RunConfig<C>> {
        &self.config
    }

    pub(crate) fn team(&self) -> Option<&Arc<Registry<C>>> {
        self.team.as_ref()
    }

    /// Counts what models have used on the tool's behalf as part of the run; see
    /// [`RunContext::add_usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.run.add_usage(usage);
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run
    }

    /// The agent whose model called the tool.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The call's identifier: stable over retries, so it can serve as an idempotency key.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The arguments as the model wrote them.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }
}

impl<C> Deref for ToolContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.run
    }
}

impl<C> Clone for ToolContext<C> {
    fn clone(&self) -> Self {
        Self {
            run: self.run.clone(),
            agent: self.agent.clone(),
            tool: self.tool.clone(),
            call_id: self.call_id.clone(),
            arguments: self.arguments.clone(),
            config: self.config.clone(),
            team: self.team.clone(),
        }
    }
}

impl<C> fmt::Debug for ToolContext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool", &self.tool)
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
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

/// What a tool returned.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutput {
    /// Text for the model.
    Text(String),
    /// A value; the model reads it as JSON.
    Json(Value),
}

impl ToolOutput {
    /// The output as the model reads it.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
        }
    }

    /// The output as JSON: text becomes a string.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Json(value) => value,
        }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A value that a tool returns to be read as JSON.
///
/// ```
/// use serde::Serialize;
/// use switchboard_core::{Json, Tool, tool};
///
/// #[derive(Serialize)]
/// struct Account { id: u32, open: bool }
///
/// let lookup: Tool = tool("lookup").run(|_ctx, (): ()| Json(Account { id: 42, open: true }));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolOutput {
    /// A value that JSON cannot hold (a map whose keys are no text) is told to be one.
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => value.into(),
            Err(error) => Self::Text(format!("the tool's value is not JSON: {error}")),
        }
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::Text(String::new())
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            value => Self::Json(value),
        }
    }
}

/// Whether a tool or a handoff is offered to the model.
pub(crate) enum Enabled<C> {
    Always,
    Never,
    When(Arc<Condition<C>>),
}

type Condition<C> = dyn Fn(RunContext<C>, Agent<C>) -> Outcome<bool> + Send + Sync;

impl<C> Enabled<C> {
    pub(crate) fn when<F, R, M>(condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        Self::When(Arc::new(move |ctx, agent| {
            condition(ctx, agent).into_outcome()
        }))
    }

    /// The answer, with `agent` the one whose model would be offered it.
    pub(crate) async fn check(
        &self,
        ctx: &RunContext<C>,
        agent: &Agent<C>,
    ) -> Result<bool, BoxError> {
        match self {
            Self::Always => Ok(true),
            Self::Never => Ok(false),
            Self::When(condition) => call(|| condition(ctx.clone(), agent.clone())).await,
        }
    }

    pub(crate) fn is_always(&self) -> bool {
        matches!(self, Self::Always)
    }
}

impl<C> Clone for Enabled<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Always => Self::Always,
            Self::Never => Self::Never,
            Self::When(condition) => Self::When(condition.clone()),
        }
    }
}
