//! Agents out of a plan.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use switchboard_core::{
    Agent, Handoff, ModelHandle, ModelSettings, Reasoning, RunConfig, Team, Tool, ToolChoice,
    ToolUseBehavior, handoff,
};

use crate::context::Context;
use crate::document::{Step, way};
use crate::filters;
use crate::guard::Guard;
use crate::problem::{Problem, Problems};
use crate::resolve::{AgentPlan, EdgePlan, Plan};
use crate::tools::{SharedClient, UnusableTool};
use crate::types::{AfterToolsShape, SettingsShape};

/// Gives the model of a name, for the place in the file that names it.
pub(crate) type GiveModel<'a> =
    dyn FnMut(&[Step<'_>], &str) -> Result<ModelHandle, Box<Problem>> + 'a;

/// Makes agents out of a plan.
pub(crate) struct Builder<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a Path,
    pub(crate) vars: &'a dyn Fn(&str) -> Option<String>,
    /// Makes requests; none where the team is only to be looked at.
    pub(crate) client: Option<SharedClient>,
    pub(crate) model: &'a mut GiveModel<'a>,
    pub(crate) problem_of_tool: &'a dyn Fn(&str, UnusableTool) -> Problem,
    pub(crate) problems: &'a mut Problems,
}

impl Builder<'_> {
    pub(crate) fn build(&mut self) -> (Result<Team<Context>, Box<Problem>>, RunConfig<Context>) {
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
            .map_err(|error| Box::new(Problem::elsewhere("team", error.to_string())));
        (team, self.config())
    }

    fn tools(&mut self) -> BTreeMap<String, Tool<Context>> {
        let plan = self.plan;
        let mut tools = BTreeMap::new();
        for (name, tool) in &plan.tools {
            match tool.open(self.folder, self.client.as_mut(), self.vars) {
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
            .tool_use_behavior(match &shape.after_tools {
                AfterToolsShape::RunModelAgain => ToolUseBehavior::run_model_again(),
                AfterToolsShape::StopOnFirstTool => ToolUseBehavior::stop_on_first_tool(),
                AfterToolsShape::StopAt(names) => ToolUseBehavior::stop_at(names.clone()),
            });
        let way_to_model = match shape.model {
            Some(_) => way!["agents", &plan.name, "model"],
            None => way!["model"],
        };
        match (self.model)(way_to_model, plan.model(self.plan)) {
            Ok(model) => agent = agent.model(model),
            Err(problem) => self.problems.add(*problem),
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
            Err(problem) => self.problems.add(*problem),
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
            Err(problem) => self.problems.add(*problem),
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

fn guards<'a>(plan: &'a Plan, names: &'a [String]) -> impl Iterator<Item = &'a Guard> {
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
