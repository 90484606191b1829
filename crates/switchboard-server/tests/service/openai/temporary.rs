//! Conversations of clients that keep their conversations themselves.

use serde_json::{Value, json};
use switchboard_core::conversation::{Conversations, Head};

use super::chat;
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

/// Asks something that the client's tool is called for, in a conversation that is not kept.
async fn ask(server: &TestServer, question: &str) -> Value {
    let body = json!({"model": "support", "input": question, "store": false,
                      "tools": [super::weather()]});
    server.client.post("/v1/responses", body).await.ok()
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
