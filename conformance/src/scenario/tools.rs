//! Builds the tools that a case describes: functions, and agents used as tools.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use switchboard_core::agent::AgentTool;
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::items::RunItemKind;
use switchboard_core::tool::{ToolBuilder, ToolError, ToolErrorKind, ToolOutput};
use switchboard_core::{
    Agent, Error, Input, Item, RunResult, StreamEvent, Tool, ToolContext, tool,
};

use super::hooks::LoggingHooks;
use super::settings::{REFERENCE_FAILURE, is_of_inner_run};
use super::{CaseContext, Environment, Log as _, event_name};
use crate::case::{
    AgentToolCase, ApprovalCase, ApprovalCondition, EnabledCase, Extractor, FailureCase,
    FunctionToolCase, InputBuilder, ToolCase, ToolGuardrailAction, ToolGuardrailCase, ToolKind,
    ToolSession,
};
use crate::compare;
use crate::lock::lock;
use crate::payloads::{
    Booking, Escalation, Order, Query, Ticket, Translation, TypeName, with_type,
};
use crate::serialize;

/// Builds a tool. The agents that it uses must be among those that are built.
pub(super) fn build_tool(
    case: &ToolCase,
    environment: &Environment,
    built: &[Option<Agent<CaseContext>>],
) -> Result<Tool<CaseContext>, String> {
    /// Sets what functions and agents used as tools have in common.
    macro_rules! common {
        ($builder:expr) => {{
            let mut builder = $builder.description(case.description.as_str());
            builder = match case.is_enabled.clone() {
                None => builder,
                Some(EnabledCase::Fixed(enabled)) => builder.enabled(enabled),
                Some(EnabledCase::Context { context, equals }) => {
                    builder.enabled_if(move |ctx, _agent| ctx.has(&context, &equals))
                }
            };
            builder = match case.needs_approval.clone() {
                None | Some(ApprovalCase::Fixed(false)) => builder,
                Some(ApprovalCase::Fixed(true)) => builder.needs_approval(),
                Some(ApprovalCase::Condition(condition)) => {
                    let condition = Arc::new(condition);
                    builder.needs_approval_if(move |ctx, arguments| {
                        needs_approval(condition.clone(), ctx, arguments)
                    })
                }
            };
            for guardrail in guardrails(case) {
                builder = builder.guardrail(guardrail);
            }
            builder
        }};
    }
    match &case.kind {
        ToolKind::Function(function) => {
            let name = case.name.as_deref().ok_or("a tool without a name")?;
            let builder = common!(tool::<CaseContext>(name));
            Ok(function_tool(builder, function))
        }
        ToolKind::Agent(inner) => {
            let agent = agent_of(inner, built)?;
            let name = case.name.clone().unwrap_or_else(|| agent.tool_name());
            let label = case.name.as_deref().unwrap_or(&inner.agent_tool);
            let builder = common!(agent.as_tool(name));
            Ok(agent_tool(builder, inner, label, environment)?.into())
        }
    }
}

/// Evaluates the condition under which a call needs approval.
async fn needs_approval(
    case: Arc<ApprovalCondition>,
    ctx: ToolContext<CaseContext>,
    arguments: Value,
) -> Result<bool, String> {
    ctx.log(json!({"needs_approval": ctx.tool(), "call_id": ctx.call_id()}));
    if let Some(pause) = case.async_ms {
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    if let Some(failure) = &case.fails {
        return Err(failure.clone());
    }
    if let Some(field) = &case.context {
        return Ok(ctx.has(field, &case.equals));
    }
    let argument = case.argument.as_ref().map(|name| &arguments[name]);
    let argument = argument.unwrap_or(&Value::Null);
    Ok(match case.over {
        Some(limit) => argument.as_f64().is_some_and(|number| number > limit),
        None => compare::plain(&case.equals, argument).is_none(),
    })
}

/// The agent of an agent tool.
pub(super) fn agent_of<'a>(
    case: &AgentToolCase,
    built: &'a [Option<Agent<CaseContext>>],
) -> Result<&'a Agent<CaseContext>, String> {
    let mut agents = built.iter().flatten();
    let agent = agents.find(|agent| agent.name() == case.agent_tool);
    agent.ok_or_else(|| format!("there is no agent {:?}", case.agent_tool))
}

/// Makes a tool of a function that does what the case says.
fn function_tool(
    mut builder: ToolBuilder<CaseContext>,
    case: &FunctionToolCase,
) -> Tool<CaseContext> {
    if case.raises.is_some() || matches!(case.failure, FailureCase::Raise) {
        builder = builder.fail_run();
    }
    if let Some(timeout) = case.timeout_ms {
        builder = builder.timeout(Duration::from_millis(timeout));
    }
    if matches!(case.on_timeout, FailureCase::Raise) {
        builder = builder.fail_run_on_timeout();
    }
    let has_text = |case: &FailureCase| matches!(case, FailureCase::Says { .. });
    if has_text(&case.failure) || has_text(&case.on_timeout) {
        let (failure, on_timeout) = (case.failure.clone(), case.on_timeout.clone());
        builder = builder.failure_text(move |_ctx, error| match error.kind() {
            ToolErrorKind::TimedOut => failure_text(&on_timeout, &error),
            _ => failure_text(&failure, &error),
        });
    }
    let case = Arc::new(case.clone());
    macro_rules! typed {
        ($type:ty) => {
            builder.run(move |ctx: ToolContext<CaseContext>, arguments: $type| {
                run_body(case.clone(), ctx, serde_json::to_value(arguments).ok())
            })
        };
    }
    match case.arguments {
        Some(arguments) => with_type!(arguments, typed),
        None => {
            let parameters = case.parameters.clone().unwrap_or_else(|| json!({}));
            builder.run_raw(&parameters, move |ctx| run_body(case.clone(), ctx, None))
        }
    }
}

fn failure_text(case: &FailureCase, error: &ToolError) -> String {
    match case {
        FailureCase::Says { says } => says.replace("{error}", &error.to_string()),
        _ if is_of_inner_run(error) => REFERENCE_FAILURE.to_owned(),
        FailureCase::Default | FailureCase::Raise => error.default_text(),
    }
}

async fn run_body(
    case: Arc<FunctionToolCase>,
    ctx: ToolContext<CaseContext>,
    payload: Option<Value>,
) -> Result<ToolOutput, String> {
    let entry = match payload {
        None => json!({"tool": ctx.tool(), "arguments": ctx.arguments()}),
        // The text of the arguments is the one that was read: numbers may have been texts before.
        Some(payload) => json!({"tool": ctx.tool(), "payload": payload}),
    };
    ctx.log(entry);
    if let Some(pause) = case.takes_ms {
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    if let Some(failure) = case.raises.as_ref().or(case.fails.as_ref()) {
        return Err(failure.clone());
    }
    ctx.set(&case.sets);
    Ok(match &case.parts {
        Some(parts) => ToolOutput::Parts(parts.clone()),
        None => case.returns.clone().into(),
    })
}

/// The guardrails on the calls and the outputs of a tool.
fn guardrails(case: &ToolCase) -> Vec<ToolGuardrail<CaseContext>> {
    let inputs = case.input_guardrails.iter().cloned().map(|guardrail| {
        ToolGuardrail::on_call(
            guardrail.name.clone(),
            move |ctx: ToolContext<CaseContext>| {
                let arguments = ctx.arguments().to_owned();
                verdict(&guardrail, "tool_input_guardrail", &ctx, &arguments)
            },
        )
    });
    let outputs = case.output_guardrails.iter().cloned().map(|guardrail| {
        ToolGuardrail::on_output(guardrail.name.clone(), move |ctx, output| {
            verdict(&guardrail, "tool_output_guardrail", &ctx, &output.text())
        })
    });
    inputs.chain(outputs).collect()
}

fn verdict(
    case: &ToolGuardrailCase,
    kind: &str,
    ctx: &ToolContext<CaseContext>,
    text: &str,
) -> ToolVerdict {
    ctx.log(json!({kind: case.name, "of": ctx.tool()}));
    match case.does {
        _ if !text.contains(&case.on) => ToolVerdict::Allow,
        ToolGuardrailAction::Reject => ToolVerdict::replace(case.message.as_str()),
        ToolGuardrailAction::Raise if kind == "tool_input_guardrail" => {
            ToolVerdict::trip(serialize::TOOL_INPUT)
        }
        ToolGuardrailAction::Raise => ToolVerdict::trip(Value::Null),
    }
}

/// Sets what only agents used as tools have. `label` stands for the tool in logs.
fn agent_tool(
    mut builder: AgentTool<CaseContext>,
    case: &AgentToolCase,
    label: &str,
    environment: &Environment,
) -> Result<AgentTool<CaseContext>, String> {
    if let Some(turns) = case.max_turns {
        builder = builder.max_turns(turns);
    }
    if case.hooks {
        let of_tool = Some(label.to_owned());
        builder = builder.hooks(LoggingHooks { of_tool });
    }
    builder = match case.session {
        None => builder,
        Some(ToolSession::Shared) => builder.session(environment.session.clone()),
        Some(ToolSession::Own) => {
            let mut sessions = lock(&environment.tool_sessions);
            let session = sessions.entry(label.to_owned()).or_default().clone();
            builder.session(session)
        }
    };
    if let Some(config) = &case.run_config {
        builder = builder.config(environment.run_config(config)?);
    }
    builder = match &case.failure {
        FailureCase::Default => builder,
        FailureCase::Raise => builder.fail_run(),
        FailureCase::Says { says } => {
            let (says, label) = (says.clone(), label.to_owned());
            builder.failure_text(move |ctx, error| {
                ctx.log(json!({"failure": label, "error": failure_type(&error)}));
                says.clone()
            })
        }
    };
    builder = input(builder, case, label);
    if let Some(extractor) = case.output_extractor.clone() {
        let label = label.to_owned();
        builder = builder.answer_with(move |ctx, result| {
            ctx.log(json!({"output_extractor": label}));
            extract(&extractor, &ctx, &result)
        });
    }
    let fails = match &case.on_stream {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(builder),
        Some(Value::Bool(true)) => false,
        Some(Value::String(text)) if text == "fails" => true,
        Some(other) => return Err(format!("unknown on_stream {other}")),
    };
    Ok(builder.on_event(move |ctx, event| listen(&ctx, &event, fails)))
}

/// The reference's name of the error that an agent tool failed with.
fn failure_type(error: &ToolError) -> &'static str {
    match error.cause().downcast_ref::<Error>() {
        Some(inner) => serialize::error_type(inner),
        None if error.kind() == ToolErrorKind::InvalidArguments => "ModelBehaviorError",
        None => "RuntimeError",
    }
}

/// The arguments of an agent tool that has no parameters of its own.
#[derive(Serialize, Deserialize, JsonSchema)]
struct DefaultInput {
    input: String,
}

/// Sets the parameters, and the function that makes the agent's input of them.
fn input(
    builder: AgentTool<CaseContext>,
    case: &AgentToolCase,
    label: &str,
) -> AgentTool<CaseContext> {
    macro_rules! parameters {
        ($type:ty) => {
            if case.include_input_schema {
                builder.parameters_with_schema::<$type>()
            } else {
                builder.parameters::<$type>()
            }
        };
    }
    let Some(make) = case.input_builder.clone() else {
        return match case.parameters {
            None => builder,
            Some(parameters) => with_type!(parameters, parameters),
        };
    };
    let label: Arc<str> = label.into();
    macro_rules! built {
        ($type:ty) => {
            builder.input(move |ctx: ToolContext<CaseContext>, params: $type| {
                let params = serde_json::to_value(params).map_err(|error| error.to_string())?;
                ctx.log(json!({"input_builder": &*label, "params": params}));
                build_input(&make, params.as_object().cloned().unwrap_or_default())
            })
        };
    }
    match case.parameters {
        None => built!(DefaultInput),
        Some(parameters) => with_type!(parameters, built),
    }
}

fn build_input(builder: &InputBuilder, params: Map<String, Value>) -> Result<Input, String> {
    match builder {
        InputBuilder::Fails(error) => Err(error.clone()),
        InputBuilder::Text(template) => {
            let filled = params.iter().fold(template.clone(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), &python_text(value))
            });
            Ok(filled.into())
        }
        InputBuilder::Messages(false) => Err("an input builder that builds nothing".to_owned()),
        InputBuilder::Messages(true) => {
            let messages = params.iter();
            let messages = messages.map(|(name, value)| format!("{name}: {}", python_text(value)));
            Ok(messages.map(Item::user).collect::<Vec<Item>>().into())
        }
    }
}

/// A value as Python prints it in a text.
fn python_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn extract(
    extractor: &Extractor,
    ctx: &ToolContext<CaseContext>,
    result: &RunResult<CaseContext>,
) -> Result<ToolOutput, String> {
    let items = result.new_items();
    Ok(match extractor {
        Extractor::LastToolOutput => {
            let output = items.iter().rev().find_map(|item| match item.kind() {
                RunItemKind::ToolCallOutput { output } => Some(output.clone()),
                _ => None,
            });
            output.unwrap_or_default().into()
        }
        Extractor::Messages => {
            let messages = items
                .iter()
                .filter(|item| matches!(item.kind(), RunItemKind::MessageOutput))
                .filter_map(|item| Some(item.item().text()?.into_owned()));
            messages.collect::<Vec<String>>().join(" / ").into()
        }
        Extractor::LastAgent => result.last_agent().name().into(),
        Extractor::Invocation => {
            let (tool, call_id) = (ctx.tool(), ctx.call_id());
            format!("{tool} {call_id} {}", ctx.arguments()).into()
        }
        Extractor::Prefix(prefix) => format!("{prefix}{}", result.final_text()).into(),
        Extractor::Fails(error) => return Err(error.clone()),
    })
}

fn listen(
    ctx: &ToolContext<CaseContext>,
    event: &StreamEvent,
    fails: bool,
) -> Result<(), &'static str> {
    if let Some(name) = event_name(event) {
        let heard = format!("{}: {name}", event.agent);
        ctx.heard(ctx.call_id(), heard.into());
    }
    if fails {
        return Err("the listener fails");
    }
    Ok(())
}
