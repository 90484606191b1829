//! The body of a request.

use serde_json::{Value, json};
use switchboard_core::ModelRequest;
use switchboard_core::model::ServerState;

use super::ResponsesModel;
use super::input_sanitizer::InputSanitizer;
use crate::wire::model_error::ModelError;
use crate::wire::payload::{Payload, write_unchanged};
use crate::wire::request_body::{RequestBody, object};

/// The body of a request.
///
/// # Errors
/// If the conversation holds an item that the API rejects and that cannot be repaired.
pub(super) fn body(
    model: &ResponsesModel,
    request: &ModelRequest,
    streams: bool,
) -> Result<Payload, ModelError> {
    let settings = &*request.settings;
    let sanitizer = InputSanitizer {
        origin: &model.origin,
        takes_reasoning: !model.client.is_openai() || is_reasoning_model(&model.name),
        is_stateless: settings.store == Some(false),
    };
    let (items, length) = sanitizer.sanitize(&request.input)?;
    let has_prompt = request.prompt.is_some() || settings.extra_body.contains_key("prompt");
    if items.is_empty() && request.server.is_none() && !has_prompt {
        return Err(ModelError::unsupported(
            "there is nothing to send: the conversation is empty, or all of its items are for other models",
        ));
    }
    let overrides = [model.client.body_fields(), &settings.extra_body];
    let mut body = RequestBody::new(&items, write_unchanged, overrides);
    body.field("model", &*model.name);
    if let Some(instructions) = request.full_instructions().filter(|text| !text.is_empty()) {
        body.field("instructions", &*instructions);
    }
    body.optional("prompt", request.prompt.as_deref());
    body.written("input", |payload| {
        payload.begin_list();
        if !items.is_empty() {
            payload.add_items(0, items.len(), length);
        }
        payload.json.push(b']');
    });
    body.tools(
        request,
        |mut function| {
            function.r#type = Some("function");
            function
        },
        |name| tool_choice(request, name),
    );
    match &request.server {
        Some(ServerState::Conversation(id)) => body.field("conversation", id),
        Some(ServerState::PreviousResponse(id)) => body.field("previous_response_id", id),
        _ => {}
    }
    write_settings(&mut body, request, sanitizer.takes_reasoning);
    body.prompt_cache_key(request, model.client.is_openai());
    body.optional("text", text(request).as_ref());
    if streams {
        body.field("stream", &true);
    }
    Ok(body.build())
}

/// The choice of a function, or of a tool that the provider runs.
fn tool_choice(request: &ModelRequest, name: &str) -> Value {
    if let Some(tool) = request.tools.iter().find(|tool| &*tool.name == name) {
        let kind = if tool.takes_text() {
            "custom"
        } else {
            "function"
        };
        return json!({"type": kind, "name": name});
    }
    let mut hosted = request.hosted_tools.iter();
    let hosted = hosted.find(|tool| tool.name() == name);
    match hosted.map(|tool| (tool.kind(), tool.config())) {
        Some((kind @ "mcp", config)) => {
            json!({"type": kind, "server_label": config["server_label"]})
        }
        Some((kind, _)) => json!({"type": kind}),
        None => json!({"type": "function", "name": name}),
    }
}

fn write_settings(body: &mut RequestBody<'_>, request: &ModelRequest, takes_reasoning: bool) {
    let settings = &*request.settings;
    body.number("temperature", settings.temperature);
    body.number("top_p", settings.top_p);
    body.optional("max_output_tokens", settings.max_tokens.as_ref());
    body.optional("truncation", settings.truncation.as_ref());
    body.optional("top_logprobs", settings.top_logprobs.as_ref());
    body.optional("store", settings.store.as_ref());
    if let Some(reasoning) = &settings.reasoning {
        let fields = [
            ("effort", reasoning.effort.as_ref()),
            ("summary", reasoning.summary.as_ref()),
        ];
        body.field("reasoning", &object(fields));
    }
    if !settings.metadata.is_empty() {
        body.field("metadata", &settings.metadata);
    }
    let mut include = Vec::new();
    if settings.top_logprobs.is_some() {
        include.push("message.output_text.logprobs");
    }
    if settings.store == Some(false) && takes_reasoning {
        // Without it, the reasoning of this answer cannot be sent back.
        include.push("reasoning.encrypted_content");
    }
    for tool in &*request.hosted_tools {
        let fields = tool.included().iter().map(|field| &**field);
        let new: Vec<&str> = fields.filter(|field| !include.contains(field)).collect();
        include.extend(new);
    }
    if !include.is_empty() {
        body.field("include", &include);
    }
}

/// The `text` field: the format and the verbosity of the answer.
fn text(request: &ModelRequest) -> Option<Value> {
    if request.output.is_none() && request.settings.verbosity.is_none() {
        return None;
    }
    let format = request.output.as_ref().map(|output| {
        json!({
            "type": "json_schema",
            "name": "final_output",
            "schema": output.schema(),
            "strict": output.is_strict(),
        })
    });
    let verbosity = request.settings.verbosity.as_deref().map(Value::from);
    Some(object([("format", format), ("verbosity", verbosity)]))
}

/// Returns `true` if OpenAI's model of this name reasons. Others reject reasoning in their input.
fn is_reasoning_model(name: &str) -> bool {
    // A fine-tuned model does what its base model does: `ft:<base>:<organisation>::<id>`.
    let base = name.strip_prefix("ft:").unwrap_or(name);
    let base = base.split(':').next().unwrap_or(base);
    let is_chat_model = ["gpt-3", "gpt-4", "chatgpt-"]
        .iter()
        .any(|start| base.starts_with(start));
    !is_chat_model && !base.ends_with("-chat-latest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use serde_json::json;
    use std::sync::Arc;
    use switchboard_core::{Item, ModelSettings};

    #[test]
    fn reasoning_models_are_known_by_name() {
        for name in [
            "gpt-5.2",
            "gpt-5-mini-2025-08-07",
            "o3",
            "o4-mini",
            "ft:o4-mini-2025-04-16:acme:gpt-4-like:id",
            "codex-mini-latest",
        ] {
            assert!(is_reasoning_model(name), "{name}");
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
            assert!(!is_reasoning_model(name), "{name}");
        }
    }

    #[test]
    fn only_openai_is_sent_a_cache_key_that_was_not_set() {
        let openai = Endpoint::openai().key("k").connect().unwrap();
        let other = Endpoint::at("http://localhost:1/v1").connect().unwrap();
        let mut request = ModelRequest::new(vec![Item::user("Hello")]);
        request.server = Some(ServerState::Conversation("conv_1".into()));
        let named = ModelSettings {
            prompt_cache_key: Some("mine".into()),
            ..ModelSettings::default()
        };
        let mut off = ModelSettings::default();
        off.extra_body
            .insert("prompt_cache_key".to_owned(), Value::Null);
        let made = &*request.prompt_cache_key().unwrap();
        assert!(made.starts_with("switchboard:conversation:"), "{made}");
        for (client, settings, key) in [
            (&openai, ModelSettings::default(), json!(made)),
            (&openai, named.clone(), json!("mine")),
            (&openai, off, Value::Null),
            (&other, ModelSettings::default(), Value::Null),
            (&other, named, json!("mine")),
        ] {
            request.settings = Arc::new(settings);
            let body = body(&ResponsesModel::new(client, "gpt-5.2"), &request, false);
            let body: Value = serde_json::from_slice(&body.unwrap().into_json()).unwrap();
            assert_eq!(body["prompt_cache_key"], key);
        }
    }

    #[test]
    fn encrypted_reasoning_is_requested_only_from_reasoning_models() {
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
            let body: Value = serde_json::from_slice(&body.unwrap().into_json()).unwrap();
            assert_eq!(body["include"], include, "{name}");
        }
    }
}
