//! The input history of runs, as `bench history` printed it.

use serde_json::Value;

use crate::Failed;

/// An item of the history.
#[derive(Debug, Clone)]
pub enum HistoryItem {
    /// A user message.
    User(String),
    /// An assistant message.
    Assistant(String),
    /// A tool call.
    Call {
        /// The call ID.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments as JSON.
        arguments: String,
    },
    /// The output of a tool call.
    Output {
        /// The call ID.
        id: String,
        /// The output.
        text: String,
    },
}

/// Reads the JSON of this many items.
fn read_json(items: usize) -> Result<String, Failed> {
    let folder = std::env::var("BENCH_HISTORIES")?;
    Ok(std::fs::read_to_string(format!(
        "{folder}/history-{items}.json"
    ))?)
}

/// Returns a history of this many items, which may be 0.
pub fn history(items: usize) -> Result<Vec<HistoryItem>, Failed> {
    if items == 0 {
        return Ok(Vec::new());
    }
    let values: Vec<Value> = serde_json::from_str(&read_json(items)?)?;
    values.iter().map(parse_item).collect()
}

fn parse_item(item: &Value) -> Result<HistoryItem, Failed> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let content = match &item["content"] {
        Value::Array(parts) => text(&parts[0]["text"]),
        whole => text(whole),
    };
    Ok(match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => HistoryItem::Call {
            id: text(&item["call_id"]),
            name: text(&item["name"]),
            arguments: text(&item["arguments"]),
        },
        (Some("function_call_output"), _) => HistoryItem::Output {
            id: text(&item["call_id"]),
            text: text(&item["output"]),
        },
        (_, Some("user")) => HistoryItem::User(content),
        (_, Some("assistant")) => HistoryItem::Assistant(content),
        _ => return Err(format!("an item of an unknown kind: {item}").into()),
    })
}
