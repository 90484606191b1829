//! Run items, handoff data and results as the JSON the reference writes, for who keeps or shows
//! them beside it.
//!
//! A run item is what the reference's stored runs hold:
//! `{"type": "handoff_output_item", "raw_item": {..}, "agent": {"name": ".."}, ..}`.

use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::handoff::HandoffInputData;
use crate::items::{Input, Item, RunItem, RunItemKind};
use crate::output::FinalOutput;
use crate::run::RunResult;

/// An agent in the reference's JSON.
#[derive(Serialize, Deserialize)]
struct Named {
    name: Arc<str>,
}

impl Named {
    fn of(name: &str) -> Self {
        Self { name: name.into() }
    }
}

/// A run item in the reference's JSON.
#[derive(Serialize, Deserialize)]
struct Exchanged {
    #[serde(rename = "type")]
    kind: String,
    raw_item: Item,
    agent: Named,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_agent: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_agent: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
}

impl Serialize for RunItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut exchanged = Exchanged {
            kind: self.kind().as_str().to_owned(),
            raw_item: self.item().clone(),
            agent: Named::of(self.agent()),
            output: None,
            source_agent: None,
            target_agent: None,
            tool_name: None,
        };
        match self.kind() {
            RunItemKind::ToolCallOutput { output } => {
                let raw = serde_json::value::to_raw_value(output);
                exchanged.output = Some(raw.map_err(serde::ser::Error::custom)?);
            }
            RunItemKind::HandoffOutput { source, target } => {
                exchanged.source_agent = Some(Named::of(source));
                exchanged.target_agent = Some(Named::of(target));
            }
            RunItemKind::ToolCall => {
                exchanged.tool_name = self.item().name().map(|name| name.into_owned());
            }
            _ => {}
        }
        exchanged.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Exchanged::deserialize(deserializer)?;
        let name = |named: Option<Named>| named.map_or_else(|| "".into(), |named| named.name);
        let kind = match read.kind.as_str() {
            "message_output_item" => RunItemKind::MessageOutput,
            "handoff_call_item" => RunItemKind::HandoffCall,
            "handoff_output_item" => RunItemKind::HandoffOutput {
                source: name(read.source_agent),
                target: name(read.target_agent),
            },
            "tool_call_item" => RunItemKind::ToolCall,
            "tool_call_output_item" => RunItemKind::ToolCallOutput {
                output: read.output.map_or(Value::Null, |raw| {
                    let value = serde_json::from_str(raw.get());
                    value.unwrap_or_else(|_| Value::String(raw.get().to_owned()))
                }),
            },
            "reasoning_item" => RunItemKind::Reasoning,
            "tool_search_call_item" => RunItemKind::ToolSearchCall,
            "tool_search_output_item" => RunItemKind::ToolSearchOutput,
            "mcp_list_tools_item" => RunItemKind::McpListTools,
            "mcp_approval_request_item" => RunItemKind::McpApprovalRequest,
            "mcp_approval_response_item" => RunItemKind::McpApprovalResponse,
            "compaction_item" => RunItemKind::Compaction,
            _ => RunItemKind::Other,
        };
        Ok(Self::new(kind, read.agent.name, read.raw_item))
    }
}

/// Text as text, items as a list.
impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Items(items) => items.serialize(serializer),
        }
    }
}

impl<C> Serialize for HandoffInputData<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut data = serializer.serialize_struct("HandoffInputData", 4)?;
        data.serialize_field("input_history", self.input_history())?;
        data.serialize_field("pre_handoff_items", self.pre_handoff_items())?;
        data.serialize_field("new_items", self.new_items())?;
        data.serialize_field("input_items", &self.input_items())?;
        data.end()
    }
}

impl<C> Serialize for RunResult<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result = serializer.serialize_struct("RunResult", 6)?;
        result.serialize_field("input", self.input())?;
        result.serialize_field("new_items", self.new_items())?;
        result.serialize_field("raw_responses", self.raw_responses())?;
        let output = self.final_output().map(FinalOutput::to_value);
        result.serialize_field("final_output", &output)?;
        result.serialize_field("last_agent", &Named::of(self.last_agent().name()))?;
        result.serialize_field("usage", self.usage())?;
        result.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn run_items_have_the_references_form_and_read_back() {
        let call = Item::function_call("c", "lookup", "{}");
        let made = [
            RunItem::new(RunItemKind::ToolCall, "A", call),
            RunItem::new(
                RunItemKind::ToolCallOutput {
                    output: json!({"a": 1}),
                },
                "A",
                Item::function_call_output("c", r#"{"a":1}"#),
            ),
            RunItem::new(
                RunItemKind::HandoffOutput {
                    source: "A".into(),
                    target: "B".into(),
                },
                "A",
                Item::function_call_output("h", "{}"),
            ),
            RunItem::new(
                RunItemKind::Other,
                "A",
                Item::from_json(r#"{"type":"x"}"#).unwrap(),
            ),
        ];
        let written = serde_json::to_value(&made).unwrap();
        assert_eq!(
            written[0],
            json!({
                "type": "tool_call_item",
                "raw_item": {"type": "function_call", "call_id": "c", "name": "lookup", "arguments": "{}"},
                "agent": {"name": "A"},
                "tool_name": "lookup",
            })
        );
        assert_eq!(written[1]["output"], json!({"a": 1}));
        assert_eq!(written[2]["target_agent"], json!({"name": "B"}));
        let text = serde_json::to_string(&made).unwrap();
        let read: Vec<RunItem> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, made);
    }

    #[test]
    fn handoff_data_has_the_references_fields() {
        let data = HandoffInputData::new(
            "Hi",
            vec![],
            vec![RunItem::new(
                RunItemKind::MessageOutput,
                "A",
                Item::output_message("m", "x"),
            )],
            crate::context::RunContext::new(()),
        );
        let written = serde_json::to_value(&data).unwrap();
        assert_eq!(written["input_history"], "Hi");
        assert_eq!(written["new_items"][0]["type"], "message_output_item");
        assert_eq!(written["input_items"], Value::Null);
    }
}
