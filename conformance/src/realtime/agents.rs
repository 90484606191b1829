//! Builds the realtime agents that a case describes.

use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict, ToolGuardrail, ToolVerdict};
use switchboard_core::hooks::{AgentHooks, HookResult};
use switchboard_core::tool::ToolOutput;
use switchboard_core::{Agent, FinalOutput, RunContext, Tool, ToolContext, tool};
use switchboard_realtime::{
    BuiltTeam, IntoRealtimeHandoff as _, RealtimeAgent, RealtimeHandoff, RealtimeTeam,
    realtime_handoff,
};

use super::context::SessionContext;
use super::settings;
use crate::compare;
use crate::payloads::{
    Booking, Escalation, Order, Query, Ticket, Translation, TypeName, with_type,
};
use crate::serialize;

type Context = SessionContext;

/// Guardrails of one name are one guardrail.
pub(super) struct Guardrails(Vec<OutputGuardrail<Context>>);

impl Guardrails {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn get(&mut self, case: &Value) -> OutputGuardrail<Context> {
        let name = text(case, "name");
        if let Some(known) = self.0.iter().find(|known| known.name() == name) {
            return known.clone();
        }
        let made = output_guardrail(case);
        self.0.push(made.clone());
        made
    }
}

/// Builds all agents of a case.
pub(super) fn build_team(
    case: &Value,
    guardrails: &mut Guardrails,
) -> Result<BuiltTeam<Context>, String> {
    let mut team = RealtimeTeam::new();
    for agent in list(&case["agents"]) {
        team = team.agent(build_agent(agent, guardrails)?);
    }
    team.build().map_err(|error| error.to_string())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(case: &Value, field: &str) -> String {
    case[field].as_str().unwrap_or_default().to_owned()
}

fn build_agent(
    case: &Value,
    guardrails: &mut Guardrails,
) -> Result<RealtimeAgent<Context>, String> {
    let mut agent = RealtimeAgent::new(text(case, "name"));
    match &case["instructions"] {
        Value::String(instructions) => agent = agent.instructions(instructions.as_str()),
        Value::Object(_) => {
            let made = case["instructions"].clone();
            agent =
                agent.instructions_fn(move |ctx: RunContext<Context>, agent: Agent<Context>| {
                    make_instructions(made.clone(), ctx, agent)
                });
        }
        _ => {}
    }
    if let Some(prompt) = settings::prompt(&case["prompt"]) {
        agent = agent.prompt(prompt);
    }
    if let Some(description) = case["handoff_description"].as_str() {
        agent = agent.handoff_description(description);
    }
    if case["hooks"] == json!(true) {
        agent = agent.hooks(Hooks);
    }
    for tool in list(&case["tools"]) {
        agent = agent.tool(build_tool(tool));
    }
    for handoff in list(&case["handoffs"]) {
        agent = agent.handoff(build_handoff(handoff)?);
    }
    for guardrail in list(&case["output_guardrails"]) {
        agent = agent.output_guardrail(guardrails.get(guardrail));
    }
    Ok(agent)
}

/// Hooks that log their calls; the reference makes none.
#[derive(Clone)]
struct Hooks;

impl AgentHooks<Context> for Hooks {
    async fn on_start(&self, ctx: &RunContext<Context>, agent: &Agent<Context>) -> HookResult {
        ctx.log(json!({"hook": "on_start", "agent": agent.name()}));
        Ok(())
    }

    async fn on_tool_start(
        &self,
        ctx: &RunContext<Context>,
        agent: &Agent<Context>,
        _tool: &Tool<Context>,
        _call: &ToolContext<Context>,
    ) -> HookResult {
        ctx.log(json!({"hook": "on_tool_start", "agent": agent.name()}));
        Ok(())
    }
}

async fn make_instructions(
    case: Value,
    ctx: RunContext<Context>,
    agent: Agent<Context>,
) -> Result<String, String> {
    ctx.log(json!({"instructions_of": agent.name()}));
    ctx.wait(case["waits"].as_str(), "instructions", agent.name())
        .await;
    if let Some(error) = case["raises"].as_str() {
        return Err(error.to_owned());
    }
    Ok(ctx.fill(case["template"].as_str().unwrap_or_default(), agent.name()))
}

fn build_tool(case: &Value) -> Tool<Context> {
    let mut builder = tool::<Context>(text(case, "name")).description(text(case, "description"));
    builder = match &case["is_enabled"] {
        Value::Bool(is_enabled) => builder.enabled(*is_enabled),
        Value::Object(_) => {
            let condition = case["is_enabled"].clone();
            builder.enabled_if(move |ctx: RunContext<Context>, _agent| holds(&condition, &ctx))
        }
        _ => builder,
    };
    builder = match &case["needs_approval"] {
        Value::Bool(true) => builder.needs_approval(),
        Value::Object(_) => {
            let condition = case["needs_approval"].clone();
            builder.needs_approval_if(move |_ctx, arguments: Value| {
                let argument = condition["argument"].as_str().unwrap_or_default();
                compare::plain(&condition["equals"], &arguments[argument]).is_none()
            })
        }
        _ => builder,
    };
    for guardrail in list(&case["input_guardrails"]) {
        let guardrail = guardrail.clone();
        let check = move |ctx: ToolContext<Context>| {
            let arguments = ctx.arguments().to_owned();
            tool_verdict(&guardrail, "tool_input_guardrail", &ctx, &arguments)
        };
        builder = builder.guardrail(ToolGuardrail::on_call(text(case, "name"), check));
    }
    for guardrail in list(&case["output_guardrails"]) {
        let guardrail = guardrail.clone();
        let check = move |ctx: ToolContext<Context>, output: ToolOutput| {
            tool_verdict(&guardrail, "tool_output_guardrail", &ctx, &output.text())
        };
        builder = builder.guardrail(ToolGuardrail::on_output(text(case, "name"), check));
    }
    if !case["raises"].is_null() {
        builder = builder.fail_run();
    }
    if let Some(text) = case["fails_with"].as_str().map(str::to_owned) {
        builder = builder.failure_text(move |_ctx, _error| text.clone());
    }
    let parameters = match &case["parameters"] {
        Value::Null => json!({"type": "object", "properties": {}, "required": [],
            "additionalProperties": false}),
        parameters => parameters.clone(),
    };
    let case = case.clone();
    builder.run_raw(&parameters, move |ctx: ToolContext<Context>| {
        run_tool(case.clone(), ctx)
    })
}

fn tool_verdict(case: &Value, kind: &str, ctx: &ToolContext<Context>, text: &str) -> ToolVerdict {
    ctx.log(json!({kind: case["name"]}));
    if !text.contains(case["trips_on"].as_str().unwrap_or_default()) {
        return ToolVerdict::Allow;
    }
    if case["then"] != json!("raise") {
        return ToolVerdict::replace(case["message"].as_str().unwrap_or_default());
    }
    if kind == "tool_input_guardrail" {
        ToolVerdict::trip(serialize::TOOL_INPUT)
    } else {
        ToolVerdict::trip(Value::Null)
    }
}

async fn run_tool(case: Value, ctx: ToolContext<Context>) -> Result<ToolOutput, String> {
    ctx.log(json!({"tool": ctx.tool(), "arguments": ctx.arguments()}));
    ctx.wait(case["waits"].as_str(), "tool", ctx.tool()).await;
    if let Some(error) = case["raises"].as_str().or(case["fails"].as_str()) {
        return Err(error.to_owned());
    }
    ctx.set(&case["sets_context"]);
    Ok(match case.get("returns") {
        Some(returns) => returns.clone().into(),
        None => "ok".into(),
    })
}

fn holds(condition: &Value, ctx: &RunContext<Context>) -> bool {
    let field = condition["context"].as_str().unwrap_or_default();
    ctx.has(field, &condition["equals"])
}

fn build_handoff(case: &Value) -> Result<RealtimeHandoff<Context>, String> {
    if let Some(name) = case.as_str() {
        return Ok(name.into_realtime_handoff());
    }
    let mut builder = realtime_handoff::<Context>(text(case, "agent"))
        .tool_name(text(case, "tool_name_override"))
        .tool_description(text(case, "tool_description_override"));
    builder = match &case["is_enabled"] {
        Value::Bool(is_enabled) => builder.enabled(*is_enabled),
        Value::Object(_) => {
            let condition = case["is_enabled"].clone();
            builder.enabled_if(move |ctx: RunContext<Context>, _agent| holds(&condition, &ctx))
        }
        _ => builder,
    };
    let case = case.clone();
    macro_rules! typed {
        ($type:ty) => {
            builder
                .payload::<$type>()
                .on_handoff(move |ctx, payload: $type| {
                    let payload = serde_json::to_value(&payload).unwrap_or_default();
                    call_back(case.clone(), ctx.run_context().clone(), Some(payload))
                })
                .build()
        };
    }
    if case["input_type"].is_string() {
        let name: TypeName = serde_json::from_value(case["input_type"].clone())
            .map_err(|error| error.to_string())?;
        return Ok(with_type!(name, typed));
    }
    if case["on_handoff"] == json!(true) || !case["on_handoff_fails"].is_null() {
        return Ok(builder
            .on_handoff(move |ctx| call_back(case.clone(), ctx.run_context().clone(), None))
            .build());
    }
    Ok(builder.build())
}

async fn call_back(
    case: Value,
    ctx: RunContext<Context>,
    input: Option<Value>,
) -> Result<(), BoxError> {
    let agent = text(&case, "agent");
    let mut entry = json!({"on_handoff": agent});
    if let Some(input) = input {
        entry["input"] = input;
    }
    ctx.log(entry);
    ctx.wait(case["waits"].as_str(), "on_handoff", &agent).await;
    if let Some(error) = case["on_handoff_fails"].as_str() {
        return Err(error.into());
    }
    ctx.set(&case["sets_context"]);
    Ok(())
}

fn output_guardrail(case: &Value) -> OutputGuardrail<Context> {
    let case = case.clone();
    let name = text(&case, "name");
    let check = move |ctx: RunContext<Context>, agent: Agent<Context>, output: FinalOutput| {
        check_output(case.clone(), ctx, agent, output)
    };
    OutputGuardrail::new(name, check)
}

async fn check_output(
    case: Value,
    ctx: RunContext<Context>,
    agent: Agent<Context>,
    output: FinalOutput,
) -> Result<OutputVerdict, String> {
    let name = text(&case, "name");
    let text = output.text().into_owned();
    ctx.log(json!({"output_guardrail": name, "agent": agent.name(), "text": text}));
    ctx.wait(case["waits"].as_str(), "output_guardrail", &name)
        .await;
    if let Some(error) = case["raises"].as_str() {
        return Err(error.to_owned());
    }
    let trips_on = case["trips_on"].as_str();
    let trips = trips_on.is_some_and(|trips_on| text.contains(trips_on));
    Ok(OutputVerdict::trip_if(trips, Value::Null))
}
