//! The request of AG-UI 1.0: `RunAgentInput`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::tool::ToolOutput;

use super::interrupt::ResumeEntry;
use crate::client_tools::{ClientTool, ClientTools};
use crate::error::ServiceError;
use crate::openai::text_of;

/// The longest identifier of a run or a message, in bytes.
const MAX_ID: usize = 256;

/// The request for a run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunAgentInput {
    pub(super) thread_id: Arc<str>,
    pub(super) run_id: Arc<str>,
    #[serde(default)]
    pub(super) parent_run_id: Option<Arc<str>>,
    #[serde(default)]
    protocol_version: Option<String>,
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    tools: Option<Vec<FrontendTool>>,
    #[serde(default)]
    context: Option<Vec<ContextEntry>>,
    #[serde(default)]
    state: Value,
    #[serde(default)]
    forwarded_props: Value,
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
}

/// A message of the client's list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) id: Arc<str>,
    pub(super) role: Role,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    tool_call_id: Option<Arc<str>>,
    #[serde(default)]
    error: Option<String>,
    /// The subagent that has made the message.
    #[serde(default)]
    subagent_run_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
    System,
    Developer,
    Tool,
    Reasoning,
    Activity,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    id: String,
    function: FunctionCall,
}

#[derive(Debug, Deserialize)]
struct FunctionCall {
    name: String,
    arguments: String,
}

/// A tool that the client runs.
#[derive(Debug, Deserialize)]
struct FrontendTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

/// A piece of information of the application for the agents.
#[derive(Debug, Deserialize)]
struct ContextEntry {
    description: String,
    value: Value,
}

/// Properties for this service.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnProperties {
    /// The agent that a new conversation begins with.
    #[serde(default)]
    agent: Option<Arc<str>>,
}

impl RunAgentInput {
    /// Checks what can be checked without the conversation.
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        if let Some(version) = &self.protocol_version
            && version.split('.').next() != Some("1")
        {
            return Err(ServiceError::invalid(format!(
                "protocolVersion is {version:?}; this service speaks AG-UI 1.0"
            )));
        }
        let ids = self.messages.iter().map(|message| &message.id);
        let mut ids = ids.chain([&self.run_id]).chain(&self.parent_run_id);
        if ids.any(|id| id.is_empty() || id.len() > MAX_ID) {
            return Err(ServiceError::invalid(
                "the identifiers of runs and messages have 1 to 256 bytes",
            ));
        }
        Ok(())
    }

    /// Removes the messages of subagents, which a client has in its list with the others: they are no part of the
    /// conversation, and the call that they ran in has its result.
    pub(super) fn remove_subagent_messages(&mut self) {
        self.messages
            .retain(|message| message.subagent_run_id.is_none());
    }

    /// The agent that a new conversation begins with, if the client names one.
    pub(super) fn agent(&self) -> Result<Option<Arc<str>>, ServiceError> {
        let Some(own) = self.forwarded_props.get("switchboard") else {
            return Ok(None);
        };
        let own: OwnProperties = serde_json::from_value(own.clone()).map_err(|error| {
            ServiceError::invalid(format!(
                "forwardedProps.switchboard cannot be used: {error}"
            ))
        })?;
        Ok(own.agent)
    }

    /// The tools that the client runs.
    pub(super) fn client_tools(&self) -> Result<ClientTools, ServiceError> {
        let tools = self.tools.iter().flatten();
        let tools = tools
            .map(|tool| ClientTool::new(&tool.name, &tool.description, &tool.parameters))
            .collect::<Result<Vec<_>, _>>()?;
        ClientTools::of_request(tools)
    }

    /// The words for the model that follow each agent's instructions: messages of the system, the context and
    /// the state of the application.
    pub(super) fn instructions(&self) -> Option<Arc<str>> {
        let mut parts: Vec<String> = Vec::new();
        let is_system = |message: &&Message| matches!(message.role, Role::System | Role::Developer);
        for message in self.messages.iter().filter(is_system) {
            parts.push(text_of(&message.content));
        }
        for entry in self.context.iter().flatten() {
            let value = match &entry.value {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            parts.push(format!(
                "Context of the application ({}): {value}",
                entry.description
            ));
        }
        let is_empty = match &self.state {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_empty {
            parts.push(format!(
                "State of the application, as JSON, which you can read and not change: {}",
                self.state
            ));
        }
        parts.retain(|part| !part.trim().is_empty());
        (!parts.is_empty()).then(|| parts.join("\n\n").into())
    }

    /// The results of the client's tools among these messages.
    pub(super) fn outputs(messages: &[Message]) -> Vec<(Arc<str>, ToolOutput)> {
        let outputs = messages.iter().filter_map(|message| {
            let call_id = message.tool_call_id.clone()?;
            let output = match &message.error {
                Some(error) => format!("The tool failed: {error}"),
                None => text_of(&message.content),
            };
            (message.role == Role::Tool).then_some((call_id, ToolOutput::Text(output)))
        });
        outputs.collect()
    }
}

impl Message {
    /// The message as items of a conversation. Messages of the system are instructions, and reasoning and
    /// activities are no items.
    pub(super) fn items(&self) -> Result<Vec<Item>, ServiceError> {
        Ok(match self.role {
            Role::User => vec![self.user_item()?],
            Role::Assistant => {
                let text = text_of(&self.content);
                let said = (!text.is_empty()).then(|| Item::assistant(text));
                let calls = self.tool_calls.iter().flatten().map(|call| {
                    Item::function_call(&call.id, &call.function.name, &call.function.arguments)
                });
                said.into_iter().chain(calls).collect()
            }
            Role::Tool => {
                let call_id = self.tool_call_id.as_deref().ok_or_else(|| {
                    ServiceError::invalid("a message of a tool has no toolCallId")
                })?;
                vec![Item::function_call_output(call_id, &text_of(&self.content))]
            }
            Role::System | Role::Developer | Role::Reasoning | Role::Activity => Vec::new(),
        })
    }

    fn user_item(&self) -> Result<Item, ServiceError> {
        let content = match &self.content {
            Value::String(text) if !text.is_empty() => Value::String(text.clone()),
            Value::Array(parts) if !parts.is_empty() => {
                let parts = parts.iter().map(user_part);
                Value::Array(parts.collect::<Result<_, _>>()?)
            }
            _ => {
                return Err(ServiceError::invalid(
                    "the content of a user's message is a text or a list of parts, and not empty",
                ));
            }
        };
        let item = Item::from_value(&json!({"role": "user", "content": content}));
        item.map_err(|error| ServiceError::invalid(error.to_string()))
    }
}

/// A part of a user's message in the form of Responses.
fn user_part(part: &Value) -> Result<Value, ServiceError> {
    let kind = part["type"].as_str().unwrap_or_default();
    if kind == "text" {
        return Ok(json!({"type": "input_text", "text": part["text"]}));
    }
    // `binary` is the form before version 1.
    let (kind, source) = if kind == "binary" {
        let is_image = part["mimeType"]
            .as_str()
            .is_some_and(|mime| mime.starts_with("image/"));
        let source = match (&part["url"], &part["data"]) {
            (Value::String(url), _) => json!({"type": "url", "value": url}),
            (_, data) => json!({"type": "data", "value": data, "mimeType": part["mimeType"]}),
        };
        (if is_image { "image" } else { "document" }, source)
    } else {
        (kind, part["source"].clone())
    };
    let value = source["value"].as_str();
    let mime = source["mimeType"].as_str();
    let url = match (source["type"].as_str(), value, mime) {
        (Some("url"), Some(url), _) => url.to_owned(),
        (Some("data"), Some(data), Some(mime)) => format!("data:{mime};base64,{data}"),
        _ => {
            return Err(ServiceError::invalid(
                "a part of a message has a source: a url with its value, or data with its value and mimeType",
            ));
        }
    };
    match kind {
        "image" => Ok(json!({"type": "input_image", "image_url": url, "detail": "auto"})),
        "document" if url.starts_with("data:") => {
            let name = part["filename"].as_str();
            let name = name.or(part["metadata"]["filename"].as_str());
            Ok(
                json!({"type": "input_file", "filename": name.unwrap_or("document"), "file_data": url}),
            )
        }
        "document" => Ok(json!({"type": "input_file", "file_url": url})),
        _ => Err(ServiceError::invalid(format!(
            "parts of a message are text, image or document, not {kind:?}"
        ))),
    }
}
