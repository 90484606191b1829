//! Builds the agents, tools and handoffs that a case describes.

use serde_json::{Value, json};
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::guardrail::{InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict};
use switchboard_core::handoff::{HistoryMarkers, IntoHandoff as _};
use switchboard_core::{Agent, FinalOutput, Handoff, Input, RunContext, Team, Tool, handoff, tool};

use super::hooks::LoggingAgentHooks;
use super::{CaseContext, filters};
use crate::case::{AgentCase, Case, DetailedHandoff, EnabledCase, HandoffCase, ToolCase};
use crate::compare;
use crate::payloads::{Escalation, Order, Query, Ticket, TypeName};
use crate::serialize;

/// Builds all agents of a case.
pub(super) fn build_team(
    case: &Case,
    markers: &HistoryMarkers,
) -> Result<Team<CaseContext>, String> {
    let mut team = Team::new();
    for agent in &case.agents {
        team = team.agent(build_agent(agent, markers)?);
    }
    team.build().map_err(|error| error.to_string())
}

/// The markers around nested history, with the defaults for those that the case does not set.
pub(super) fn history_markers(case: &Case) -> HistoryMarkers {
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

fn build_agent(case: &AgentCase, markers: &HistoryMarkers) -> Result<Agent<CaseContext>, String> {
    let mut agent = Agent::new(case.name.as_str());
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
        agent = agent.tool(build_tool(tool));
    }
    for handoff in &case.handoffs {
        agent = agent.handoff(build_handoff(handoff, markers)?);
    }
    for guardrail in case.input_guardrails.iter().cloned() {
        let name = guardrail.name.clone();
        let check = move |ctx: RunContext<CaseContext>, agent: Agent<CaseContext>, input: Input| {
            ctx.log(json!({"input_guardrail": guardrail.name, "agent": agent.name()}));
            let input = serialize::input(&input).to_string();
            InputVerdict::trip_if(input.contains(&guardrail.trips_on), Value::Null)
        };
        agent = agent.input_guardrail(InputGuardrail::new(name, check));
    }
    for guardrail in case.output_guardrails.iter().cloned() {
        let name = guardrail.name.clone();
        let check =
            move |ctx: RunContext<CaseContext>, agent: Agent<CaseContext>, output: FinalOutput| {
                ctx.log(json!({"output_guardrail": guardrail.name, "agent": agent.name()}));
                let trips = output.text().contains(&guardrail.trips_on);
                OutputVerdict::trip_if(trips, Value::Null)
            };
        agent = agent.output_guardrail(OutputGuardrail::new(name, check));
    }
    agent = match case.output_type {
        None => agent,
        Some(TypeName::Escalation) => agent.output::<Escalation>(),
        Some(TypeName::Query) => agent.output::<Query>(),
        Some(TypeName::Ticket) => agent.output::<Ticket>(),
        Some(TypeName::Order) => agent.output::<Order>(),
    };
    Ok(match &case.tool_use_behavior {
        None | Some(Value::Null) => agent,
        Some(Value::String(rule)) if rule == "run_llm_again" => agent,
        Some(Value::String(rule)) if rule == "stop_on_first_tool" => {
            agent.tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        }
        Some(rule) => {
            let names = rule["stop_at_tool_names"]
                .as_array()
                .ok_or_else(|| format!("unknown tool_use_behavior {rule}"))?;
            let names = names.iter().filter_map(Value::as_str);
            agent.tool_use_behavior(ToolUseBehavior::stop_at(names))
        }
    })
}

fn build_tool(case: &ToolCase) -> Tool<CaseContext> {
    let parameters = case.parameters.clone().unwrap_or_else(|| json!({}));
    let (returns, fails) = (case.returns.clone(), case.fails.clone());
    tool::<CaseContext>(case.name.as_str())
        .description(case.description.as_str())
        .run_raw(&parameters, move |ctx| {
            ctx.log(json!({"tool": ctx.tool(), "arguments": ctx.arguments()}));
            match &fails {
                Some(error) => Err(error.clone()),
                None => Ok(returns.clone()),
            }
        })
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
        Some(EnabledCase::Context { context, equals }) => builder.enabled_if(move |ctx, _agent| {
            compare::plain(&equals, &ctx.context[&context]).is_none()
        }),
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
        Some(TypeName::Escalation) => typed!(Escalation),
        Some(TypeName::Query) => typed!(Query),
        Some(TypeName::Ticket) => typed!(Ticket),
        Some(TypeName::Order) => typed!(Order),
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
