//! Agents as tools of other agents.

mod structured_input;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome, Outcome, call};
use crate::context::RunContext;
use crate::environment::environment;
use crate::error::Error;
use crate::guardrail::{GuardrailKind, ToolGuardrail};
use crate::handle::IntoHandle;
use crate::handoff::function_name;
use crate::hooks::HooksHandle;
use crate::items::{Input, RunItem, RunItemKind};
use crate::output::FinalOutput;
use crate::run::{Exclusive, Run, RunConfig, RunResult, RunStatus, Runner, ServerHistory};
use crate::schema;
use crate::session::SessionHandle;
use crate::stream::StreamEvent;
use crate::tool::{Tool, ToolBuilder, ToolContext, ToolError, ToolOutput, tool};

/// The longest wait of a call for another one with the same session.
const SESSION_WAIT: Duration = Duration::from_secs(10 * 60);

/// The arguments of an agent used as a tool, unless it has others.
#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What the agent is to do, with everything it needs to know.
    input: String,
}

type MakeInput<C> = dyn Fn(ToolContext<C>, Value) -> Outcome<Input> + Send + Sync;
type Extract<C> = dyn Fn(ToolContext<C>, RunResult<C>) -> Outcome<ToolOutput> + Send + Sync;
type Listen<C> = dyn Fn(ToolContext<C>, StreamEvent) -> Outcome<()> + Send + Sync;

/// Builds a tool from an agent; see [`Agent::as_tool`].
#[must_use]
pub struct AgentTool<C = ()> {
    builder: ToolBuilder<C>,
    /// The schema of the arguments.
    parameters: Value,
    /// Makes the agent's input of the arguments.
    input: Arc<MakeInput<C>>,
    inner: InnerRun<C>,
}

/// The beginning of a run inside a tool.
enum Begin {
    Input(Input),
    /// A run that waited for decisions.
    Resume(Box<Run>),
}

/// The run of an agent inside a tool.
struct InnerRun<C> {
    agent: Agent<C>,
    config: Option<RunConfig<C>>,
    max_turns: Option<u32>,
    session: Option<SessionHandle>,
    server_history: Option<ServerHistory>,
    hooks: Vec<HooksHandle<C>>,
    extract: Option<Arc<Extract<C>>>,
    listen: Option<Arc<Listen<C>>>,
}

impl<C: Send + Sync + 'static> Agent<C> {
    /// Makes a tool of this agent. Unlike with a handoff, the calling agent gets the answer and keeps
    /// the conversation; this agent sees only the question.
    ///
    /// It runs with the settings of the calling run and within its budgets, without its session, hooks and
    /// recovery. Agents
    /// that use each other as tools in a cycle fail at [`RunConfig::max_agent_depth`], and the model
    /// is told. If the final output is empty and no output guardrail has seen it, the answer is the
    /// last message or tool output that is not.
    ///
    /// ```
    /// use switchboard_core::Agent;
    ///
    /// let translator: Agent = Agent::new("Translator").instructions("Translate to French.");
    /// let writer = Agent::new("Writer")
    ///     .tool(translator.as_tool("translate").description("Translates a text to French."));
    /// ```
    pub fn as_tool(&self, name: impl Into<Arc<str>>) -> AgentTool<C> {
        AgentTool {
            builder: tool(name),
            parameters: schema::of::<Question>(),
            input: typed_input(|_ctx, question: Question| question.input),
            inner: InnerRun {
                agent: self.clone(),
                config: None,
                max_turns: RunConfig::<C>::default().max_turns,
                session: None,
                server_history: None,
                hooks: Vec::new(),
                extract: None,
                listen: None,
            },
        }
    }
}

impl<C> Agent<C> {
    /// The agent's name in the form of a tool's name, for [`Agent::as_tool`].
    ///
    /// ```
    /// use switchboard_core::Agent;
    ///
    /// let agent: Agent = Agent::new("Tier-2 Support");
    /// assert_eq!(agent.tool_name(), "tier_2_support");
    /// ```
    pub fn tool_name(&self) -> String {
        function_name(self.name())
    }
}

/// The tool.
impl<C> AgentTool<C> {
    /// Sets the tool's description.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        self.with(|builder| builder.description(description))
    }

    /// Sets a title for user interfaces, which no model gets.
    pub fn title(self, title: impl Into<Arc<str>>) -> Self {
        self.with(|builder| builder.title(title))
    }

    /// Enables or disables the tool.
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|builder| builder.enabled(enabled))
    }

    /// Enables the tool while `condition` holds; it is evaluated every turn.
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|builder| builder.enabled_if(condition))
    }

    /// Makes each call wait for a person's decision; see [`approval`](crate::approval).
    pub fn needs_approval(self) -> Self {
        self.with(ToolBuilder::needs_approval)
    }

    /// Makes a call wait for a person's decision if `condition` holds for its arguments; see
    /// [`ToolBuilder::needs_approval_if`].
    pub fn needs_approval_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(ToolContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|builder| builder.needs_approval_if(condition))
    }

    /// Sets the text that the calling agent gets when this one fails. The cause of the
    /// [`ToolError`] is the [`Error`](crate::Error) of the inner run.
    pub fn failure_text<F, R, M>(self, text: F) -> Self
    where
        F: Fn(ToolContext<C>, ToolError) -> R + Send + Sync + 'static,
        R: IntoOutcome<String, M>,
    {
        self.with(|builder| builder.failure_text(text))
    }

    /// Ends the calling run when this agent fails, with the kind of the inner run's error. When the calling
    /// run is resumed, this agent goes on where it failed.
    pub fn fail_run(self) -> Self {
        self.with(ToolBuilder::fail_run)
    }

    /// Limits the time of each call.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|builder| builder.timeout(timeout))
    }

    /// Adds a guardrail on the question or on the answer.
    pub fn guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|builder| builder.guardrail(guardrail))
    }
}

/// The agent's input.
impl<C> AgentTool<C> {
    /// Sets the type of the tool's arguments. The agent gets the fields that the type has as JSON; with
    /// a summary of them if the type or a field has a description, and no field is a list, an object or
    /// optional.
    pub fn parameters<P: JsonSchema>(self) -> Self {
        let schema = schema::of::<P>();
        self.structured_input(schema.clone(), schema, false)
    }

    /// Like [`parameters`](Self::parameters), and the agent gets the JSON schema of the arguments.
    pub fn parameters_with_schema<P: JsonSchema>(self) -> Self {
        let schema = schema::of::<P>();
        let shown = schema::strict(schema.clone()).unwrap_or_else(|_| schema.clone());
        self.structured_input(schema, shown, true)
    }

    /// Sets the schema of the arguments, and the one by which the agent is shown them.
    fn structured_input(mut self, schema: Value, shown: Value, includes_schema: bool) -> Self {
        self.parameters = schema;
        self.input = Arc::new(move |_ctx, arguments| {
            let text = structured_input::input_text(&arguments, &shown, includes_schema);
            Outcome::Ready(Ok(text.into()))
        });
        self
    }

    /// Sets the type of the tool's arguments and the function that makes the agent's input of them.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use switchboard_core::Agent;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Translation { text: String, language: String }
    ///
    /// let translator: Agent = Agent::new("Translator");
    /// let tool = translator.as_tool("translate").input(|_ctx, wanted: Translation| {
    ///     format!("Translate to {}: {}", wanted.language, wanted.text)
    /// });
    /// ```
    pub fn input<P, F, R, M>(mut self, make: F) -> Self
    where
        P: JsonSchema + DeserializeOwned,
        F: Fn(ToolContext<C>, P) -> R + Send + Sync + 'static,
        R: IntoOutcome<Input, M>,
    {
        self.parameters = schema::of::<P>();
        self.input = typed_input(make);
        self
    }
}

/// The agent's run.
impl<C> AgentTool<C> {
    /// Limits the turns of each call; `None` is no limit.
    pub fn max_turns(mut self, turns: impl Into<Option<u32>>) -> Self {
        self.inner.max_turns = turns.into();
        self
    }

    /// Sets the settings of the agent's runs, instead of those of the calling run, whose budgets hold besides.
    /// The limit of turns, the session and the hooks are set with the methods of their names.
    pub fn config(mut self, config: RunConfig<C>) -> Self {
        self.inner.config = Some(config);
        self
    }

    /// Sets a session of the agent's runs: it remembers its earlier calls.
    pub fn session<M>(mut self, session: impl IntoHandle<SessionHandle, M>) -> Self {
        self.inner.session = Some(session.into_handle());
        self
    }

    /// Sets a conversation of the agent's runs that the provider keeps.
    pub fn server_history(mut self, history: ServerHistory) -> Self {
        self.inner.server_history = Some(history);
        self
    }

    /// Adds hooks of the agent's runs.
    pub fn hooks<M>(mut self, hooks: impl IntoHandle<HooksHandle<C>, M>) -> Self {
        self.inner.hooks.push(hooks.into_handle());
        self
    }

    /// Sets the function that makes the answer from the result, instead of the final output.
    pub fn answer_with<F, R, M>(mut self, extract: F) -> Self
    where
        F: Fn(ToolContext<C>, RunResult<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        self.inner.extract = Some(Arc::new(move |ctx, result| {
            extract(ctx, result).into_outcome()
        }));
        self
    }

    /// Calls `listen` with every event of the agent's run, which waits for it. The context tells
    /// concurrent calls apart ([`ToolContext::call_id`]). An error of `listen` is logged and ignored.
    ///
    /// It is called whether or not the calling run is streamed. If it is, its stream has the same events, as
    /// [`EventKind::Inner`](crate::EventKind::Inner).
    pub fn on_event<F, R, M>(mut self, listen: F) -> Self
    where
        F: Fn(ToolContext<C>, StreamEvent) -> R + Send + Sync + 'static,
        R: IntoOutcome<(), M>,
    {
        self.inner.listen = Some(Arc::new(move |ctx, event| {
            listen(ctx, event).into_outcome()
        }));
        self
    }

    fn with(mut self, change: impl FnOnce(ToolBuilder<C>) -> ToolBuilder<C>) -> Self {
        self.builder = change(self.builder);
        self
    }
}

/// An input that is made of typed arguments.
fn typed_input<C, P, F, R, M>(make: F) -> Arc<MakeInput<C>>
where
    P: DeserializeOwned,
    F: Fn(ToolContext<C>, P) -> R + Send + Sync + 'static,
    R: IntoOutcome<Input, M>,
{
    Arc::new(move |ctx, arguments| match P::deserialize(arguments) {
        Ok(arguments) => make(ctx, arguments).into_outcome(),
        Err(_) => Outcome::Ready(Err(schema::InvalidPayload::of_type().into())),
    })
}

impl<C: Send + Sync + 'static> From<AgentTool<C>> for Tool<C> {
    fn from(made: AgentTool<C>) -> Self {
        let AgentTool {
            builder,
            parameters,
            input,
            inner,
        } = made;
        let builder = builder.answered_by(inner.agent.clone());
        let inner = Arc::new(inner);
        builder.run_described(parameters, move |ctx, arguments| {
            let (input, inner) = (input.clone(), inner.clone());
            Outcome::Pending(Box::pin(async move {
                let begin = match ctx.take_inner_run() {
                    Some(waited) => Begin::Resume(waited),
                    None => Begin::Input(call(|| input(ctx.clone(), arguments)).await?),
                };
                inner.answer(ctx, begin).await
            }))
        })
    }
}

impl<C: Send + Sync + 'static> InnerRun<C> {
    /// Runs the agent and returns its answer. Where there is none, the context has the run as far as it went.
    async fn answer(&self, ctx: ToolContext<C>, begin: Begin) -> Result<ToolOutput, BoxError> {
        let runner = Runner::new(&self.agent.reached_in(ctx.agent().team()))
            .replace_config(self.run_config(ctx.config())?)
            .context(ctx.run_context().state().clone())
            .within(&ctx);
        let outcome = self.run(&runner, &ctx, begin).await;
        let result = outcome.inspect_err(|error| {
            if let Some(run) = error.run() {
                ctx.set_failed_run(run.clone());
            }
        })?;
        if result.status() == RunStatus::Interrupted {
            ctx.set_inner_run(result.into_run());
            return Err("calls inside the agent wait for a decision".into());
        }
        let Some(extract) = &self.extract else {
            return Ok(answer_of(&result));
        };
        let run = result.run().clone();
        let answer = call(|| extract(ctx.clone(), result)).await;
        answer.inspect_err(|_| ctx.set_failed_run(run))
    }

    /// Runs the agent, with the listener where there is one.
    async fn run(
        &self,
        runner: &Runner<C, Arc<C>>,
        ctx: &ToolContext<C>,
        begin: Begin,
    ) -> Result<RunResult<C>, Error> {
        match &self.listen {
            None => match begin {
                Begin::Input(input) => runner.run(input).await,
                Begin::Resume(run) => runner.resume(*run).await,
            },
            Some(listen) => {
                let mut stream = match begin {
                    Begin::Input(input) => runner.stream(input),
                    Begin::Resume(run) => runner.resume_stream(*run)?,
                };
                let outer = ctx.events_inside();
                while let Some(event) = stream.next().await {
                    if let Some(outer) = &outer {
                        outer.forward(event.clone()).await;
                    }
                    if let Err(error) = call(|| listen(ctx.clone(), event)).await {
                        let error = environment().logs_tool_data.then(|| error.to_string());
                        let tool = ctx.tool();
                        tracing::warn!(
                            tool,
                            error,
                            "a listener of an agent tool failed; the run continues"
                        );
                    }
                }
                stream.finish().await
            }
        }
    }

    /// The settings of the run: its own, or those of the calling run.
    fn run_config(&self, outer: &RunConfig<C>) -> Result<RunConfig<C>, BoxError> {
        let Some(depth) = outer.max_agent_depth.checked_sub(1) else {
            return Err(
                "too many agents use each other as tools, one inside the other; if they do not \
                 call each other in a circle, raise the limit with max_agent_depth"
                    .into(),
            );
        };
        let config = self.config.as_ref();
        let inherited = || RunConfig {
            recovery: None,
            // Those of the calling run hold.
            budgets: None,
            team_name: None,
            team_source: None,
            ..outer.clone()
        };
        Ok(RunConfig {
            max_agent_depth: depth,
            max_turns: self.max_turns,
            session: self.session.clone(),
            // Calls of one response share the session.
            exclusive: self.session.as_ref().map(|_| Exclusive::new(SESSION_WAIT)),
            server_history: self.server_history.clone(),
            hooks: self.hooks.clone(),
            trace_sensitive_data: outer.trace_sensitive_data
                && config.is_none_or(|config| config.trace_sensitive_data),
            trace_tasks_and_turns: outer.trace_tasks_and_turns
                && config.is_none_or(|config| config.trace_tasks_and_turns),
            ..config.cloned().unwrap_or_else(inherited)
        })
    }
}

/// The final output of a run. If it is empty and no guardrail has seen it, the last text or tool
/// output that is not.
pub(crate) fn answer_of<C>(result: &RunResult<C>) -> ToolOutput {
    let has_text = !result.final_text().is_empty();
    if has_text || !result.guardrail_results(GuardrailKind::Output).is_empty() {
        let output = result.final_output().map(FinalOutput::to_value);
        return output.unwrap_or_else(|| "".into()).into();
    }
    let items: Vec<&RunItem> = result.new_items().iter().collect();
    let texts = items.iter().rev().filter_map(|made| match made.kind() {
        RunItemKind::MessageOutput => made.item().text().map(|text| text.into_owned()),
        RunItemKind::ToolCallOutput { output } => output.as_str().map(ToOwned::to_owned),
        _ => None,
    });
    let mut texts = texts.filter(|text| !text.is_empty());
    texts.next().unwrap_or_default().into()
}

impl_debug!(AgentTool<C>, |tool| tool.inner.agent.name());
