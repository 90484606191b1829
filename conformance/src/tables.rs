//! Checks of the tables: each row is one call of one function.

use serde_json::{Value, json};
use switchboard_core::handoff::{
    HandoffInputData, HistoryMarkers, IntoHandoff as _, nest_handoff_history, transfer_message,
};
use switchboard_core::items::{RunItem, RunItemKind, RunItems};
use switchboard_core::{Agent, Item, RunContext, filters, schema};

use crate::compare;
use crate::corpus::check;
use crate::scenario::parse_input;
use crate::serialize;

/// Checks the tool name, description and transfer message that an agent's name gives.
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
    check(compare::data(row, &got))
}

/// Checks the strict form of a schema, or that there is none.
pub(crate) fn strict_schema(row: &Value) -> Result<(), String> {
    match (row.get("strict"), schema::strict(row["schema"].clone())) {
        (Some(expected), Ok(got)) => check(compare::plain(expected, &got)),
        (Some(expected), Err(error)) => Err(format!("expected {expected}, got the error {error}")),
        (None, Err(_)) => Ok(()),
        (None, Ok(got)) => Err(format!("expected an error, got {got}")),
    }
}

/// Checks the nested history of handoff data, and the history without tools.
pub(crate) fn handoff_input_data(row: &Value) -> Result<(), String> {
    let data = HandoffInputData::new(
        parse_input(&row["input_history"])?,
        run_items(&row["pre_handoff_items"])?,
        run_items(&row["new_items"])?,
        RunContext::new(()),
    );
    let nested = nest_handoff_history(data.clone(), None, &HistoryMarkers::default());
    check_data(row, "nested", &nested)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let filtered = runtime.block_on(filters::remove_all_tools().apply(data));
    check_data(
        row,
        "without_tools",
        &filtered.map_err(|error| error.to_string())?,
    )
}

fn check_data(row: &Value, field: &str, got: &HandoffInputData) -> Result<(), String> {
    let mut got = serialize::handoff_data(got);
    // The tables leave out what an item's kind and agent add.
    for field in ["pre_handoff_items", "new_items", "input_items"] {
        for item in got[field].as_array_mut().into_iter().flatten() {
            *item = json!({"type": item["type"], "raw": item["raw"]});
        }
    }
    check(compare::data(&row[field], &got)).map_err(|difference| format!("{field}: {difference}"))
}

fn run_items(list: &Value) -> Result<RunItems, String> {
    let list = list.as_array().ok_or("run items must be a list")?;
    list.iter().map(run_item).collect()
}

fn run_item(item: &Value) -> Result<RunItem, String> {
    let kind = match item["type"].as_str().unwrap_or_default() {
        "message_output_item" => RunItemKind::MessageOutput,
        "handoff_call_item" => RunItemKind::HandoffCall,
        "handoff_output_item" => RunItemKind::HandoffOutput {
            from: "Source".into(),
            to: "Target".into(),
        },
        "tool_call_item" => RunItemKind::ToolCall,
        "tool_call_output_item" => RunItemKind::ToolCallOutput {
            output: item["raw"]["output"].clone(),
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
    let raw = Item::from_value(&item["raw"]).map_err(|error| error.to_string())?;
    Ok(RunItem::new(kind, "Source", raw))
}
