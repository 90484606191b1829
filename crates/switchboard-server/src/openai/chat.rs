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

use super::input::{align, chat_items, given_outputs};
use super::output::OutputEvents;
use super::place::{Origin, Place, lock_origin};
use super::responses::{flag, next_events, text};
use super::settings::{choose_tools, client_tools, model_settings};
use super::{find_model, now};
use crate::api::KEEP_ALIVE;
use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::{JsonBody, header_text};
use crate::idempotency::IdempotencyKey;
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{Caller, GivenOutputs, Message, MessageOptions, OutputsGiven, Service};
use crate::team::ServedTeam;

/// The header with the conversation that Open WebUI sends.
const OPEN_WEBUI_HEADER: &str = "x-openwebui-chat-id";

/// The headers that name the conversation: of Open WebUI, and for any client.
const CONVERSATION_HEADERS: [&str; 2] = [OPEN_WEBUI_HEADER, "x-conversation-id"];

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
    let named = CONVERSATION_HEADERS
        .iter()
        .find_map(|name| header_text(&headers, name));
    let request = ChatRequest {
        team: team.clone(),
        agent,
        items,
        options,
    };
    let (run, conversation) = if is_task(&request.items, &headers) {
        (start_task(&service, &caller, request).await?, "".into())
    } else if let Some(id) = named {
        let run = start_in(&service, &caller, id, request, &body).await?;
        (run, id.into())
    } else {
        start_alone(&service, &caller, request).await?
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

/// A message of a client, and what it has sent of the conversation.
struct ChatRequest {
    team: ServedTeam,
    agent: Option<Arc<str>>,
    items: Vec<Item>,
    options: MessageOptions,
}

impl ChatRequest {
    /// Begins the run in a conversation: with the outputs of calls that wait, or with new input.
    async fn start(
        mut self,
        service: &Service,
        caller: &Caller,
        id: Arc<str>,
        given: GivenOutputs,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        if !given.outputs.is_empty() {
            let given = service.give_outputs(caller, &id, given, self.options);
            match given.await? {
                OutputsGiven::Resumed(run) => return Ok(run),
                OutputsGiven::NotWaiting(options) => self.options = *options,
            }
        }
        service.send(caller, self.into_message(Some(id))).await
    }

    fn into_message(self, conversation: Option<Arc<str>>) -> Message {
        Message {
            team: self.team,
            agent: self.agent,
            conversation,
            input: self.items.into(),
            options: self.options,
        }
    }
}

/// Begins the run of a message to a conversation that the client has named.
async fn start_in(
    service: &Service,
    caller: &Caller,
    id: &str,
    mut request: ChatRequest,
    body: &Map<String, Value>,
) -> Result<Arc<RunRecord>, ServiceError> {
    let conversation = service.conversation(caller, id)?;
    let body = serde_json::to_string(body).unwrap_or_default();
    // The same request while its run is under way is a client that tries again; after it, another answer is asked for.
    let key = IdempotencyKey::of_request("chat", &[id, &body]).while_running();
    if let Some(run) = service.run_with_key(caller, &key)? {
        return Ok(run);
    }
    let _lock = service.lock_conversation(caller, id).await?;
    if let Some(run) = service.run_with_key(caller, &key)? {
        return Ok(run);
    }
    service.wait_for_runs(caller, id).await?;
    request.options.admission = Some(service.admit(caller)?);
    request.options.idempotency_key = Some(key);
    request.items = align(&conversation, request.items).await?;
    let given = given_outputs(&request.items);
    request.start(service, caller, id.into(), given).await
}

/// Begins the run of a message of a client that keeps the conversation itself.
async fn start_alone(
    service: &Service,
    caller: &Caller,
    mut request: ChatRequest,
) -> Result<(Arc<RunRecord>, Arc<str>), ServiceError> {
    let origin = Origin::of_history(&request.items);
    let _lock = lock_origin(service, caller, &origin).await?;
    request.options.admission = Some(service.admit(caller)?);
    let place = Place::of(service, caller, origin, &request.items, false).await?;
    request.options.is_temporary = place.is_temporary;
    request.items = place.input.unwrap_or(request.items);
    let id = place.conversation;
    let run = request.start(service, caller, id.clone(), place.given);
    Ok((run.await?, id))
}

/// Lets the model answer alone, without a conversation, tools and handoffs.
async fn start_task(
    service: &Service,
    caller: &Caller,
    mut request: ChatRequest,
) -> Result<Arc<RunRecord>, ServiceError> {
    request.options.without_tools = true;
    request.options.client_tools = ClientTools::default();
    service.send(caller, request.into_message(None)).await
}

/// Returns `true` for a request that is no message of a user: Open WebUI and LibreChat let the model write the
/// titles, tags and follow-up questions of chats.
fn is_task(items: &[Item], headers: &HeaderMap) -> bool {
    let [item] = items else {
        return false;
    };
    let text = item.text().unwrap_or_default();
    let text = text.trim_start();
    let is_title = |text: &str| {
        text.contains("-word-or-less title for the conversation")
            || text.contains("5-word-or-less title for the following conversation")
    };
    // Users of other clients may write such a heading themselves.
    let is_open_webui = headers.contains_key(OPEN_WEBUI_HEADER);
    (is_open_webui && text.starts_with("### Task:")) || is_title(text)
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
    match response["incomplete_details"]["reason"].as_str() {
        _ if has_calls => "tool_calls",
        Some("max_output_tokens") => "length",
        Some("content_filter") => "content_filter",
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
