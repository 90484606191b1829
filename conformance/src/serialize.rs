//! Serializes the outcome of a run in the format of the corpus.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::items::{Items, RunItem, RunItemKind, RunItems};
use switchboard_core::model::{ModelSettings, RequestUsage, ServerState, ToolChoice, Usage};
use switchboard_core::output::OutputType;
use switchboard_core::trace::{Span, SpanData, SpanId};
use switchboard_core::{Error, ErrorKind, Input, Item, ModelRequest};

use crate::case::Record;

/// The reason that guardrails on the calls of tools give for tripping.
pub(crate) const TOOL_INPUT: &str = "input";

pub(crate) fn items(items: &Items) -> Value {
    items.iter().map(raw).collect()
}

fn raw(item: &Item) -> Value {
    item.to_value().unwrap_or_default()
}

pub(crate) fn input(input: &Input) -> Value {
    match input {
        Input::Text(text) => Value::from(&**text),
        Input::Items(list) => items(list),
    }
}

pub(crate) fn run_items(items: &RunItems) -> Value {
    items.iter().map(run_item).collect()
}

fn run_item(item: &RunItem) -> Value {
    let mut json = json!({
        "type": item.kind().as_str(),
        "agent": item.agent(),
        "raw": raw(item.item()),
    });
    match item.kind() {
        RunItemKind::HandoffOutput { from, to } => {
            json["source_agent"] = Value::from(&**from);
            json["target_agent"] = Value::from(&**to);
        }
        RunItemKind::ToolCallOutput { output } => json["output"] = output.clone(),
        _ => {}
    }
    json
}

pub(crate) fn handoff_data<C>(data: &HandoffInputData<C>) -> Value {
    json!({
        "input_history": input(data.input_history()),
        "pre_handoff_items": run_items(data.pre_handoff_items()),
        "new_items": run_items(data.new_items()),
        "input_items": data.input_items().map(run_items),
    })
}

pub(crate) fn schema(schema: &RawValue) -> Value {
    serde_json::from_str(schema.get()).unwrap_or_default()
}

pub(crate) fn model_call(request: &ModelRequest) -> Value {
    json!({
        "system": request.instructions.as_deref(),
        "input": items(&request.input),
        "tools": request.tools.iter().map(|tool| json!({
            "name": &*tool.name,
            "description": &*tool.description,
        })).collect::<Value>(),
        "handoffs": request.handoffs.iter().map(|handoff| json!({
            "tool_name": &*handoff.tool_name,
            "tool_description": &*handoff.tool_description,
            "input_json_schema": schema(&handoff.input_json_schema),
            "strict": handoff.strict,
        })).collect::<Value>(),
    })
}

/// Serializes a model call with the parts that a case asks for.
pub(crate) fn recorded_call(request: &ModelRequest, records: &[Record]) -> Value {
    let mut json = model_call(request);
    for record in records {
        match record {
            Record::Settings => json["settings"] = settings(&request.settings),
            Record::OutputSchema => {
                json["output"] = request.output.as_ref().map_or(Value::Null, output_type);
            }
            Record::Server => match &request.server {
                Some(ServerState::Conversation(id)) => json["conversation_id"] = json!(&**id),
                Some(ServerState::PreviousResponse(id)) => {
                    json["previous_response_id"] = json!(&**id);
                }
                _ => {}
            },
            Record::ToolSchemas => {
                for (index, tool) in request.tools.iter().enumerate() {
                    json["tools"][index]["parameters"] = schema(&tool.parameters);
                }
            }
            Record::Usage | Record::Context => {}
        }
    }
    json
}

fn settings(settings: &ModelSettings) -> Value {
    let tool_choice = settings.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "required",
        ToolChoice::None => "none",
        ToolChoice::Named(tool) => tool,
    });
    json!({
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "tool_choice": tool_choice,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "max_tokens": settings.max_tokens,
    })
}

fn output_type(output: &OutputType) -> Value {
    json!({
        "name": output.name(),
        "strict": output.is_strict(),
        "json_schema": schema(output.schema()),
    })
}

/// The tokens of a run, and of each of its requests.
pub(crate) fn usage(total: &Usage, requests: &[RequestUsage]) -> Value {
    let mut json = tokens(total);
    json["requests"] = total.requests.into();
    json["entries"] = requests.iter().map(|entry| tokens(&entry.usage)).collect();
    json
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input": usage.input_tokens,
        "cached": usage.cached_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.reasoning_tokens,
    })
}

/// The reference's name of an error.
pub(crate) fn error_type(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::ModelBehavior => "ModelBehaviorError",
        ErrorKind::Configuration => "UserError",
        ErrorKind::MaxTurns => "MaxTurnsExceeded",
        ErrorKind::InputGuardrail => "InputGuardrailTripwireTriggered",
        ErrorKind::OutputGuardrail => "OutputGuardrailTripwireTriggered",
        ErrorKind::ModelRefusal => "ModelRefusalError",
        // The guardrails of the runner say what they checked.
        ErrorKind::ToolGuardrail => match error.guardrail().map(|result| &result.info) {
            Some(info) if info == TOOL_INPUT => "ToolInputGuardrailTripwireTriggered",
            _ => "ToolOutputGuardrailTripwireTriggered",
        },
        ErrorKind::UserCode | ErrorKind::Model | ErrorKind::Tool => "RuntimeError",
        _ => "another kind of error",
    }
}

/// Serializes spans as trees, without the kinds that the corpus leaves out.
pub(crate) fn spans(spans: &[Span]) -> Value {
    let by_id: HashMap<SpanId, &Span> = spans.iter().map(|span| (span.id, span)).collect();
    let kept: Vec<&Span> = spans.iter().filter(|span| is_kept(span)).collect();
    trees(None, &kept, &by_id)
}

fn trees(parent: Option<SpanId>, kept: &[&Span], by_id: &HashMap<SpanId, &Span>) -> Value {
    kept.iter()
        .filter(|span| kept_parent(span, by_id) == parent)
        .map(|span| {
            let mut json = span_fields(span);
            json["children"] = trees(Some(span.id), kept, by_id);
            json
        })
        .collect()
}

fn is_kept(span: &Span) -> bool {
    !matches!(
        span.data,
        SpanData::Task { .. } | SpanData::Turn { .. } | SpanData::Generation { .. }
    )
}

fn kept_parent(span: &Span, by_id: &HashMap<SpanId, &Span>) -> Option<SpanId> {
    let mut parent = by_id.get(&span.parent?).copied()?;
    while !is_kept(parent) {
        parent = by_id.get(&parent.parent?).copied()?;
    }
    Some(parent.id)
}

fn span_fields(span: &Span) -> Value {
    let mut json = match &span.data {
        SpanData::Agent {
            name,
            handoffs,
            tools,
            output_type,
            ..
        } => json!({
            "type": "agent", "name": &**name, "output_type": output_type,
            "handoffs": names(handoffs), "tools": names(tools),
        }),
        SpanData::Handoff { from, to, .. } => {
            json!({"type": "handoff", "from_agent": &**from, "to_agent": to.as_deref()})
        }
        SpanData::Function { name, .. } => json!({"type": "function", "name": &**name}),
        SpanData::Guardrail {
            name, triggered, ..
        } => {
            json!({"type": "guardrail", "name": &**name, "triggered": triggered})
        }
        other => json!({"type": other.kind()}),
    };
    if let Some(error) = &span.error {
        json["error"] = Value::from(error.message.as_str());
        if let Some(agents) = error.data.get("requested_agents") {
            json["requested_agents"] = agents.clone();
        }
    }
    json
}

fn names(names: &[std::sync::Arc<str>]) -> Value {
    names.iter().map(|name| Value::from(&**name)).collect()
}
