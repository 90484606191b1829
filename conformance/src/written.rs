//! What a run did, in the corpus's own form.

use std::collections::HashMap;

use serde_json::{Value, json};
use switchboard_core::{
    ErrorKind, HandoffInputData, Input, Items, ModelRequest, RunItem, RunItemKind, RunItems, Span,
    SpanData,
};

pub(crate) fn items(items: &Items) -> Value {
    items.iter().map(raw).collect()
}

fn raw(item: &switchboard_core::Item) -> Value {
    item.to_value().unwrap_or_default()
}

pub(crate) fn input(input: &Input) -> Value {
    match input {
        Input::Text(text) => Value::from(&**text),
        Input::Items(list) => items(list),
    }
}

pub(crate) fn run_items(made: &RunItems) -> Value {
    made.iter().map(run_item).collect()
}

fn run_item(made: &RunItem) -> Value {
    let mut written = json!({
        "type": made.kind().as_str(),
        "agent": made.agent(),
        "raw": raw(made.item()),
    });
    match made.kind() {
        RunItemKind::HandoffOutput { source, target } => {
            written["source_agent"] = Value::from(&**source);
            written["target_agent"] = Value::from(&**target);
        }
        RunItemKind::ToolCallOutput { output } => written["output"] = output.clone(),
        _ => {}
    }
    written
}

pub(crate) fn handoff_data<C>(data: &HandoffInputData<C>) -> Value {
    json!({
        "input_history": input(data.input_history()),
        "pre_handoff_items": run_items(data.pre_handoff_items()),
        "new_items": run_items(data.new_items()),
        "input_items": data.input_items().map(run_items),
    })
}

pub(crate) fn model_call(request: &ModelRequest) -> Value {
    let schema = |schema: &serde_json::value::RawValue| {
        serde_json::from_str::<Value>(schema.get()).unwrap_or_default()
    };
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

pub(crate) fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ModelBehavior => "ModelBehaviorError",
        ErrorKind::Configuration => "UserError",
        ErrorKind::MaxTurns => "MaxTurnsExceeded",
        ErrorKind::InputGuardrail => "InputGuardrailTripwireTriggered",
        ErrorKind::OutputGuardrail => "OutputGuardrailTripwireTriggered",
        ErrorKind::ModelRefusal => "ModelRefusalError",
        ErrorKind::UserCode | ErrorKind::Model => "RuntimeError",
        _ => "another kind of error",
    }
}

/// Spans as trees, without the kinds the corpus leaves out.
pub(crate) fn spans(spans: &[Span]) -> Value {
    let by_id: HashMap<u64, &Span> = spans.iter().map(|span| (span.id, span)).collect();
    let kept: Vec<&Span> = spans.iter().filter(|span| is_kept(span)).collect();
    trees(None, &kept, &by_id)
}

fn trees(parent: Option<u64>, kept: &[&Span], by_id: &HashMap<u64, &Span>) -> Value {
    let children = kept
        .iter()
        .filter(|span| kept_parent(span, by_id) == parent);
    children
        .map(|span| {
            let mut written = span_fields(span);
            written["children"] = trees(Some(span.id), kept, by_id);
            written
        })
        .collect()
}

fn is_kept(span: &Span) -> bool {
    !matches!(
        span.data,
        SpanData::Turn { .. } | SpanData::Generation { .. }
    )
}

fn kept_parent(span: &Span, by_id: &HashMap<u64, &Span>) -> Option<u64> {
    let mut parent = by_id.get(&span.parent?).copied()?;
    while !is_kept(parent) {
        parent = by_id.get(&parent.parent?).copied()?;
    }
    Some(parent.id)
}

fn span_fields(span: &Span) -> Value {
    let mut written = match &span.data {
        SpanData::Agent {
            name,
            handoffs,
            tools,
            output_type,
        } => json!({
            "type": "agent", "name": &**name, "output_type": output_type,
            "handoffs": names(handoffs), "tools": names(tools),
        }),
        SpanData::Handoff {
            from_agent,
            to_agent,
            ..
        } => {
            json!({"type": "handoff", "from_agent": &**from_agent, "to_agent": to_agent.as_deref()})
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
        written["error"] = Value::from(error.message.as_str());
        if !error.requested_agents.is_empty() {
            written["requested_agents"] = names(&error.requested_agents);
        }
    }
    written
}

fn names(names: &[std::sync::Arc<str>]) -> Value {
    names.iter().map(|name| Value::from(&**name)).collect()
}
