//! The body of a request.

use serde::Serialize;
use serde_json::json;
use switchboard_core::{ModelRequest, ModelSettings};

use super::{ChatModel, copied_message, messages};
use crate::wire::model_error::ModelError;
use crate::wire::payload::Payload;
use crate::wire::request_body::{FunctionSpec, RequestBody};

/// A tool or a handoff in the form of the protocol.
#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: FunctionSpec<'a>,
}

/// The body of a request.
pub(super) fn body(
    model: &ChatModel,
    request: &ModelRequest,
    streams: bool,
) -> Result<Payload, ModelError> {
    if request.server.is_some() {
        return Err(ModelError::unsupported(
            "Chat Completions has no server-side conversations; use a ResponsesModel, or leave the \
             conversation and the previous response out",
        ));
    }
    if let Some(tool) = request.hosted_tools.first() {
        return Err(ModelError::unsupported(format!(
            "the tool \"{}\" is run by the provider, which Chat Completions cannot do; use a \
             ResponsesModel, or take the tool out",
            tool.name()
        )));
    }
    if let Some(tool) = request.tools.iter().find(|tool| tool.takes_text()) {
        return Err(ModelError::unsupported(format!(
            "the tool \"{}\" is a free-form tool; use a ResponsesModel, or give the tool a schema",
            tool.name
        )));
    }
    if request.prompt.is_some() {
        return Err(ModelError::unsupported(
            "Chat Completions has no stored prompts; use a ResponsesModel, or give the agent \
             instructions instead of a prompt",
        ));
    }
    let settings = &*request.settings;
    let is_openai = model.client.is_openai();
    let overrides = [model.client.body_fields(), &settings.extra_body];
    let mut body = RequestBody::new(&request.input, copied_message::write_message, overrides);
    body.field("model", &*model.name);
    let count = body.written("messages", |payload| {
        messages::write(payload, request, is_openai)
    })?;
    if count == 0 && !settings.extra_body.contains_key("messages") {
        return Err(ModelError::unsupported(
            "no item of the conversation can be sent over Chat Completions; begin it with a message \
             or give the agent instructions",
        ));
    }
    body.tools(
        request,
        |function| Tool {
            r#type: "function",
            function,
        },
        |name| json!({"type": "function", "function": {"name": name}}),
    );
    write_settings(&mut body, settings, is_openai);
    body.prompt_cache_key(request, model.client.is_openai());
    if let Some(output) = &request.output {
        let format = json!({
            "type": "json_schema",
            "json_schema": {
                "name": "final_output",
                "strict": output.is_strict(),
                "schema": output.schema(),
            },
        });
        body.field("response_format", &format);
    }
    if streams {
        body.field("stream", &true);
        body.field("stream_options", &json!({"include_usage": true}));
    }
    Ok(body.build())
}

fn write_settings(body: &mut RequestBody<'_>, settings: &ModelSettings, is_openai: bool) {
    // OpenAI's newer models reject the old name, and other servers do not know the new one.
    let max_tokens = if is_openai {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    body.optional(max_tokens, settings.max_tokens.as_ref());
    body.number("temperature", settings.temperature);
    body.number("top_p", settings.top_p);
    body.number("frequency_penalty", settings.frequency_penalty);
    body.number("presence_penalty", settings.presence_penalty);
    if let Some(reasoning) = &settings.reasoning {
        body.optional("reasoning_effort", reasoning.effort.as_ref());
    }
    body.optional("verbosity", settings.verbosity.as_ref());
    body.optional("store", settings.store.as_ref());
    if let Some(top) = &settings.top_logprobs {
        body.field("logprobs", &true);
        body.field("top_logprobs", top);
    }
    if !settings.metadata.is_empty() {
        body.field("metadata", &settings.metadata);
    }
}
