//! Conversations of clients that keep their conversations themselves.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::conversation::{Conversations, Head};
use switchboard_server::{Limits, RecordingLimits};

use super::{chat, output_text};
use crate::support::{TestServer, answer, until, with_json};

/// The temporary conversation of a store, if there is one.
async fn temporary(store: &Conversations) -> Option<Head> {
    let heads = store.list(None).await.unwrap();
    heads.into_iter().find(|head| head.id.starts_with("temp_"))
}

#[tokio::test]
async fn a_temporary_conversation_is_not_shown_and_expires_though_its_process_is_killed() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    for (path, mut body) in [
        (
            "/v1/responses",
            json!({"model": "support", "input": "lookup slowly", "store": false}),
        ),
        (
            "/v1/chat/completions",
            chat(json!([{"role": "user", "content": "lookup slowly"}])),
        ),
    ] {
        body["stream"] = true.into();
        let request = with_json(client.request("POST", path), &body);
        let stream = client.open(request).await;
        // The first turn is stored, and the second one is under way.
        until(async || {
            temporary(&store)
                .await
                .is_some_and(|head| head.entries() > 0)
        })
        .await;
        let head = temporary(&store).await.unwrap();
        assert!(head.expires.is_some());
        let listed = client.get("/api/conversations").await.ok();
        assert_eq!(listed["conversations"], json!([]));
        let found = client.get("/api/search?q=lookup").await.ok();
        assert_eq!(found["found"], json!([]));

        server.model.gate.add_permits(1);
        let events = stream.rest().await;
        let text: String = events.iter().map(|event| event.data.as_str()).collect();
        assert!(text.contains("slowly."), "{text}");
        // Neither the conversation nor the events of its run are left.
        until(async || client.get("/api/runs").await.ok()["runs"] == json!([])).await;
        assert!(temporary(&store).await.is_none());
    }
}

#[tokio::test]
async fn the_events_of_a_response_that_is_not_stored_are_gone_with_it() {
    let server = TestServer::start().await;
    let client = &server.client;
    let body = json!({"model": "support", "input": "slow please", "store": false, "stream": true});
    let request = with_json(client.request("POST", "/v1/responses"), &body);
    let stream = client.open(request).await;
    let runs = async || client.get("/api/runs").await.ok()["runs"].clone();
    let run = runs().await[0]["id"].as_str().unwrap().to_owned();
    server.model.gate.add_permits(1);
    stream.rest().await;
    until(async || runs().await == json!([])).await;
    let events = client.get(&format!("/api/runs/{run}/events")).await;
    assert_eq!(events.status, 404, "{}", events.text);
}

#[tokio::test]
async fn a_temporary_conversation_that_waits_for_a_person_is_an_ordinary_one_that_expires() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let body = chat(json!([{"role": "user", "content": "refund my bill"}]));
    client.post("/v1/chat/completions", body).await.ok();
    let head = temporary(&store).await.unwrap();
    assert!(head.expires.is_some());
    let listed = client.get("/api/conversations").await.ok();
    assert_eq!(listed["conversations"][0]["id"], &*head.id);
    let waiting = client.get("/api/waiting").await.ok();
    let waiting = &waiting["waiting"][0];
    assert_eq!(waiting["conversation"], &*head.id, "{waiting}");
    let call = &waiting["calls"][0]["call_id"];
    let body = json!({"decisions": [{"call_id": call, "approve": true}]});
    let path = format!("/api/conversations/{}/decisions", head.id);
    let done = client.post(&path, body).await.ok();
    assert_eq!(done["status"], "completed");
}

#[tokio::test]
async fn a_temporary_conversation_goes_with_its_run_however_it_is_gone_on_with() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let create = async |body: Value| server.client.post("/v1/responses", body).await.ok();
    let body = json!({"model": "support", "input": "weather please", "store": false,
                      "tools": [super::weather()]});
    let first = create(body).await;
    let call = &first["output"][0]["call_id"];
    let output = json!({"type": "function_call_output", "call_id": call, "output": "rain"});
    let conversation = &first["conversation"];
    assert!(temporary(&store).await.is_some());
    let body = json!({"model": "support", "input": [output], "store": false,
                      "conversation": conversation});
    let second = create(body).await;
    assert_eq!(super::output_text(&second), "Triage: I got rain.");
    assert!(temporary(&store).await.is_none());
}

#[tokio::test]
async fn a_copy_of_a_temporary_conversation_is_kept() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let mut body = chat(json!([{"role": "user", "content": "weather please"}]));
    body["tools"] = json!([super::chat_weather()]);
    client.post("/v1/chat/completions", body).await.ok();
    let id = temporary(&store).await.unwrap().id;
    let path = format!("/api/conversations/{id}/fork");
    let copied = client.post(&path, json!({"to": "copy"})).await;
    assert_eq!(copied.status, 201, "{}", copied.text);
    let head = store.get("copy").head().await.unwrap().unwrap();
    assert_eq!(head.expires, None);
    let listed: Value = client.get("/api/conversations").await.ok();
    assert_eq!(listed["conversations"][0]["id"], "copy");
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
}

/// A request with the whole history after a response that has called the client's tool.
fn with_rain(question: &str, response: &Value) -> Value {
    let call = response["output"].as_array().unwrap().last().unwrap();
    let call_id = &call["call_id"];
    json!({"model": "support", "store": false, "tools": [super::weather()], "input": [
        {"role": "user", "content": question},
        {"type": "function_call", "call_id": call_id, "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": "rain"},
    ]})
}

/// Asks something that the client's tool is called for, in a conversation that is not kept.
async fn ask(server: &TestServer, question: &str) -> Value {
    let body = json!({"model": "support", "input": question, "store": false,
                      "tools": [super::weather()]});
    server.client.post("/v1/responses", body).await.ok()
}

/// The names of records of runs that went on.
async fn resumptions(store: &Conversations) -> Vec<Head> {
    let mut heads = store.list(None).await.unwrap();
    heads.retain(|head| head.id.starts_with("~resumed/"));
    heads
}

#[tokio::test]
async fn outputs_whose_run_failed_are_sent_again_to_the_agent_that_called() {
    let question = "weather for my bill breaks once";
    let thanks = json!({"role": "user", "content": "thanks"});
    for (is_kept, added, answer) in [
        (false, None, "Billing: I got rain."),
        (false, Some(thanks), "Billing: you said thanks"),
        // By the name of the conversation.
        (true, None, "Billing: I got rain."),
    ] {
        let store = Conversations::in_memory();
        let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
        let create = async |mut body: Value| {
            body["store"] = is_kept.into();
            server.client.post("/v1/responses", body).await.ok()
        };
        let tools = json!([super::weather()]);
        let first = create(json!({"model": "support", "input": question, "tools": tools})).await;
        let mut body = with_rain(question, &first);
        let failed = create(body.clone()).await;
        assert_eq!(failed["status"], "failed");
        if is_kept {
            body["input"] = json!([body["input"][2]]);
            body["conversation"] = first["conversation"]["id"].clone();
        }
        // What was not sent before is added.
        body["input"].as_array_mut().unwrap().extend(added);
        let again = create(body).await;
        assert_eq!(output_text(&again), answer);
        assert_eq!(again["conversation"], first["conversation"]);
        let id = first["conversation"]["id"].as_str().unwrap();
        let exists = async || store.get(id).head().await.unwrap().is_some();
        until(async || exists().await == is_kept).await;
        until(async || is_kept || resumptions(&store).await.is_empty()).await;
    }
}

#[tokio::test]
async fn a_run_that_failed_after_its_wait_was_over_leaves_nothing() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let question = "weather slowly";
    let first = ask(&server, question).await;
    let mut body = with_rain(question, &first);
    body["stream"] = true.into();
    let request = with_json(server.client.request("POST", "/v1/responses"), &body);
    let mut stream = server.client.open(request).await;
    while stream.next().await.unwrap().name.as_deref() != Some("response.output_text.delta") {}
    // What was said is stored, so the wait is over.
    server.service.drain(Duration::from_millis(10)).await;
    assert!(temporary(&store).await.is_none());
    assert_eq!(resumptions(&store).await.len(), 0);
}

#[tokio::test]
async fn a_run_that_does_not_get_a_temporary_conversation_leaves_it_to_the_one_that_has_it() {
    let store = Conversations::in_memory();
    let of_store = || TestServer::with(|builder| builder.conversations(store.clone()));
    let server = of_store().await;
    let mut limits = Limits::default();
    limits.conversation_wait = Duration::from_millis(50);
    let other = TestServer::with(|builder| builder.conversations(store.clone()).limits(limits));
    let other = other.await;
    let body = json!({"model": "support", "input": "lookup slowly", "store": false,
                      "stream": true});
    let request = with_json(server.client.request("POST", "/v1/responses"), &body);
    let stream = server.client.open(request).await;
    until(async || {
        let head = temporary(&store).await;
        head.is_some_and(|head| head.entries() > 0)
    })
    .await;
    let id = temporary(&store).await.unwrap().id;
    let body = json!({"model": "support", "input": "two", "conversation": &*id});
    let refused = other.client.post("/v1/responses", body).await.ok();
    assert_eq!(refused["status"], "failed", "{refused}");
    assert!(temporary(&store).await.is_some());
    server.model.gate.add_permits(1);
    let last = stream.rest().await.pop().unwrap().json();
    assert_eq!(last["type"], "response.completed", "{last}");
    until(async || temporary(&store).await.is_none()).await;
}

#[tokio::test]
async fn the_events_of_all_runs_of_a_temporary_conversation_are_gone_with_it() {
    let server = TestServer::with(|builder| builder.record(RecordingLimits::default())).await;
    let client = &server.client;
    let runs = async || client.get("/api/runs").await.ok()["runs"].clone();
    let question = "weather please";
    let first = ask(&server, question).await;
    let run = runs().await[0]["id"].as_str().unwrap().to_owned();
    let recording = format!("/api/runs/{run}/recording");
    client.get(&recording).await.ok();
    let body = with_rain(question, &first);
    let second = client.post("/v1/responses", body).await.ok();
    assert_eq!(output_text(&second), "Triage: I got rain.");
    until(async || runs().await == json!([])).await;
    assert_eq!(client.get(&recording).await.status, 404);
    assert_eq!(
        client.get(&format!("/api/runs/{run}/events")).await.status,
        404
    );
}

#[tokio::test]
async fn the_recording_of_a_task_is_gone_with_it() {
    let server = TestServer::with(|builder| builder.record(RecordingLimits::default())).await;
    let client = &server.client;
    let prompt = "Write a 5-word-or-less title for the following conversation: slow please";
    let mut body = chat(json!([{"role": "user", "content": prompt}]));
    body["stream"] = true.into();
    let request = with_json(client.request("POST", "/v1/chat/completions"), &body);
    let stream = client.open(request).await;
    let runs = async || client.get("/api/runs").await.ok()["runs"].clone();
    let run = runs().await[0]["id"].as_str().unwrap().to_owned();
    let recording = format!("/api/runs/{run}/recording");
    client.get(&recording).await.ok();
    server.model.gate.add_permits(1);
    stream.rest().await;
    until(async || runs().await == json!([])).await;
    assert_eq!(client.get(&recording).await.status, 404);
}

#[tokio::test]
async fn temporary_conversations_take_no_place_among_what_is_found() {
    let server = TestServer::start().await;
    let client = &server.client;
    let body = json!({"input": "weather of old"});
    client
        .post("/api/conversations/kept/messages", body)
        .await
        .ok();
    for _ in 0..3 {
        ask(&server, "weather of late").await;
    }
    let found = client.get("/api/search?q=weather&limit=1").await.ok();
    let found = found["found"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["conversation"], "kept");
}

#[tokio::test]
async fn a_temporary_conversation_goes_with_its_run_in_every_protocol() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    for protocol in ["chat", "api"] {
        let first = ask(&server, "weather please").await;
        let id = first["conversation"]["id"].as_str().unwrap();
        if protocol == "chat" {
            let request = client.request("POST", "/v1/chat/completions");
            let request = request.header("X-Conversation-Id", id);
            let call_id = &first["output"][0]["call_id"];
            let body = chat(json!([
                {"role": "user", "content": "weather please"},
                {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function",
                    "function": {"name": "get_weather", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": call_id, "content": "rain"},
            ]));
            answer(with_json(request, &body)).await.ok();
        } else {
            let path = format!("/api/conversations/{id}/messages");
            client.post(&path, json!({"input": "two"})).await.ok();
        }
        until(async || temporary(&store).await.is_none()).await;
    }
}
