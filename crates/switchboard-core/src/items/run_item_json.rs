//! Run items and inputs in the JSON form of the reference (the OpenAI Agents SDK),
//! for programs that exchange data with it.
//!
//! A run item has the form that it has in the reference's stored runs:
//! `{"type": "handoff_output_item", "raw_item": {..}, "agent": {"name": ".."}, ..}`.

use std::sync::Arc;

use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::items::{Input, Item, RunItem, RunItemKind, item_table};
use crate::tool::{ToolInfo, ToolOrigin};

/// The JSON form of an agent.
#[derive(Default, Serialize, Deserialize)]
struct AgentJson {
    name: Arc<str>,
}

impl AgentJson {
    fn of(name: &str) -> Self {
        Self { name: name.into() }
    }
}

/// The JSON form of a run item, as far as it is read.
#[derive(Deserialize)]
struct RunItemJson {
    #[serde(rename = "type")]
    kind: String,
    raw_item: Item,
    agent: AgentJson,
    #[serde(default, with = "crate::json::on_its_own")]
    output: Value,
    #[serde(default, with = "crate::json::on_its_own::optional")]
    custom_data: Option<Value>,
    title: Option<Arc<str>>,
    description: Option<Arc<str>>,
    /// Kept as a value: an origin that this version does not know is left out.
    #[serde(default)]
    tool_origin: Value,
    source_agent: Option<AgentJson>,
    target_agent: Option<AgentJson>,
}

impl Serialize for RunItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(index) = item_table::index_of_run_item(self) {
            return index.serialize(serializer);
        }
        let mut json = serializer.serialize_map(None)?;
        json.serialize_entry("type", self.kind().as_str())?;
        json.serialize_entry("raw_item", self.item())?;
        json.serialize_entry("agent", &AgentJson::of(self.agent()))?;
        match self.kind() {
            RunItemKind::ToolCallOutput { output } => {
                json.serialize_entry("output", output)?;
                if let Some(data) = self.data() {
                    json.serialize_entry("custom_data", data)?;
                }
            }
            RunItemKind::HandoffOutput { from, to } => {
                json.serialize_entry("source_agent", &AgentJson::of(from))?;
                json.serialize_entry("target_agent", &AgentJson::of(to))?;
            }
            RunItemKind::ToolCall => {
                if let Some(name) = self.item().name() {
                    json.serialize_entry("tool_name", &name)?;
                }
                if let Some(tool) = self.tool() {
                    if let Some(description) = &tool.description {
                        json.serialize_entry("description", description)?;
                    }
                    if let Some(title) = &tool.title {
                        json.serialize_entry("title", title)?;
                    }
                    json.serialize_entry("tool_origin", &tool.origin)?;
                }
            }
            _ => {}
        }
        json.end()
    }
}

impl<'de> Deserialize<'de> for RunItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if item_table::is_reading() {
            let index = usize::deserialize(deserializer)?;
            return item_table::run_item_at(index).map_err(serde::de::Error::custom);
        }
        let read = RunItemJson::deserialize(deserializer)?;
        let kind = match read.kind.as_str() {
            "handoff_output_item" => RunItemKind::HandoffOutput {
                from: read.source_agent.unwrap_or_default().name,
                to: read.target_agent.unwrap_or_default().name,
            },
            "tool_call_output_item" => RunItemKind::ToolCallOutput {
                output: read.output,
            },
            name => kind_without_data(name).unwrap_or(RunItemKind::Other),
        };
        let origin = ToolOrigin::deserialize(read.tool_origin).ok();
        let tool = origin.map(|origin| {
            let description = read.description.unwrap_or_default();
            Arc::new(ToolInfo::new(origin, read.title, &description))
        });
        let made = Self::new(kind, read.agent.name, read.raw_item);
        Ok(made.with_data(read.custom_data).with_tool(tool))
    }
}

/// Serializes text as a string and items as a list.
/// The kind of this name. `None` if it is unknown, or has data.
fn kind_without_data(name: &str) -> Option<RunItemKind> {
    let name: StrDeserializer<'_, ValueError> = name.strip_suffix("_item")?.into_deserializer();
    RunItemKind::deserialize(name).ok()
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Items(items) => items.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handoff::HandoffInputData;

    #[test]
    fn run_items_have_the_references_form_and_round_trip() {
        let output = json!({"a": 1});
        let (from, to) = ("A".into(), "B".into());
        let items = [
            (
                RunItemKind::ToolCall,
                Item::function_call("c", "lookup", "{}"),
            ),
            (
                RunItemKind::ToolCallOutput { output },
                Item::function_call_output("c", r#"{"a":1}"#),
            ),
            (
                RunItemKind::HandoffOutput { from, to },
                Item::function_call_output("h", "{}"),
            ),
            (
                RunItemKind::Other,
                Item::from_json(r#"{"type":"x"}"#).unwrap(),
            ),
        ];
        let items = items.map(|(kind, item)| RunItem::new(kind, "A", item));
        let written = serde_json::to_value(&items).unwrap();
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
        let text = serde_json::to_string(&items).unwrap();
        let read: Vec<RunItem> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, items);
    }

    #[test]
    fn handoff_data_has_the_references_fields() {
        let message = Item::output_message("m", "x");
        let new = vec![RunItem::new(RunItemKind::MessageOutput, "A", message)];
        let context = crate::context::RunContext::new(());
        let data = HandoffInputData::new("Hi", vec![], new, context);
        let written = serde_json::to_value(&data).unwrap();
        assert_eq!(written["input_history"], "Hi");
        assert_eq!(written["new_items"][0]["type"], "message_output_item");
        assert_eq!(written["input_items"], Value::Null);
    }
}
