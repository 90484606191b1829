//! `POST /v1/chat/completions`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Map, Value, json};
use switchboard_core::Item;

use super::input::{
    align, chat_items, is_temporary, messages, new_conversation, outputs, waiting_outputs,
};
use super::output::OutputEvents;
use super::responses::{flag, next_events, text};
use super::settings::{choose_tools, client_tools, model_settings};
use super::{find_model, now};
use crate::api::KEEP_ALIVE;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::{JsonBody, header_text};
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{Caller, Message, MessageOptions, Service};
use crate::team::ServedTeam;

/// The headers that name the conversation: of Open WebUI, and for any client.
const CONVERSATION_HEADERS: [&str; 2] = ["x-openwebui-chat-id", "x-conversation-id"];

pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Response, ServiceError> {
    let model = text(&body, "model")?.ok_or_else(|| ServiceError::invalid("model is missing"))?;
    let (team, agent) = find_model(&service, &caller, model)?;
    refuse_what_cannot_be_done(&body)?;
    let (items, instructions) = chat_items(body.get("messages").unwrap_or(&Value::Null))?;
    let tools = client_tools(body.get("tools"))?;
    let choice = body.get("tool_choice").unwrap_or(&Value::Null);
    let (offered, tool_choice) = choose_tools(choice, tools)?;
    let effort = text(&body, "reasoning_effort")?;
    let mut settings = model_settings(&body, &["max_tokens", "max_completion_tokens"], effort)?;
    settings.tool_choice = tool_choice;
    let is_streamed = flag(&body, "stream")?.unwrap_or(false);
    let stream_options = body.get("stream_options").unwrap_or(&Value::Null);
    let has_usage = stream_options["include_usage"] == true;

    let options = MessageOptions {
        client_tools: offered,
        settings,
        instructions: instructions.map(Arc::from),
        ..MessageOptions::default()
    };
    let given = CONVERSATION_HEADERS
        .iter()
        .find_map(|name| header_text(&headers, name));
    let (run, conversation) = if is_task(&items) {
        (
            start_task(&service, &caller, &team, agent, items, options)?,
            "".into(),
        )
    } else {
        start(&service, &caller, &team, agent, given, items, options).await?
    };
    let id = random_id("chatcmpl")?.replacen('_', "-", 1);
    let response = json!({
        "id": id, "switchboard": {"conversation": &*conversation, "agent": null},
    });
    let completion = Completion {
        id,
        model: model.to_owned(),
        created: now(),
        events: OutputEvents::new(team.clone(), conversation, response),
        has_usage,
    };
    if is_streamed {
        return Ok(completion.stream(&run));
    }
    completion.answer(&run).await
}

/// Begins the run of a message.
async fn start(
    service: &Service,
    caller: &Caller,
    team: &ServedTeam,
    agent: Option<Arc<str>>,
    given: Option<&str>,
    items: Vec<Item>,
    mut options: MessageOptions,
) -> Result<(Arc<RunRecord>, Arc<str>), ServiceError> {
    let (conversation, items, waiting): (Arc<str>, _, _) = match given {
        Some(id) => {
            let items = align(&service.conversation(caller, id)?, items).await?;
            let waiting = (outputs(&items), messages(&items));
            (id.into(), items, Some(waiting))
        }
        None => match waiting_outputs(&items) {
            Some(waiting) => (
                waiting.conversation,
                items,
                Some((waiting.outputs, waiting.added)),
            ),
            None => (new_conversation(false)?, items, None),
        },
    };
    options.is_temporary = is_temporary(&conversation);
    if let Some((outputs, added)) = waiting
        && !outputs.is_empty()
    {
        let resumed = MessageOptions {
            client_tools: options.client_tools.clone(),
            settings: options.settings.clone(),
            instructions: options.instructions.clone(),
            is_temporary: options.is_temporary,
            added,
            ..MessageOptions::default()
        };
        if let Some(run) = service
            .give_outputs(caller, &conversation, outputs, resumed)
            .await?
        {
            return Ok((run, conversation));
        }
    }
    let message = Message {
        team: team.clone(),
        agent,
        conversation: Some(conversation.clone()),
        input: items.into(),
        options,
    };
    Ok((service.send(caller, message)?, conversation))
}

/// Lets the model answer alone, without a conversation, tools and handoffs.
fn start_task(
    service: &Service,
    caller: &Caller,
    team: &ServedTeam,
    agent: Option<Arc<str>>,
    items: Vec<Item>,
    options: MessageOptions,
) -> Result<Arc<RunRecord>, ServiceError> {
    service.send(
        caller,
        Message {
            team: team.clone(),
            agent,
            conversation: None,
            input: items.into(),
            options: MessageOptions {
                without_tools: true,
                client_tools: crate::client_tools::ClientTools::default(),
                ..options
            },
        },
    )
}

/// Returns `true` for a request that is no message of a user: Open WebUI and LibreChat let the model write the
/// titles, tags and follow-up questions of chats.
fn is_task(items: &[Item]) -> bool {
    let [item] = items else {
        return false;
    };
    let text = item.text().unwrap_or_default();
    let text = text.trim_start();
    let is_title = |text: &str| {
        text.contains("-word-or-less title for the conversation")
            || text.contains("5-word-or-less title for the following conversation")
    };
    text.starts_with("### Task:") || is_title(text)
}

/// A completion that is being written.
struct Completion {
    id: String,
    model: String,
    created: u64,
    events: OutputEvents,
    has_usage: bool,
}

impl Completion {
    /// Answers once the run has ended.
    async fn answer(mut self, run: &RunRecord) -> Result<Response, ServiceError> {
        let mut reader = run.log.clone().read_after(0);
        while next_events(&mut reader, &mut self.events).await.is_some() {}
        let response = self.events.response();
        if response["status"] == "failed" {
            let message = response["error"]["message"].as_str().unwrap_or_default();
            let error = ServiceError::new(ServiceErrorKind::Internal, message);
            let mut response = error.into_response();
            // Tools may have run: clients must not try again on their own.
            let should_retry = HeaderName::from_static("x-should-retry");
            response
                .headers_mut()
                .insert(should_retry, HeaderValue::from_static("false"));
            return Ok(response);
        }
        let output = response["output"].as_array().cloned().unwrap_or_default();
        let texts = output
            .iter()
            .filter_map(|item| item["content"][0]["text"].as_str());
        let mut texts: Vec<String> = texts.map(ToOwned::to_owned).collect();
        texts.extend(waiting_text(&response));
        let calls = output.iter().filter(|item| item["type"] == "function_call");
        let calls: Vec<Value> = calls.map(tool_call).collect();
        let content = texts.join("\n\n");
        let mut message = json!({
            "role": "assistant",
            "content": if content.is_empty() { Value::Null } else { content.into() },
            "refusal": null,
        });
        let has_calls = !calls.is_empty();
        if has_calls {
            message["tool_calls"] = Value::Array(calls);
        }
        let body = json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{"index": 0, "message": message, "logprobs": null,
                         "finish_reason": finish_reason(&response, has_calls)}],
            "usage": usage(&response),
            "switchboard": response["switchboard"],
        });
        Ok(Json(body).into_response())
    }

    /// Answers with chunks as they come.
    fn stream(self, run: &RunRecord) -> Response {
        let first = self.chunk(&json!({"role": "assistant", "content": ""}), Value::Null);
        let reader = run.log.clone().read_after(0);
        let state = (self, reader, vec![first].into_iter(), Progress::default());
        let chunks = stream::unfold(
            state,
            |(mut this, mut reader, mut waiting, mut progress)| async move {
                loop {
                    if let Some(chunk) = waiting.next() {
                        let event = Event::default().data(chunk);
                        return Some((
                            Ok::<_, Infallible>(event),
                            (this, reader, waiting, progress),
                        ));
                    }
                    let events = next_events(&mut reader, &mut this.events).await?;
                    let chunks = events
                        .iter()
                        .flat_map(|event| this.chunks(event, &mut progress));
                    waiting = chunks.collect::<Vec<_>>().into_iter();
                }
            },
        );
        Sse::new(chunks)
            .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
            .into_response()
    }

    fn chunk(&self, delta: &Value, finish_reason: Value) -> String {
        let mut chunk = self.envelope();
        chunk["choices"] =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]);
        if self.has_usage {
            chunk["usage"] = Value::Null;
        }
        chunk.to_string()
    }

    fn envelope(&self) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created,
               "model": self.model})
    }

    /// The chunks for an event of the response.
    fn chunks(&self, event: &Value, progress: &mut Progress) -> Vec<String> {
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => {
                let mut text = event["delta"].as_str().unwrap_or_default().to_owned();
                if progress
                    .last_message
                    .is_some_and(|last| event["output_index"] != last)
                {
                    text.insert_str(0, "\n\n");
                }
                progress.last_message = event["output_index"].as_u64();
                vec![self.chunk(&json!({"content": text}), Value::Null)]
            }
            "response.output_item.added" if event["item"]["type"] == "message" => {
                // Who is speaking, for clients that want to know.
                let mut chunk = self.envelope();
                chunk["choices"] = json!([]);
                chunk["switchboard"] = json!({"agent": event["item"]["agent"]});
                if progress.agent == event["item"]["agent"] {
                    return Vec::new();
                }
                progress.agent = event["item"]["agent"].clone();
                vec![chunk.to_string()]
            }
            "response.output_item.done" if event["item"]["type"] == "function_call" => {
                let mut call = tool_call(&event["item"]);
                call["index"] = progress.calls.into();
                progress.calls += 1;
                vec![self.chunk(&json!({"tool_calls": [call]}), Value::Null)]
            }
            "response.failed" => {
                let message = &event["response"]["error"]["message"];
                let error = json!({"error": {"message": message, "type": "server_error", "param": null,
                                             "code": "server_error"}});
                vec![error.to_string()]
            }
            "response.completed" | "response.incomplete" => {
                let response = &event["response"];
                let waiting = waiting_text(response).map(|text| {
                    let separator = if progress.last_message.is_some() {
                        "\n\n"
                    } else {
                        ""
                    };
                    self.chunk(
                        &json!({"content": format!("{separator}{text}")}),
                        Value::Null,
                    )
                });
                let mut chunks: Vec<String> = waiting.into_iter().collect();
                let reason = finish_reason(response, progress.calls > 0);
                chunks.push(self.chunk(&json!({}), reason.into()));
                if self.has_usage {
                    let mut chunk = self.envelope();
                    chunk["choices"] = json!([]);
                    chunk["usage"] = usage(response);
                    chunk["switchboard"] = response["switchboard"].clone();
                    chunks.push(chunk.to_string());
                }
                chunks.push("[DONE]".to_owned());
                chunks
            }
            _ => Vec::new(),
        }
    }
}

/// The parts of a stream that were sent so far.
#[derive(Default)]
struct Progress {
    last_message: Option<u64>,
    agent: Value,
    calls: u64,
}

/// The text for a user whose message waits for a person, as a chat has no other place for it.
fn waiting_text(response: &Value) -> Option<String> {
    let waiting = response["switchboard"]["waiting"].as_array()?;
    let names = waiting
        .iter()
        .map(|waiting| match waiting["kind"].as_str() {
            Some("person") => waiting["agent"].as_str().unwrap_or_default(),
            _ => waiting["tool"].as_str().unwrap_or_default(),
        });
    let names: Vec<&str> = names.collect();
    if names.is_empty() || response["status"] != "incomplete" {
        return None;
    }
    Some(format!("(Waiting for a person: {}.)", names.join(", ")))
}

fn tool_call(item: &Value) -> Value {
    json!({"id": item["call_id"], "type": "function",
           "function": {"name": item["name"], "arguments": item["arguments"]}})
}

fn finish_reason(response: &Value, has_calls: bool) -> &'static str {
    match response["status"].as_str() {
        _ if has_calls => "tool_calls",
        Some("incomplete") if response["incomplete_details"]["reason"] == "max_output_tokens" => {
            "length"
        }
        _ => "stop",
    }
}

fn usage(response: &Value) -> Value {
    let usage = &response["usage"];
    json!({
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": usage["input_tokens_details"],
        "completion_tokens_details": usage["output_tokens_details"],
    })
}

/// Refuses requests whose answer would not be what they ask for.
fn refuse_what_cannot_be_done(body: &Map<String, Value>) -> Result<(), ServiceError> {
    let is_one = |n: &Value| n.is_null() || *n == 1;
    if body.get("n").is_some_and(|n| !is_one(n)) {
        return Err(ServiceError::invalid("n is 1: a team gives one answer"));
    }
    let format = body
        .get("response_format")
        .map_or(&Value::Null, |format| &format["type"]);
    if !format.is_null() && format != "text" {
        return Err(ServiceError::invalid(
            "the form of an answer is set by the agents of the team, not by response_format",
        ));
    }
    if body
        .get("functions")
        .is_some_and(|functions| !functions.is_null())
    {
        return Err(ServiceError::invalid(
            "functions are not possible any more; send tools",
        ));
    }
    Ok(())
}
