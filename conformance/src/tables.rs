//! The tables: one function, one row, one check.

use serde_json::{Value, json};
use switchboard_core::{
    Agent, HandoffInputData, HistoryMarkers, IntoHandoff as _, Item, RunContext, RunItem,
    RunItemKind, RunItems, filters, nest_handoff_history, schema, transfer_message,
};

use crate::compare;
use crate::corpus::said;
use crate::scenario::input_of;
use crate::written;

/// Agent name → tool name, description, transfer message.
pub(crate) fn tool_names(row: &Value) -> Result<(), String> {
    let name = row["agent"].as_str().ok_or("the row has no agent")?;
    let agent: Agent = Agent::new(name).handoff_description("D.");
    let handoff = (&agent).into_handoff();
    let got = json!({
        "agent": name,
        "tool_name": handoff.tool_name(),
        "tool_description": handoff.tool_description(),
        "transfer_message": transfer_message(agent.name()),
    });
    said(compare::data(row, &got))
}

/// Schema → strict schema, or an error.
pub(crate) fn strict_schema(row: &Value) -> Result<(), String> {
    match (row.get("strict"), schema::strict(row["schema"].clone())) {
        (Some(expected), Ok(got)) => said(compare::plain(expected, &got)),
        (Some(expected), Err(error)) => Err(format!("expected {expected}, got the error {error}")),
        (None, Err(_)) => Ok(()),
        (None, Ok(got)) => Err(format!("expected an error, got {got}")),
    }
}

/// Handoff data → nested history, and → history without tools.
pub(crate) fn handoff_input_data(row: &Value) -> Result<(), String> {
    let data = HandoffInputData::new(
        input_of(&row["input_history"])?,
        run_items(&row["pre_handoff_items"])?,
        run_items(&row["new_items"])?,
        RunContext::new(()),
    );
    let nested = nest_handoff_history(data.clone(), None, &HistoryMarkers::default());
    said(compare::data(
        &row["nested"],
        &without_agents(written::handoff_data(&nested)),
    ))
    .map_err(|difference| format!("nested: {difference}"))?;
    let filtered = runtime()?.block_on(filters::remove_all_tools().apply(data));
    let filtered = filtered.map_err(|error| error.to_string())?;
    let got = without_agents(written::handoff_data(&filtered));
    said(compare::data(&row["without_tools"], &got))
        .map_err(|difference| format!("without_tools: {difference}"))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.map_err(|error| error.to_string())
}

/// The tables leave out what an item's kind and agent add.
fn without_agents(mut data: Value) -> Value {
    for field in ["pre_handoff_items", "new_items", "input_items"] {
        for made in data[field].as_array_mut().into_iter().flatten() {
            *made = json!({"type": made["type"], "raw": made["raw"]});
        }
    }
    data
}

fn run_items(list: &Value) -> Result<RunItems, String> {
    let list = list.as_array().ok_or("run items must be a list")?;
    list.iter().map(run_item).collect()
}

fn run_item(made: &Value) -> Result<RunItem, String> {
    let kind = match made["type"].as_str().unwrap_or_default() {
        "message_output_item" => RunItemKind::MessageOutput,
        "handoff_call_item" => RunItemKind::HandoffCall,
        "handoff_output_item" => RunItemKind::HandoffOutput {
            source: "Source".into(),
            target: "Target".into(),
        },
        "tool_call_item" => RunItemKind::ToolCall,
        "tool_call_output_item" => RunItemKind::ToolCallOutput {
            output: made["raw"]["output"].clone(),
        },
        "reasoning_item" => RunItemKind::Reasoning,
        "mcp_list_tools_item" => RunItemKind::McpListTools,
        "mcp_approval_request_item" => RunItemKind::McpApprovalRequest,
        "mcp_approval_response_item" => RunItemKind::McpApprovalResponse,
        "tool_search_call_item" => RunItemKind::ToolSearchCall,
        "tool_search_output_item" => RunItemKind::ToolSearchOutput,
        "compaction_item" => RunItemKind::Compaction,
        other => return Err(format!("a run item of the unknown type {other:?}")),
    };
    let item = Item::from_value(&made["raw"]).map_err(|error| error.to_string())?;
    Ok(RunItem::new(kind, "Source", item))
}
