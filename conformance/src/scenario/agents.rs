//! Builds the agents, tools and handoffs that a case describes.

use serde_json::{Value, json};
use switchboard_core::agent::{ToolResult, ToolUseBehavior};
use switchboard_core::handoff::{HistoryMarkers, IntoHandoff as _};
use switchboard_core::output::OutputType;
use switchboard_core::{Agent, FinalOutput, Handoff, RunContext, Team, handoff};

use super::hooks::LoggingAgentHooks;
use super::{CaseContext, Environment, Log as _, filters, guardrails, settings, tools};
use crate::case::{
    AgentCase, Case, DetailedHandoff, EnabledCase, HandoffCase, OutputTypeCase, ToolKind,
};
use crate::payloads::{
    Booking, Counts, Escalation, LenientTypeName, Order, Query, Ticket, Translation, TypeName,
    with_type,
};

/// Builds all agents of a case.
pub(crate) fn build_team(
    case: &Case,
    environment: &Environment,
) -> Result<Team<CaseContext>, String> {
    let order = build_order(case).ok_or("an agent tool's agent is missing or part of a circle")?;
    let mut built: Vec<Option<Agent<CaseContext>>> = case.agents.iter().map(|_| None).collect();
    for index in order {
        built[index] = Some(build_agent(&case.agents[index], environment, &built)?);
    }
    let mut team = Team::new();
    for agent in built.into_iter().flatten() {
        team = team.agent(agent);
    }
    team.build().map_err(|error| error.to_string())
}

/// The indices of the agents, each after those that are its tools. Returns `None` if an agent is
/// missing, or if agents are tools of each other.
pub(crate) fn build_order(case: &Case) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < case.agents.len() {
        let is_built = |name: &str| order.iter().any(|index| case.agents[*index].name == name);
        let next = (0..case.agents.len()).find(|index| {
            let mut tools = case.agents[*index].tools.iter();
            !order.contains(index)
                && tools.all(|tool| match &tool.kind {
                    ToolKind::Agent(tool) => is_built(&tool.agent_tool),
                    ToolKind::Function(_) => true,
                })
        });
        order.push(next?);
    }
    Some(order)
}

/// The markers around nested history, with the defaults for those that the case does not set.
pub(crate) fn history_markers(case: &Case) -> HistoryMarkers {
    let mut markers = HistoryMarkers::default();
    if let Some(wrappers) = &case.history_wrappers {
        if let Some(start) = &wrappers.start {
            markers.start = start.clone().into();
        }
        if let Some(end) = &wrappers.end {
            markers.end = end.clone().into();
        }
    }
    markers
}

fn build_agent(
    case: &AgentCase,
    environment: &Environment,
    built: &[Option<Agent<CaseContext>>],
) -> Result<Agent<CaseContext>, String> {
    let mut agent = Agent::new(case.name.as_str());
    if let Some(model) = environment.models.get(&case.name) {
        agent = agent.model(model.clone());
    }
    if let Some(instructions) = &case.instructions {
        agent = agent.instructions(instructions.as_str());
    }
    if let Some(description) = &case.handoff_description {
        agent = agent.handoff_description(description.as_str());
    }
    if case.hooks {
        agent = agent.hooks(LoggingAgentHooks(case.name.clone()));
    }
    for tool in &case.tools {
        agent = agent.tool(tools::build_tool(tool, environment, built)?);
    }
    for handoff in &case.handoffs {
        agent = agent.handoff(build_handoff(handoff, &environment.markers)?);
    }
    for guardrail in &case.input_guardrails {
        agent = agent.input_guardrail(guardrails::input(guardrail));
    }
    for guardrail in &case.output_guardrails {
        agent = agent.output_guardrail(guardrails::output(guardrail));
    }
    macro_rules! typed {
        ($type:ty) => {
            agent.output::<$type>()
        };
    }
    agent = match case.output_type {
        None => agent,
        Some(OutputTypeCase::Strict(output_type)) => with_type!(output_type, typed),
        Some(OutputTypeCase::Lenient { lenient }) => match lenient {
            LenientTypeName::Counts => agent.output_as(OutputType::lenient::<Counts>()),
        },
    };
    if let Some(settings) = &case.model_settings {
        agent = agent.model_settings(settings::model_settings(settings));
    }
    if case.reset_tool_choice == Some(false) {
        agent = agent.keep_tool_choice();
    }
    Ok(match &case.tool_use_behavior {
        None | Some(Value::Null) => agent,
        Some(Value::String(rule)) if rule == "run_llm_again" => agent,
        Some(Value::String(rule)) if rule == "stop_on_first_tool" => {
            agent.tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        }
        Some(rule) if rule.get("final_when").is_some() => agent.tool_use_behavior(decide(rule)),
        Some(rule) => {
            let names = rule["stop_at_tool_names"]
                .as_array()
                .ok_or_else(|| format!("unknown tool_use_behavior {rule}"))?;
            let names = names.iter().filter_map(Value::as_str);
            agent.tool_use_behavior(ToolUseBehavior::stop_at(names))
        }
    })
}

/// A behaviour whose function ends the run if the outputs of the tools contain a text.
fn decide(rule: &Value) -> ToolUseBehavior<CaseContext> {
    let text_of = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
    let (final_when, says) = (text_of("final_when"), text_of("says"));
    ToolUseBehavior::decide(
        move |ctx: RunContext<CaseContext>, results: Vec<ToolResult>| {
            let tools: Vec<&str> = results.iter().map(|result| &*result.tool).collect();
            ctx.log(json!({"tool_use_behavior": tools}));
            let mut outputs = results.iter().map(|result| result.output.text());
            let is_final = outputs.any(|output| output.contains(&final_when));
            is_final.then(|| FinalOutput::from(says.as_str()))
        },
    )
}

fn build_handoff(
    case: &HandoffCase,
    markers: &HistoryMarkers,
) -> Result<Handoff<CaseContext>, String> {
    let case = match case {
        HandoffCase::Name(name) => return Ok(name.as_str().into_handoff()),
        HandoffCase::Detailed(case) => case,
    };
    let mut builder = handoff::<CaseContext>(case.agent.as_str());
    if let Some(name) = &case.tool_name_override {
        builder = builder.tool_name(name.as_str());
    }
    if let Some(description) = &case.tool_description_override {
        builder = builder.tool_description(description.as_str());
    }
    if let Some(filter) = filters::optional(&case.input_filter, markers)? {
        builder = builder.filter(filter);
    }
    if let Some(nest) = case.nest_handoff_history {
        builder = builder.nest_history(nest);
    }
    builder = match case.is_enabled.clone() {
        None => builder,
        Some(EnabledCase::Fixed(enabled)) => builder.enabled(enabled),
        Some(EnabledCase::Context { context, equals }) => {
            builder.enabled_if(move |ctx, _agent| ctx.has(&context, &equals))
        }
    };
    macro_rules! typed {
        ($type:ty) => {{
            let log = logging_callback(case);
            builder
                .payload::<$type>()
                .on_handoff(move |ctx, payload| {
                    let payload = serde_json::to_value(&payload).map_err(|e| e.to_string())?;
                    log(ctx.run_context(), Some(payload))
                })
                .into_handoff()
        }};
    }
    Ok(match case.input_type {
        Some(input_type) => with_type!(input_type, typed),
        None if case.on_handoff => {
            let log = logging_callback(case);
            builder
                .on_handoff(move |ctx| log(ctx.run_context(), None))
                .into_handoff()
        }
        None => builder.into_handoff(),
    })
}

/// A handoff callback that logs its call, and fails if the case says so.
fn logging_callback(
    case: &DetailedHandoff,
) -> impl Fn(&RunContext<CaseContext>, Option<Value>) -> Result<(), String> + use<> {
    let (agent, fails) = (case.agent.clone(), case.on_handoff_fails.clone());
    move |ctx, payload| {
        ctx.log(json!({"on_handoff": agent, "input": payload}));
        fails.clone().map_or(Ok(()), Err)
    }
}
