//! Agents.

mod inspection;
pub(crate) mod knowledge;
mod person;
mod tool_use_behavior;

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
pub(crate) use tool_use_behavior::ToolUseBehaviorKind;
pub use tool_use_behavior::{ToolResult, ToolUseBehavior};

pub use crate::agent_tool::AgentTool;
pub use knowledge::Knowledge;

use crate::callback::{BoxError, IntoOutcome, Outcome, call};
use crate::context::RunContext;
use crate::guardrail::{InputGuardrail, OutputGuardrail, ToolGuardrail};
use crate::handle::IntoHandle;
use crate::handoff::{Handoff, IntoHandoff, transfer_message};
use crate::hooks::AgentHooksHandle;
use crate::model::{ModelHandle, ModelSettings, Prompt};
use crate::offered_tools::Offer;
use crate::output::OutputType;
use crate::run::ActiveAgent;
use crate::team::Registry;
use crate::tool::Tool;

/// A name, instructions, tools, handoffs, guardrails, hooks and a model.
///
/// Agents are built by chaining and are immutable; a clone costs a reference count. `C` is the
/// application's context, which callbacks get and models never see.
///
/// ```
/// use switchboard_core::{Agent, handoff};
///
/// let billing: Agent = Agent::new("Billing agent")
///     .instructions("You handle bills.")
///     .handoff_description("Bills, invoices and payments.");
/// let triage = Agent::new("Triage agent")
///     .instructions("Route the user.")
///     .handoff(&billing)
///     .handoff(handoff(&billing).tool_name("billing_desk"));
/// assert_eq!(triage.handoffs()[0].tool_name(), "transfer_to_billing_agent");
/// ```
#[must_use]
pub struct Agent<C = ()> {
    pub(crate) def: Arc<Definition<C>>,
    team: Option<Arc<Registry<C>>>,
}

/// The parts of an agent.
pub(crate) struct Definition<C> {
    pub(crate) name: Arc<str>,
    instructions: Option<Instructions<C>>,
    pub(crate) prompt: Option<AgentPrompt<C>>,
    pub(crate) handoff_description: Option<Arc<str>>,
    pub(crate) tools: Vec<Tool<C>>,
    pub(crate) handoffs: Vec<Handoff<C>>,
    pub(crate) input_guardrails: Vec<InputGuardrail<C>>,
    pub(crate) output_guardrails: Vec<OutputGuardrail<C>>,
    pub(crate) tool_guardrails: Vec<ToolGuardrail<C>>,
    pub(crate) knowledge: Arc<[Knowledge]>,
    pub(crate) hooks: Vec<AgentHooksHandle<C>>,
    pub(crate) output: Option<Result<OutputType, String>>,
    pub(crate) model: Option<ModelHandle>,
    pub(crate) settings: Option<Arc<ModelSettings>>,
    pub(crate) tool_use: ToolUseBehavior<C>,
    pub(crate) keeps_tool_choice: bool,
    pub(crate) explains_handoffs: bool,
    /// Set if a person answers for the agent.
    pub(crate) is_person: bool,
    /// The policy for the agent that gets the next message, where it has one of its own.
    pub(crate) active_agent: Option<ActiveAgent>,
    pub(crate) caches: Caches,
}

/// Values derived from a definition, computed on first use. A clone, which may be changed, has none.
#[derive(Default)]
pub(crate) struct Caches {
    /// The offer under each policy of tool names.
    pub(crate) offers: [OnceLock<Offer>; 2],
    /// Set to `true` if no two reachable agents share a name.
    pub(crate) names_are_unique: OnceLock<bool>,
    /// Set to `true` if code picks any of the reachable agents.
    pub(crate) picks_agents: OnceLock<bool>,
    /// Set to `true` if a reachable agent may have to find its way back.
    pub(crate) keeps_way_back: OnceLock<bool>,
    /// The output of a handoff call to this agent.
    transfer_message: OnceLock<String>,
}

impl Clone for Caches {
    fn clone(&self) -> Self {
        Self::default()
    }
}

enum Instructions<C> {
    Text(Arc<str>),
    Function(Arc<InstructionsFn<C>>),
}

pub(crate) enum AgentPrompt<C> {
    Fixed(Arc<Prompt>),
    Function(Arc<PromptFn<C>>),
}

type PromptFn<C> = dyn Fn(RunContext<C>, Agent<C>) -> Outcome<Prompt> + Send + Sync;

type InstructionsFn<C> = dyn Fn(RunContext<C>, Agent<C>) -> Outcome<String> + Send + Sync;

impl<C> Agent<C> {
    /// Creates an agent that has only a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            def: Arc::new(Definition {
                name: name.into(),
                instructions: None,
                prompt: None,
                handoff_description: None,
                tools: Vec::new(),
                handoffs: Vec::new(),
                input_guardrails: Vec::new(),
                output_guardrails: Vec::new(),
                tool_guardrails: Vec::new(),
                knowledge: Arc::default(),
                hooks: Vec::new(),
                output: None,
                model: None,
                settings: None,
                tool_use: ToolUseBehavior::run_model_again(),
                keeps_tool_choice: false,
                explains_handoffs: false,
                is_person: false,
                active_agent: None,
                caches: Caches::default(),
            }),
            team: None,
        }
    }

    /// Sets the instructions for the model.
    pub fn instructions(self, text: impl Into<Arc<str>>) -> Self {
        self.with(|def| def.instructions = Some(Instructions::Text(text.into())))
    }

    /// Sets a function that makes the instructions each turn; sync or async.
    ///
    /// ```
    /// use switchboard_core::Agent;
    ///
    /// struct App { user: String }
    ///
    /// let agent = Agent::<App>::new("Greeter")
    ///     .instructions_fn(|ctx, _agent| format!("Greet {}.", ctx.user));
    /// ```
    pub fn instructions_fn<F, R, M>(self, make: F) -> Self
    where
        F: Fn(RunContext<C>, Self) -> R + Send + Sync + 'static,
        R: IntoOutcome<String, M>,
    {
        let make = Arc::new(move |ctx, agent| make(ctx, agent).into_outcome());
        self.with(|def| def.instructions = Some(Instructions::Function(make)))
    }

    /// Sets a prompt that the provider stores, beside the instructions. Models over Responses use it;
    /// other models answer with an error.
    ///
    /// A prompt may name a model of its own. To use that, remove the model's name from the requests:
    /// set `model` to null in [`ModelSettings::extra_body`].
    ///
    /// ```
    /// use switchboard_core::Agent;
    /// use switchboard_core::model::Prompt;
    ///
    /// let agent: Agent =
    ///     Agent::new("Greeter").prompt(Prompt::new("pmpt_123").variable("tone", "friendly"));
    /// ```
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with(|def| def.prompt = Some(AgentPrompt::Fixed(Arc::new(prompt))))
    }

    /// Sets a function that makes the prompt each turn; sync or async.
    ///
    /// ```
    /// use switchboard_core::Agent;
    /// use switchboard_core::model::Prompt;
    ///
    /// struct App { user: String }
    ///
    /// let agent = Agent::<App>::new("Greeter")
    ///     .prompt_fn(|ctx, _agent| Prompt::new("pmpt_123").variable("user", ctx.user.clone()));
    /// ```
    pub fn prompt_fn<F, R, M>(self, make: F) -> Self
    where
        F: Fn(RunContext<C>, Self) -> R + Send + Sync + 'static,
        R: IntoOutcome<Prompt, M>,
    {
        let make = Arc::new(move |ctx, agent| make(ctx, agent).into_outcome());
        self.with(|def| def.prompt = Some(AgentPrompt::Function(make)))
    }

    /// Puts [`HANDOFF_PROMPT`](crate::handoff::HANDOFF_PROMPT) before the instructions, with the
    /// names of the agents that this one can currently hand off to.
    pub fn explain_handoffs(self) -> Self {
        self.with(|def| def.explains_handoffs = true)
    }

    /// Adds knowledge to answer from: remote models get it after the instructions, the offline model
    /// answers with it.
    pub fn knowledge(self, knowledge: Knowledge) -> Self {
        self.with(|def| {
            let known = def.knowledge.iter().cloned();
            def.knowledge = known.chain([knowledge]).collect();
        })
    }

    /// Sets the description by which other agents' models decide to hand off to this one.
    pub fn handoff_description(self, text: impl Into<Arc<str>>) -> Self {
        self.with(|def| def.handoff_description = Some(text.into()))
    }

    /// Adds a tool.
    pub fn tool(self, tool: impl Into<Tool<C>>) -> Self {
        self.with(|def| def.tools.push(tool.into()))
    }

    /// Adds a handoff: to an agent, to a name in a [`Team`](crate::Team), or one built with
    /// [`handoff()`](crate::handoff()).
    pub fn handoff(self, handoff: impl IntoHandoff<C>) -> Self {
        self.with(|def| def.handoffs.push(handoff.into_handoff()))
    }

    /// Adds a guardrail on the user's input, for runs that begin with this agent.
    pub fn input_guardrail(self, guardrail: InputGuardrail<C>) -> Self {
        self.with(|def| def.input_guardrails.push(guardrail))
    }

    /// Adds a guardrail on the final output, for runs that end with this agent.
    pub fn output_guardrail(self, guardrail: OutputGuardrail<C>) -> Self {
        self.with(|def| def.output_guardrails.push(guardrail))
    }

    /// Adds a guardrail on every tool of the agent, after the tool's own.
    pub fn tool_guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|def| def.tool_guardrails.push(guardrail))
    }

    /// Adds hooks of the agent, which are called after those that it has.
    pub fn hooks<M>(self, hooks: impl IntoHandle<AgentHooksHandle<C>, M>) -> Self {
        self.with(|def| def.hooks.push(hooks.into_handle()))
    }

    /// Sets the type of the final output, instead of text.
    pub fn output<T: JsonSchema + DeserializeOwned + 'static>(self) -> Self {
        let output = OutputType::of::<T>().map_err(|error| error.to_string());
        self.with(|def| def.output = Some(output))
    }

    /// Sets the type of the final output to one that is not strict, or known only at run time.
    pub fn output_as(self, output: OutputType) -> Self {
        self.with(|def| def.output = Some(Ok(output)))
    }

    /// Sets the model, unless the run sets another.
    pub fn model<M>(self, model: impl IntoHandle<ModelHandle, M>) -> Self {
        self.with(|def| def.model = Some(model.into_handle()))
    }

    /// Sets the model settings, which the run's override field by field. They replace the defaults of
    /// a model made by name ([`ModelHandle::default_settings`]), also where they set nothing.
    pub fn model_settings(self, settings: ModelSettings) -> Self {
        self.with(|def| def.settings = Some(Arc::new(settings)))
    }

    /// Sets the behaviour after the agent's tools have run.
    pub fn tool_use_behavior(self, tool_use: ToolUseBehavior<C>) -> Self {
        self.with(|def| def.tool_use = tool_use)
    }

    /// Keeps a forced tool choice after the agent has called a tool. By default it is reset, so that
    /// the agent cannot call tools forever.
    pub fn keep_tool_choice(self) -> Self {
        self.with(|def| def.keeps_tool_choice = true)
    }

    /// Sets which agent gets the next message of a conversation once this one has answered, instead of
    /// the runner's policy.
    pub fn active_agent(self, policy: ActiveAgent) -> Self {
        self.with(|def| def.active_agent = Some(policy))
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// The description for other agents' models.
    pub fn description(&self) -> Option<&str> {
        self.def.handoff_description.as_deref()
    }

    /// The agent's tools.
    pub fn tools(&self) -> &[Tool<C>] {
        &self.def.tools
    }

    /// The agent's handoffs.
    pub fn handoffs(&self) -> &[Handoff<C>] {
        &self.def.handoffs
    }

    /// The type of the final output, where it is not text.
    pub fn output_type(&self) -> Option<&OutputType> {
        self.def.output.as_ref()?.as_ref().ok()
    }

    /// The Rust type of the final output: `String` where it is text, `None` where it is known only at
    /// run time.
    pub(crate) fn output_rust_type(&self) -> Option<TypeId> {
        match self.output_type() {
            Some(output) => output.rust_type(),
            None => Some(TypeId::of::<String>()),
        }
    }

    /// Returns `true` if both are the same agent, not only of the same name.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.def, &other.def)
    }

    /// The agent with these handoffs.
    pub(crate) fn with_handoffs(&self, handoffs: Vec<Handoff<C>>) -> Self {
        self.clone().with(|def| def.handoffs = handoffs)
    }

    fn with(mut self, change: impl FnOnce(&mut Definition<C>)) -> Self {
        let mut def = Arc::unwrap_or_clone(self.def);
        change(&mut def);
        // The caches belong to the agent before the change.
        def.caches = Caches::default();
        self.def = Arc::new(def);
        self
    }
}

/// A problem with how an agent was built.
pub(crate) struct Problem {
    /// The tool or handoff with the problem: its kind and tool name.
    pub(crate) owner: Option<(&'static str, Arc<str>)>,
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((kind, name)) = &self.owner {
            write!(f, "{kind} \"{name}\": ")?;
        }
        f.write_str(&self.what)
    }
}

impl<C> Agent<C> {
    pub(crate) fn member(def: Arc<Definition<C>>, team: Arc<Registry<C>>) -> Self {
        Self {
            def,
            team: Some(team),
        }
    }

    /// The same agent in the team of `other`, where its handoffs by name are resolved.
    pub(crate) fn reached_from(&self, other: &Self) -> Self {
        self.reached_in(other.team())
    }

    /// The same agent in a team, unless it has one.
    pub(crate) fn reached_in(&self, team: Option<&Arc<Registry<C>>>) -> Self {
        Self {
            def: self.def.clone(),
            team: self.team.as_ref().or(team).cloned(),
        }
    }

    pub(crate) fn team(&self) -> Option<&Arc<Registry<C>>> {
        self.team.as_ref()
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.def.name
    }

    /// The output of a handoff call to this agent.
    pub(crate) fn transfer_message(&self) -> &str {
        let message = &self.def.caches.transfer_message;
        message.get_or_init(|| transfer_message(self.name()))
    }

    /// The problems with how the agent was built. Its handoffs have the names given.
    pub(crate) fn problems(&self, handoff_names: &[Arc<str>]) -> Vec<Problem> {
        let output = self.def.output.iter().filter_map(|output| {
            let error = output.as_ref().err()?;
            let what = format!("its output type has no strict schema: {error}");
            Some(Problem { owner: None, what })
        });
        let tools = self.def.tools.iter().filter_map(|tool| {
            let what = tool.problem()?.to_owned();
            let owner = Some(("tool", tool.spec().name.clone()));
            Some(Problem { owner, what })
        });
        let handoffs = self.def.handoffs.iter().zip(handoff_names);
        let handoffs = handoffs.filter_map(|(handoff, name)| {
            let what = handoff.problem()?;
            let owner = Some(("handoff", name.clone()));
            Some(Problem { owner, what })
        });
        output.chain(tools).chain(handoffs).collect()
    }

    /// The fixed instructions, if any; `None` if a function makes them.
    pub(crate) fn fixed_instructions(&self) -> Option<Option<&Arc<str>>> {
        match &self.def.instructions {
            None => Some(None),
            Some(Instructions::Text(text)) => Some(Some(text)),
            Some(Instructions::Function(_)) => None,
        }
    }

    /// The prompt at the provider, made by its function if it has one.
    pub(crate) async fn make_prompt(
        &self,
        ctx: RunContext<C>,
    ) -> Result<Option<Arc<Prompt>>, BoxError> {
        match &self.def.prompt {
            None => Ok(None),
            Some(AgentPrompt::Fixed(prompt)) => Ok(Some(prompt.clone())),
            Some(AgentPrompt::Function(make)) => {
                let prompt = call(|| make(ctx, self.clone())).await?;
                Ok(Some(Arc::new(prompt)))
            }
        }
    }

    /// Calls the function that makes the instructions.
    pub(crate) async fn make_instructions(
        &self,
        ctx: RunContext<C>,
    ) -> Result<Option<Arc<str>>, BoxError> {
        let Some(Instructions::Function(make)) = &self.def.instructions else {
            return Ok(self.fixed_instructions().flatten().cloned());
        };
        let text = call(|| make(ctx, self.clone())).await?;
        Ok(Some(text.into()))
    }
}

impl_clone! { struct Agent<C> { def, team } }

impl_clone! {
    struct Definition<C> {
        name, instructions, prompt, handoff_description, tools, handoffs, input_guardrails,
        output_guardrails, tool_guardrails, knowledge, hooks, output, model, settings, tool_use,
        keeps_tool_choice, explains_handoffs, is_person, active_agent, caches
    }
}

impl_clone! { enum AgentPrompt<C> { Fixed(prompt), Function(make) } }

impl_clone! { enum Instructions<C> { Text(text), Function(make) } }

impl_debug! { Agent<C> { name: def.name, tools: def.tools, handoffs: def.handoffs } }
