//! Settings and tools of a request.

use serde_json::Value;
use switchboard_core::ModelSettings;
use switchboard_core::model::{Reasoning, ToolChoice};

use crate::client_tools::{ClientTool, ClientTools};
use crate::error::ServiceError;

/// Reads the tools of a request: flat as in Responses, or under `function` as in Chat Completions.
pub(super) fn client_tools(tools: Option<&Value>) -> Result<Vec<ClientTool>, ServiceError> {
    let tools = match tools {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(ServiceError::invalid("tools is not a list")),
    };
    tools.iter().map(client_tool).collect()
}

fn client_tool(tool: &Value) -> Result<ClientTool, ServiceError> {
    if tool["type"] != "function" {
        let message = format!(
            "tools of the type {} are not possible, only functions: a team has its own tools",
            tool["type"]
        );
        return Err(ServiceError::invalid(message));
    }
    let function = tool.get("function").unwrap_or(tool);
    let name = function["name"].as_str().unwrap_or_default();
    let description = function["description"].as_str().unwrap_or_default();
    ClientTool::new(name, description, &function["parameters"])
}

/// Reads which tool must be called. With `none` the model is not offered the client's tools; those of the team
/// stay.
pub(super) fn choose_tools(
    choice: &Value,
    tools: Vec<ClientTool>,
) -> Result<(ClientTools, Option<ToolChoice>), ServiceError> {
    let named = choice["name"]
        .as_str()
        .or(choice["function"]["name"].as_str());
    let choice = match (choice.as_str(), named) {
        (None | Some("auto"), None) => None,
        (Some("none"), _) => return Ok((ClientTools::default(), None)),
        (Some("required"), _) => Some(ToolChoice::Required),
        (_, Some(name)) if tools.iter().any(|tool| *tool.name == *name) => {
            Some(ToolChoice::Named(name.into()))
        }
        _ => {
            return Err(ServiceError::invalid(
                "tool_choice names no tool of the request",
            ));
        }
    };
    Ok((ClientTools::of_request(tools)?, choice))
}

/// Reads the settings that both protocols have.
pub(super) fn model_settings(
    body: &serde_json::Map<String, Value>,
    max_tokens: &[&str],
    effort: Option<&str>,
) -> Result<ModelSettings, ServiceError> {
    let number = |name: &str, low: f64, high: f64| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(ServiceError::invalid(format!(
                "{name} is a number from {low} to {high}"
            ))),
        },
    };
    let mut settings = ModelSettings {
        temperature: number("temperature", 0.0, 2.0)?,
        top_p: number("top_p", 0.0, 1.0)?,
        presence_penalty: number("presence_penalty", -2.0, 2.0)?,
        frequency_penalty: number("frequency_penalty", -2.0, 2.0)?,
        ..ModelSettings::default()
    };
    for name in max_tokens {
        match body.get(*name) {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_u64() {
                Some(tokens) if tokens > 0 => settings.max_tokens = Some(tokens),
                _ => return Err(ServiceError::invalid(format!("{name} is a number above 0"))),
            },
        }
    }
    match body.get("parallel_tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(parallel)) => settings.parallel_tool_calls = Some(*parallel),
        Some(_) => {
            return Err(ServiceError::invalid(
                "parallel_tool_calls is true or false",
            ));
        }
    }
    settings.reasoning = effort.map(|effort| Reasoning {
        effort: Some(effort.into()),
        ..Reasoning::default()
    });
    Ok(settings)
}
