//! Builds the agents of a resolved team.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::filters::Filter;
use switchboard_core::handoff::PayloadDelivery;
use switchboard_core::model::{ModelHandle, Reasoning, ToolChoice};
use switchboard_core::output::OutputType;
use switchboard_core::run::{ActiveAgent, Compaction, Exclusive};
use switchboard_core::{Agent, Handoff, ModelSettings, RunConfig, Team, Tool, handoff};

use crate::approve::Approve;
use crate::context::Context;
use crate::diagnostics::{Problem, Problems};
use crate::document::{Node, Step, steps};
use crate::filters;
use crate::guardrails::Guardrail;
use crate::policies;
use crate::resolve::{ResolvedAgent, ResolvedHandoff, ResolvedTeam};
use crate::tools::{SharedClient, ToolError, Vars};
use crate::types::{
    ActiveAgentSpec, AfterToolsSpec, DeliverSpec, FilterSpec, RemoteSpec, ReturnSpec, SettingsSpec,
};

/// The model of an agent.
pub(crate) enum ModelRef<'a> {
    Named(&'a str),
    Remote(&'a RemoteSpec),
}

/// Returns a model. Problems have no position.
pub(crate) type GetModel<'a> = dyn FnMut(ModelRef<'_>) -> Result<ModelHandle, Box<Problem>> + 'a;

/// Builds the agents of a resolved team.
pub(crate) struct TeamBuilder<'a> {
    pub(crate) resolved: &'a ResolvedTeam,
    pub(crate) root: &'a Node,
    pub(crate) folder: &'a Path,
    pub(crate) vars: Vars<'a>,
    /// `None` if the team is for inspection only.
    pub(crate) client: Option<SharedClient>,
    pub(crate) model: &'a mut GetModel<'a>,
    pub(crate) problems: Problems,
}

impl TeamBuilder<'_> {
    pub(crate) fn build(mut self) -> Result<(Team<Context>, RunConfig<Context>), Problems> {
        let resolved = self.resolved;
        let tools = self.tools();
        // `Team::check` takes the first agent as the start.
        let (start, others): (Vec<_>, Vec<_>) = resolved
            .agents
            .iter()
            .partition(|agent| agent.name == resolved.start);
        let mut team = Team::new();
        let mut built = BTreeMap::new();
        for agent in start.into_iter().chain(others) {
            team = team.agent(self.agent_once(agent, &tools, &mut built));
        }
        let config = self.run_config();
        self.problems.or_errors()?;
        let team = team
            .build()
            .map_err(|error| Problems::one(Problem::without_file("team", error.to_string())))?;
        Ok((team, config))
    }

    fn tools(&mut self) -> BTreeMap<String, Tool<Context>> {
        let mut tools = BTreeMap::new();
        for (name, tool) in &self.resolved.tools {
            match tool.open(self.folder, self.client.as_mut(), self.vars) {
                Ok(tool) => tools.extend(tool.map(|tool| (name.clone(), tool))),
                Err(ToolError { header, problem }) => {
                    let span = match header {
                        Some(header) => header_span(self.root, name, header.as_str()),
                        None => self.root.name_span_of(steps!["tools", name]),
                    };
                    self.problems.add_at(*problem, span);
                }
            }
        }
        tools
    }

    /// Builds an agent, unless it was built as the agent that a tool asks.
    fn agent_once(
        &mut self,
        resolved: &ResolvedAgent,
        tools: &BTreeMap<String, Tool<Context>>,
        built: &mut BTreeMap<String, Agent<Context>>,
    ) -> Agent<Context> {
        if let Some(agent) = built.get(&resolved.name) {
            return agent.clone();
        }
        let agent = self.agent(resolved, tools, built);
        built.insert(resolved.name.clone(), agent.clone());
        agent
    }

    fn agent(
        &mut self,
        resolved: &ResolvedAgent,
        tools: &BTreeMap<String, Tool<Context>>,
        built: &mut BTreeMap<String, Agent<Context>>,
    ) -> Agent<Context> {
        let spec = &resolved.spec;
        let mut agent = if spec.person {
            Agent::person(resolved.name.as_str())
        } else {
            self.agent_with_model(resolved)
        };
        if let Some(instructions) = &resolved.instructions {
            agent = agent.instructions(instructions.as_str());
        }
        if let Some(description) = &spec.description {
            agent = agent.handoff_description(description.as_str());
        }
        if spec.explain_handoffs {
            agent = agent.explain_handoffs();
        }
        // A schema that cannot be used was reported when it was resolved.
        if let Some(Ok(output)) = resolved.output.clone().map(|schema| {
            let name = schema["title"].as_str().unwrap_or("JSON").to_owned();
            OutputType::described_by(&name, schema)
        }) {
            agent = agent.output_as(output);
        }
        for entry in &resolved.knowledge {
            agent = agent.knowledge(entry.clone());
        }
        let team = self.resolved;
        for name in &spec.tools {
            if let Some(tool) = tools.get(name) {
                agent = agent.tool(tool.clone());
            } else if let Some(tool) = team.tools.get(name)
                && let Some(question) = tool.question()
                && let Some(asked) = team.agent(&question.agent)
            {
                let asked = self.agent_once(asked, tools, built);
                agent = agent.tool(tool.open_question(question, &asked));
            }
        }
        for guardrail in self.guardrails(&spec.input_guardrails) {
            agent = agent.input_guardrail(guardrail.on_input());
        }
        for guardrail in self.guardrails(&spec.output_guardrails) {
            agent = agent.output_guardrail(guardrail.on_output());
        }
        if let Some(policy) = spec.active_agent {
            agent = agent.active_agent(active_agent(policy));
        }
        for (index, handoff) in resolved.handoffs.iter().enumerate() {
            agent = agent.handoff(self.handoff(&resolved.name, index, handoff));
        }
        agent
    }

    /// An agent with its model, and the settings of it.
    fn agent_with_model(&mut self, resolved: &ResolvedAgent) -> Agent<Context> {
        let spec = &resolved.spec;
        let team_settings = model_settings(&self.resolved.settings);
        let settings = team_settings.overridden_by(&model_settings(&spec.settings));
        let mut agent =
            Agent::new(resolved.name.as_str()).tool_use_behavior(match &spec.after_tools {
                AfterToolsSpec::RunModelAgain => ToolUseBehavior::run_model_again(),
                AfterToolsSpec::StopOnFirstTool => ToolUseBehavior::stop_on_first_tool(),
                AfterToolsSpec::StopAt(names) => ToolUseBehavior::stop_at(names.clone()),
            });
        // Without settings of its own, an agent has its model's defaults.
        if settings != ModelSettings::default() {
            agent = agent.model_settings(settings);
        }
        let model = match &spec.a2a {
            Some(remote) => ModelRef::Remote(remote),
            None => ModelRef::Named(self.resolved.model_of(resolved)),
        };
        match (self.model)(model) {
            Ok(model) => agent = agent.model(model),
            Err(problem) => {
                let path = match (&spec.a2a, &spec.model) {
                    (Some(_), _) => steps!["agents", &resolved.name, "a2a"],
                    (None, Some(_)) => steps!["agents", &resolved.name, "model"],
                    (None, None) => steps!["model"],
                };
                self.problems.add_at(*problem, self.root.span_of(path));
            }
        }
        agent
    }

    fn handoff(
        &mut self,
        agent: &str,
        index: usize,
        resolved: &ResolvedHandoff,
    ) -> Handoff<Context> {
        let spec = &resolved.spec;
        let mut builder = match spec.return_to {
            None => handoff::<Context>(spec.to.as_str()),
            Some(ReturnSpec::Previous) => Handoff::to_previous(),
            Some(ReturnSpec::Start) => Handoff::to_start(),
        };
        if let Some(name) = &spec.tool_name {
            builder = builder.tool_name(name.as_str());
        }
        if let Some(description) = &spec.description {
            builder = builder.tool_description(description.as_str());
        }
        if let Some(nest) = spec.nest_history {
            builder = builder.nest_history(nest);
        }
        for guardrail in self.guardrails(&spec.guardrails) {
            builder = builder.guardrail(guardrail.on_handoff());
        }
        if let (Some(when), Some(text)) = (resolved.when.clone(), &spec.when) {
            builder = builder
                .enabled_if(move |ctx, _agent| when.holds(&ctx))
                .condition_name(text.as_str());
        }
        if let Some(approve) = resolved.approve.clone() {
            builder = match approve {
                Approve::Always => builder.needs_approval(),
                approve => builder.needs_approval_if(move |ctx, payload| {
                    approve.applies(ctx.run_context().state(), &payload)
                }),
            };
        }
        let at = steps!["agents", agent, "handoffs", index];
        if let Some(filter) = self.filter(at, spec.filters.as_deref()) {
            builder = builder.filter(filter);
        }
        for way in &spec.deliver {
            builder = builder.deliver(match way {
                DeliverSpec::Message => PayloadDelivery::Message,
                DeliverSpec::Instructions => PayloadDelivery::Instructions,
                DeliverSpec::Context => PayloadDelivery::Context,
            });
        }
        if let Some(schema) = &resolved.returns {
            builder = builder.returns_schema(schema.clone());
            if let Some(filter) = self.filter(at, spec.return_filters.as_deref()) {
                builder = builder.return_filter(filter);
            }
        }
        if let Some(condition) = resolved.before_turn.clone() {
            builder = builder.before_turn_if(move |ctx, _agent| condition.holds(&ctx));
        }
        if let Some(condition) = resolved.after_turn.clone() {
            builder = builder.after_turn_if(move |ctx, _agent| condition.holds(&ctx));
        }
        if spec.hidden {
            builder = builder.hidden();
        }
        let rules = resolved.rules.clone();
        if let Some(rules) = &rules {
            builder = builder.guardrail(rules.guardrail(&spec.to));
        }
        match (&resolved.payload, rules) {
            (None, None) => builder.build(),
            (None, Some(rules)) => builder
                .on_handoff(move |ctx| rules.decide(ctx.run_context().state(), &Value::Null))
                .build(),
            (Some(schema), None) => builder.payload_schema(schema.clone()).build(),
            (Some(schema), Some(rules)) => builder
                .payload_schema(schema.clone())
                .on_handoff(move |ctx, payload| rules.decide(ctx.run_context().state(), &payload))
                .build(),
        }
    }

    /// The chain of these filters, unless it is empty. A problem has the position of the handoff.
    fn filter(
        &mut self,
        at: &[Step<'_>],
        filters: Option<&[FilterSpec]>,
    ) -> Option<Filter<Context>> {
        match filters::chain(filters.unwrap_or_default(), &mut |name: &str| {
            (self.model)(ModelRef::Named(name))
        }) {
            Ok(filter) => filter,
            Err(problem) => {
                self.problems.add_at(*problem, self.root.span_of(at));
                None
            }
        }
    }

    fn run_config(&mut self) -> RunConfig<Context> {
        let run = &self.resolved.run;
        let to_usize = |limit: u32| usize::try_from(limit).ok();
        let mut config = RunConfig {
            nest_handoff_history: run.nest_history,
            session_limit: run.session_limit.and_then(to_usize),
            tool_concurrency: run
                .tool_concurrency
                .and_then(to_usize)
                .and_then(NonZeroUsize::new),
            input_guardrails: self
                .guardrails(&run.input_guardrails)
                .map(Guardrail::on_input)
                .collect(),
            output_guardrails: self
                .guardrails(&run.output_guardrails)
                .map(Guardrail::on_output)
                .collect(),
            handoff_guardrails: self
                .guardrails(&run.handoff_guardrails)
                .map(Guardrail::on_handoff)
                .collect(),
            team_name: self.resolved.name.as_deref().map(Into::into),
            active_agent: active_agent(self.resolved.conversations.active_agent),
            compaction: self
                .resolved
                .conversations
                .compact_at
                .map(|tokens| Compaction::new(usize::try_from(tokens).unwrap_or(usize::MAX))),
            exclusive: self
                .resolved
                .conversations
                .exclusive
                .map(|seconds| Exclusive::new(Duration::from_secs(seconds.into()))),
            keep_refused: self.resolved.conversations.keep_refused,
            handoff_policy: policies::handoff_policy(run),
            budgets: policies::budgets(self.resolved).map(Arc::new),
            ..RunConfig::default()
        };
        config.max_turns = run.max_turns.or(config.max_turns);
        match filters::chain(&run.filters, &mut |name: &str| {
            (self.model)(ModelRef::Named(name))
        }) {
            Ok(filter) => config.handoff_input_filter = filter,
            Err(problem) => {
                self.problems
                    .add_at(*problem, self.root.span_of(steps!["run", "filters"]));
            }
        }
        config
    }

    fn guardrails(&self, names: &[String]) -> impl Iterator<Item = &Guardrail> {
        let guardrails = &self.resolved.guardrails;
        names.iter().filter_map(|name| guardrails.get(name))
    }
}

/// Returns the span of a header of a tool, whose name may be written in any case.
fn header_span(root: &Node, tool: &str, header: &str) -> Range<usize> {
    let headers = root.at(steps!["tools", tool, "http", "headers"]);
    let mut entries = headers.entries().iter();
    let entry = entries.find(|entry| entry.name.eq_ignore_ascii_case(header));
    entry
        .map_or(&headers.span, |entry| &entry.value.span)
        .clone()
}

fn active_agent(spec: ActiveAgentSpec) -> ActiveAgent {
    match spec {
        ActiveAgentSpec::Stay => ActiveAgent::Stay,
        ActiveAgentSpec::ReturnToStart => ActiveAgent::ReturnToStart,
    }
}

fn model_settings(spec: &SettingsSpec) -> ModelSettings {
    ModelSettings {
        temperature: spec.temperature,
        top_p: spec.top_p,
        frequency_penalty: spec.frequency_penalty,
        presence_penalty: spec.presence_penalty,
        tool_choice: spec.tool_choice.as_deref().map(|choice| match choice {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            "none" => ToolChoice::None,
            name => ToolChoice::Named(name.into()),
        }),
        parallel_tool_calls: spec.parallel_tool_calls,
        truncation: spec.truncation.as_deref().map(Into::into),
        max_tokens: spec.max_tokens.map(u64::from),
        reasoning: spec.reasoning_effort.as_deref().map(|effort| Reasoning {
            effort: Some(effort.into()),
            ..Reasoning::default()
        }),
        verbosity: spec.verbosity.as_deref().map(Into::into),
        store: spec.store,
        extra_body: spec.extra_body.clone().into_iter().collect(),
        ..ModelSettings::default()
    }
}
