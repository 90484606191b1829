//! From a file to a team that can talk.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use switchboard_core::{
    Agent, Handoff, ModelHandle, ModelSettings, Reasoning, RunConfig, Runner, Team, Tool,
    ToolChoice, ToolUse, WithContext, handoff,
};
use switchboard_models::OfflineModel;

use crate::context::Context;
use crate::document::way;
use crate::file::TeamFile;
use crate::filters;
use crate::models::{Models, Unusable};
use crate::plan::{AgentPlan, EdgePlan, Plan};
use crate::problem::{Problem, Problems};
use crate::shape::{AfterToolsShape, SettingsShape};
use crate::tools::{SharedClient, UnusableTool};

/// How a team is opened; see [`TeamFile::opening`].
pub struct Opening<'a> {
    file: &'a TeamFile,
    vars: Box<dyn Fn(&str) -> Option<String> + 'a>,
    model: Chosen,
    base_url: Option<String>,
    context: Context,
}

/// The model of all agents, if one was chosen.
enum Chosen {
    EachItsOwn,
    Named(String),
    Ready(ModelHandle),
}

impl<'a> Opening<'a> {
    pub(crate) fn new(file: &'a TeamFile) -> Self {
        Self {
            file,
            vars: Box::new(|name| std::env::var(name).ok()),
            model: Chosen::EachItsOwn,
            base_url: None,
            context: file.plan.context.clone(),
        }
    }

    /// The model of this name answers for all agents: `offline`, one that the file describes,
    /// `openai/NAME` or `NAME` (Responses), `chat/NAME` (Chat Completions).
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Chosen::Named(name.into());
        self
    }

    /// This model answers for all agents.
    #[must_use]
    pub fn model_handle(mut self, model: impl Into<ModelHandle>) -> Self {
        self.model = Chosen::Ready(model.into());
        self
    }

    /// The server of models that the file does not describe, instead of `OPENAI_BASE_URL`.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets a value of the context over the file's. The text is read by the type of what the file has;
    /// `customer.tier` reaches into a table.
    ///
    /// # Errors
    /// Where the file has no such value, or the text is not of its type.
    pub fn context(mut self, key: &str, text: &str) -> Result<Self, String> {
        self.context.set(key, text)?;
        Ok(self)
    }

    /// Looks up variables here instead of in the environment: for tests, or where keys come from a
    /// vault.
    #[must_use]
    pub fn vars(mut self, var: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.vars = Box::new(var);
        self
    }

    /// The team.
    ///
    /// # Errors
    /// Variables of the environment that the file names and nobody has set, and models that cannot be
    /// used as they are set up.
    pub fn open(self) -> Result<OpenTeam, Problems> {
        let plan = &self.file.plan;
        let mut problems = Problems::new(self.file.source().clone());
        let mut models = Models::new(&plan.models, &*self.vars, self.base_url.as_deref());
        let chosen = match &self.model {
            Chosen::EachItsOwn => None,
            Chosen::Ready(model) => Some((model.clone(), model.name().to_owned())),
            Chosen::Named(name) => match models.model(name) {
                Ok(model) => Some((model, name.clone())),
                Err(Unusable { message, help }) => {
                    return Err(Problems::one(
                        Problem::elsewhere("model", message).help(help),
                    ));
                }
            },
        };
        let source = self.file.source().clone();
        let root = self.file.root();
        let mut builder = Builder {
            plan,
            folder: self.file.folder(),
            vars: &*self.vars,
            model: &mut |way_to_model, name| match &chosen {
                Some((model, _)) => Ok(model.clone()),
                None => models.model(name).map_err(|Unusable { message, help }| {
                    let span = root.span_of(way_to_model);
                    source.problem("model", span, message).help(help)
                }),
            },
            problem_of_tool: &|tool: &str, unusable| {
                let span = root.name_span_of(way!["tools", tool]);
                let (code, message, help) = unusable.told();
                source.problem(code, span, message).help(help)
            },
            problems: &mut problems,
        };
        let (team, config) = builder.build();
        let _ = builder;
        problems.ok_unless_errors()?;
        let team = team.map_err(Problems::one)?;
        let start = team.get(&plan.start).cloned();
        let start = start.ok_or_else(|| Problems::one(no_start(&plan.start)))?;
        let shown = |agent: &AgentPlan| match &chosen {
            Some((_, name)) => name.clone(),
            None => agent.model(plan).to_owned(),
        };
        let models = plan.agents.iter();
        Ok(OpenTeam {
            team,
            start,
            config: Arc::new(config),
            context: Arc::new(self.context),
            models: models
                .map(|agent| (agent.name.clone(), shown(agent)))
                .collect(),
        })
    }
}

fn no_start(name: &str) -> Problem {
    Problem::elsewhere(
        "unknown-agent",
        format!("there is no agent {name:?} to start with"),
    )
}

impl fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opening({})", self.file.path().display())
    }
}

/// A team of a file that can talk.
pub struct OpenTeam {
    team: Team<Context>,
    start: Agent<Context>,
    config: Arc<RunConfig<Context>>,
    context: Arc<Context>,
    models: BTreeMap<String, String>,
}

impl OpenTeam {
    /// The team without anything of the environment: offline models, no secrets.
    pub(crate) fn in_sight(plan: &Plan, folder: &Path) -> Result<Self, Problem> {
        let mut problems = Problems::new(crate::problem::Source::new(Path::new(""), ""));
        let mut builder = Builder {
            plan,
            folder,
            vars: &|_| Some(String::new()),
            model: &mut |_, _| Ok(OfflineModel::new().into()),
            problem_of_tool: &|_, unusable| {
                let (code, message, help) = unusable.told();
                Problem::elsewhere(code, message).help(help)
            },
            problems: &mut problems,
        };
        let (team, config) = builder.build();
        let team = team?;
        let start = team.get(&plan.start).cloned();
        Ok(Self {
            start: start.ok_or_else(|| no_start(&plan.start))?,
            team,
            config: Arc::new(config),
            context: Arc::new(plan.context.clone()),
            models: BTreeMap::new(),
        })
    }

    /// Its agents, the first one first.
    pub fn team(&self) -> &Team<Context> {
        &self.team
    }

    /// The agent that gets the conversation first.
    pub fn start(&self) -> &Agent<Context> {
        &self.start
    }

    /// The settings of its runs.
    pub fn config(&self) -> &RunConfig<Context> {
        &self.config
    }

    /// The context of its runs.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The name of an agent's model, to be shown.
    pub fn model_name(&self, agent: &str) -> Option<&str> {
        self.models.get(agent).map(String::as_str)
    }

    /// Runs conversations from the first agent, with the file's settings and context.
    pub fn runner(&self) -> Runner<Context, WithContext<Context>> {
        self.runner_from(&self.start)
    }

    /// The same from this agent: the one that had the conversation when it was left.
    pub fn runner_from(&self, agent: &Agent<Context>) -> Runner<Context, WithContext<Context>> {
        Runner::new(agent)
            .context(self.context.clone())
            .config(self.config.clone())
    }
}

impl fmt::Debug for OpenTeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTeam")
            .field("team", &self.team)
            .field("start", &self.start.name())
            .finish_non_exhaustive()
    }
}

/// Gives the model of a name, for the place in the file that names it.
type GiveModel<'a> =
    dyn FnMut(&[crate::document::Step<'_>], &str) -> Result<ModelHandle, Problem> + 'a;

/// Makes agents out of a plan.
struct Builder<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    vars: &'a dyn Fn(&str) -> Option<String>,
    model: &'a mut GiveModel<'a>,
    problem_of_tool: &'a dyn Fn(&str, UnusableTool) -> Problem,
    problems: &'a mut Problems,
}

impl Builder<'_> {
    fn build(&mut self) -> (Result<Team<Context>, Problem>, RunConfig<Context>) {
        let plan = self.plan;
        let tools = self.tools();
        let mut team = Team::new();
        // The first of a team is where its checks take the conversation to begin.
        let (first, others): (Vec<&AgentPlan>, Vec<&AgentPlan>) = plan
            .agents
            .iter()
            .partition(|agent| agent.name == plan.start);
        for agent in first.into_iter().chain(others) {
            team = team.agent(self.agent(agent, &tools));
        }
        let team = team
            .build()
            .map_err(|error| Problem::elsewhere("team", error.to_string()));
        (team, self.config())
    }

    fn tools(&mut self) -> BTreeMap<String, Tool<Context>> {
        let plan = self.plan;
        let mut tools = BTreeMap::new();
        let mut client = SharedClient::default();
        for (name, tool) in &plan.tools {
            match tool.open(self.folder, &mut client, self.vars) {
                Ok(tool) => {
                    tools.insert(name.clone(), tool);
                }
                Err(unusable) => {
                    let problem = (self.problem_of_tool)(name, unusable);
                    self.problems.add(problem);
                }
            }
        }
        tools
    }

    fn agent(
        &mut self,
        plan: &AgentPlan,
        tools: &BTreeMap<String, Tool<Context>>,
    ) -> Agent<Context> {
        let shape = &plan.shape;
        let mut agent = Agent::new(plan.name.as_str())
            .model_settings(settings(&self.plan.settings).overridden_by(&settings(&shape.settings)))
            .tool_use(match &shape.after_tools {
                AfterToolsShape::RunModelAgain => ToolUse::run_model_again(),
                AfterToolsShape::StopOnFirstTool => ToolUse::stop_on_first_tool(),
                AfterToolsShape::StopAt(names) => ToolUse::stop_at(names.clone()),
            });
        let way_to_model = match shape.model {
            Some(_) => way!["agents", &plan.name, "model"],
            None => way!["model"],
        };
        match (self.model)(way_to_model, plan.model(self.plan)) {
            Ok(model) => agent = agent.model(model),
            Err(problem) => self.problems.add(problem),
        }
        if let Some(instructions) = &plan.instructions {
            agent = agent.instructions(instructions.as_str());
        }
        if let Some(description) = &shape.description {
            agent = agent.handoff_description(description.as_str());
        }
        if shape.explain_handoffs {
            agent = agent.explain_handoffs();
        }
        for known in &plan.knowledge {
            agent = agent.knowledge(known.clone());
        }
        for tool in &shape.tools {
            if let Some(tool) = tools.get(tool) {
                agent = agent.tool(tool.clone());
            }
        }
        for guard in guards(self.plan, &shape.input_guardrails) {
            agent = agent.input_guardrail(guard.on_input());
        }
        for guard in guards(self.plan, &shape.output_guardrails) {
            agent = agent.output_guardrail(guard.on_output());
        }
        for (at, edge) in plan.handoffs.iter().enumerate() {
            agent = agent.handoff(self.handoff(&plan.name, at, edge));
        }
        agent
    }

    fn handoff(&mut self, agent: &str, at: usize, plan: &EdgePlan) -> Handoff<Context> {
        let shape = &plan.shape;
        let mut edge = handoff::<Context>(shape.to.as_str());
        if let Some(name) = &shape.tool_name {
            edge = edge.tool_name(name.as_str());
        }
        if let Some(description) = &shape.description {
            edge = edge.tool_description(description.as_str());
        }
        if let Some(nest) = shape.nest_history {
            edge = edge.nest_history(nest);
        }
        for guard in guards(self.plan, &shape.guardrails) {
            edge = edge.guardrail(guard.on_handoff());
        }
        if let (Some(when), Some(text)) = (plan.when.clone(), &shape.when) {
            edge = edge
                .enabled_if(move |ctx, _agent| when.holds(&ctx))
                .condition_name(text.as_str());
        }
        let way_to_edge = way!["agents", agent, "handoffs", at];
        let mut model = |name: &str| (self.model)(way_to_edge, name);
        match filters::chain(shape.filters.as_deref().unwrap_or_default(), &mut model) {
            Ok(Some(filter)) => edge = edge.filter(filter),
            Ok(None) => {}
            Err(problem) => self.problems.add(problem),
        }
        match &plan.payload {
            Some(schema) => edge.payload_schema(schema.clone()).build(),
            None => edge.build(),
        }
    }

    fn config(&mut self) -> RunConfig<Context> {
        let run = &self.plan.run;
        let mut config = RunConfig {
            nest_handoff_history: run.nest_history,
            session_limit: run
                .session_limit
                .and_then(|limit| usize::try_from(limit).ok()),
            tool_concurrency: run
                .tool_concurrency
                .and_then(|limit| NonZeroUsize::new(usize::try_from(limit).ok()?)),
            ..RunConfig::default()
        };
        if let Some(turns) = run.max_turns {
            config.max_turns = Some(turns);
        }
        let mut model = |name: &str| (self.model)(way!["run", "filters"], name);
        match filters::chain(&run.filters, &mut model) {
            Ok(filter) => config.handoff_input_filter = filter,
            Err(problem) => self.problems.add(problem),
        }
        let plan = self.plan;
        let guards = |names| guards(plan, names);
        config.input_guardrails = guards(&run.input_guardrails)
            .map(|guard| guard.on_input())
            .collect();
        config.output_guardrails = guards(&run.output_guardrails)
            .map(|guard| guard.on_output())
            .collect();
        config.handoff_guardrails = guards(&run.handoff_guardrails)
            .map(|guard| guard.on_handoff())
            .collect();
        config
    }
}

fn guards<'a>(
    plan: &'a Plan,
    names: &'a [String],
) -> impl Iterator<Item = &'a crate::guard::Guard> {
    names.iter().filter_map(|name| plan.guards.get(name))
}

fn settings(shape: &SettingsShape) -> ModelSettings {
    let effort = shape.reasoning_effort.as_deref();
    ModelSettings {
        temperature: shape.temperature,
        top_p: shape.top_p,
        frequency_penalty: shape.frequency_penalty,
        presence_penalty: shape.presence_penalty,
        tool_choice: shape.tool_choice.as_deref().map(|choice| match choice {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            "none" => ToolChoice::None,
            name => ToolChoice::Named(name.into()),
        }),
        parallel_tool_calls: shape.parallel_tool_calls,
        truncation: shape.truncation.as_deref().map(Into::into),
        max_tokens: shape.max_tokens.map(u64::from),
        reasoning: effort.map(|effort| Reasoning {
            effort: Some(effort.into()),
            ..Reasoning::default()
        }),
        verbosity: shape.verbosity.as_deref().map(Into::into),
        store: shape.store,
        extra_body: shape.extra_body.clone().into_iter().collect(),
        ..ModelSettings::default()
    }
}
