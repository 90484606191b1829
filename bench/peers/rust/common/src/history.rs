//! The conversation that runs begin with, as `bench history` wrote it.

use serde_json::Value;

use crate::Failed;

/// Something that was said or done.
#[derive(Debug, Clone)]
pub enum Past {
    /// By the user.
    User(String),
    /// By the model.
    Assistant(String),
    /// A call of a tool.
    Call {
        /// Which call.
        id: String,
        /// Of which tool.
        name: String,
        /// With what.
        arguments: String,
    },
    /// What a call gave.
    Output {
        /// Which call.
        id: String,
        /// What it gave.
        text: String,
    },
}

/// The JSON of so many items.
fn text(items: usize) -> Result<String, Failed> {
    let folder = std::env::var("BENCH_HISTORIES")?;
    Ok(std::fs::read_to_string(format!(
        "{folder}/history-{items}.json"
    ))?)
}

/// So many items; none where that is 0.
pub fn history(items: usize) -> Result<Vec<Past>, Failed> {
    if items == 0 {
        return Ok(Vec::new());
    }
    let values: Vec<Value> = serde_json::from_str(&text(items)?)?;
    values.iter().map(past).collect()
}

fn past(item: &Value) -> Result<Past, Failed> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let content = match &item["content"] {
        Value::Array(parts) => text(&parts[0]["text"]),
        whole => text(whole),
    };
    Ok(match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => Past::Call {
            id: text(&item["call_id"]),
            name: text(&item["name"]),
            arguments: text(&item["arguments"]),
        },
        (Some("function_call_output"), _) => Past::Output {
            id: text(&item["call_id"]),
            text: text(&item["output"]),
        },
        (_, Some("user")) => Past::User(content),
        (_, Some("assistant")) => Past::Assistant(content),
        _ => return Err(format!("an item of an unknown kind: {item}").into()),
    })
}
