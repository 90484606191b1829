//! What is sent.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::{ModelRequest, ModelSettings, ServerState, ToolChoice};

use super::ResponsesModel;
use crate::wire::body::Body;
use crate::wire::history::Taker;

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
pub(super) fn body(model: &ResponsesModel, request: &ModelRequest, streams: bool) -> Bytes {
    let settings = &*request.settings;
    let mut body = Body::new([model.client.body_fields(), &settings.extra_body]);
    body.field("model", &*model.name);
    let instructions = request.full_instructions();
    body.optional(
        "instructions",
        instructions.as_deref().filter(|text| !text.is_empty()),
    );
    let taker = Taker {
        origin: &model.origin,
        takes_reasoning: !model.client.is_openai() || thinks(&model.name),
        is_stateless: settings.store == Some(false),
    };
    let items = taker.take(&request.input);
    body.list("input", items.iter().map(|item| item.as_json()));
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
    write_settings(&mut body, settings);
    body.optional("text", text(request).as_ref());
    if streams {
        body.field("stream", &true);
    }
    body.finish()
}

fn functions(request: &ModelRequest) -> Vec<Function<'_>> {
    let tools = request.tools.iter().map(|tool| Function {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        strict: tool.strict,
    });
    let handoffs = request.handoffs.iter().map(|handoff| Function {
        r#type: "function",
        name: &handoff.tool_name,
        description: &handoff.tool_description,
        parameters: &handoff.input_json_schema,
        strict: handoff.strict,
    });
    tools.chain(handoffs).collect()
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}),
    }
}

fn write_settings(body: &mut Body<'_>, settings: &ModelSettings) {
    body.optional("temperature", settings.temperature.as_ref());
    body.optional("top_p", settings.top_p.as_ref());
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
    if settings.store == Some(false) {
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
    let name = name.rsplit_once(':').map_or(name, |(_, last)| last);
    !["gpt-3", "gpt-4", "chatgpt-"]
        .iter()
        .any(|start| name.starts_with(start))
}
