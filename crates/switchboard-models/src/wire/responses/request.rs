//! What is sent.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::{ModelRequest, ModelSettings, ServerState, ToolChoice};

use super::ResponsesModel;
use crate::wire::body::{Body, Offered, offered};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::InputSanitizer;
use crate::wire::payload::{self, Draft, Payload};

/// A tool or a handoff in the protocol's form.
#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a RawValue,
    strict: bool,
}

/// The body of a request.
///
/// # Errors
/// Where the conversation holds what the API refuses and nobody can mend.
pub(super) fn body(
    model: &ResponsesModel,
    request: &ModelRequest,
    streams: bool,
) -> Result<Payload, ModelError> {
    let settings = &*request.settings;
    let taker = InputSanitizer {
        origin: &model.origin,
        takes_reasoning: !model.client.is_openai() || thinks(&model.name),
        is_stateless: settings.store == Some(false),
    };
    let items = taker.take(&request.input)?;
    let has_prompt = settings.extra_body.contains_key("prompt");
    if items.is_empty() && request.server.is_none() && !has_prompt {
        return Err(ModelError::new(
            ModelErrorKind::Unsupported,
            "there is nothing to send: the conversation is empty, or all of it is for other models",
        ));
    }
    let mut body = Body::around(
        &items,
        payload::as_they_are,
        [model.client.body_fields(), &settings.extra_body],
    );
    body.field("model", &*model.name);
    let instructions = request.full_instructions();
    body.optional(
        "instructions",
        instructions.as_deref().filter(|text| !text.is_empty()),
    );
    body.written("input", Draft::all);
    let tools = functions(request);
    if !tools.is_empty() {
        body.field("tools", &tools);
        body.optional(
            "tool_choice",
            settings.tool_choice.as_ref().map(tool_choice).as_ref(),
        );
        body.optional("parallel_tool_calls", settings.parallel_tool_calls.as_ref());
    }
    match &request.server {
        Some(ServerState::Conversation(id)) => body.field("conversation", id),
        Some(ServerState::PreviousResponse(id)) => body.field("previous_response_id", id),
        _ => {}
    }
    write_settings(&mut body, settings, taker.takes_reasoning);
    body.optional("text", text(request).as_ref());
    if streams {
        body.field("stream", &true);
    }
    Ok(body.finish())
}

fn functions<'a>(request: &'a ModelRequest) -> Vec<Function<'a>> {
    let declared = |offered: Offered<'a>| Function {
        r#type: "function",
        name: offered.name,
        description: offered.description,
        parameters: offered.parameters,
        strict: offered.strict,
    };
    offered(request).map(declared).collect()
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}),
    }
}

fn write_settings(body: &mut Body<'_>, settings: &ModelSettings, takes_reasoning: bool) {
    body.number("temperature", settings.temperature);
    body.number("top_p", settings.top_p);
    body.optional("max_output_tokens", settings.max_tokens.as_ref());
    body.optional("truncation", settings.truncation.as_ref());
    body.optional("top_logprobs", settings.top_logprobs.as_ref());
    body.optional("store", settings.store.as_ref());
    if let Some(reasoning) = &settings.reasoning {
        let mut told = serde_json::Map::new();
        let fields = [
            ("effort", &reasoning.effort),
            ("summary", &reasoning.summary),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                told.insert(name.to_owned(), json!(value));
            }
        }
        body.field("reasoning", &told);
    }
    if !settings.metadata.is_empty() {
        body.field("metadata", &settings.metadata);
    }
    let mut include = Vec::new();
    if settings.top_logprobs.is_some() {
        include.push("message.output_text.logprobs");
    }
    if settings.store == Some(false) && takes_reasoning {
        // Without it, the reasoning of this answer could not be sent back.
        include.push("reasoning.encrypted_content");
    }
    if !include.is_empty() {
        body.field("include", &include);
    }
}

/// The form of the answer.
fn text(request: &ModelRequest) -> Option<Value> {
    let mut text = serde_json::Map::new();
    if let Some(output) = &request.output {
        let format = json!({
            "type": "json_schema",
            "name": "final_output",
            "schema": output.schema(),
            "strict": true,
        });
        text.insert("format".to_owned(), format);
    }
    if let Some(verbosity) = &request.settings.verbosity {
        text.insert("verbosity".to_owned(), json!(verbosity));
    }
    (!text.is_empty()).then_some(Value::Object(text))
}

/// Whether OpenAI's model of this name reasons. Others refuse reasoning in their input.
fn thinks(name: &str) -> bool {
    // A tuned model does what the one below it does: `ft:<base>:<organisation>::<id>`.
    let base = name.strip_prefix("ft:").unwrap_or(name);
    let base = base.split(':').next().unwrap_or(base);
    let is_talker = ["gpt-3", "gpt-4", "chatgpt-"]
        .iter()
        .any(|start| base.starts_with(start));
    !is_talker && !base.ends_with("-chat-latest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use serde_json::json;
    use std::sync::Arc;
    use switchboard_core::Item;

    #[test]
    fn a_name_tells_whether_a_model_reasons() {
        for name in [
            "gpt-5.2",
            "gpt-5-mini-2025-08-07",
            "o3",
            "o4-mini",
            "ft:o4-mini-2025-04-16:acme:gpt-4-like:id",
            "codex-mini-latest",
        ] {
            assert!(thinks(name), "{name}");
        }
        for name in [
            "gpt-3.5-turbo",
            "gpt-4o",
            "gpt-4.1-mini",
            "chatgpt-4o-latest",
            "gpt-5-chat-latest",
            "gpt-5.2-chat-latest",
            "ft:gpt-4o-mini-2024-07-18:acme::id",
            "ft:gpt-4.1:acme:o3:id",
        ] {
            assert!(!thinks(name), "{name}");
        }
    }

    #[test]
    fn reasoning_is_asked_for_only_where_there_is_some() {
        let client = Endpoint::openai().key("k").connect().unwrap();
        let mut request = ModelRequest::new(vec![Item::user("Hello")]);
        request.settings = Arc::new(ModelSettings {
            store: Some(false),
            ..ModelSettings::default()
        });
        for (name, include) in [
            ("gpt-5.2", json!(["reasoning.encrypted_content"])),
            ("gpt-4.1", Value::Null),
        ] {
            let body = body(&ResponsesModel::new(&client, name), &request, false);
            let body: Value = serde_json::from_slice(&body.unwrap().json()).unwrap();
            assert_eq!(body["include"], include, "{name}");
        }
    }
}
