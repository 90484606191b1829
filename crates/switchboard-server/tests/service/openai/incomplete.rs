//! Answers that the provider has cut off, and what clients are told of a provider that fails.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Team};
use switchboard_models::{ChatModel, Endpoint};
use switchboard_server::{RecordingLimits, ServedTeam, Service};

use super::{chat, output_text};
use crate::remote::serve;
use crate::support::{SseEvent, TestServer};

/// A server with a team whose provider gives one response to every request.
async fn server(head: &str, body: &str) -> TestServer {
    let address = serve(head, body).await;
    let client = Endpoint::at(format!("{address}/v1")).key("k").connect();
    let model = ChatModel::new(&client.unwrap(), "m");
    let team: Team = Team::new()
        .agent(Agent::new("Triage").model(model))
        .build()
        .unwrap();
    let service = Service::builder()
        .team(ServedTeam::new("support", team, ()))
        .conversations(Conversations::in_memory());
    TestServer::of(service.build().unwrap()).await
}

/// A server whose provider ends its answer for a reason.
async fn cut_off(reason: &str) -> TestServer {
    let chunk = |delta: Value, reason: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1,
                           "model": "m", "choices": choices});
        format!("data: {chunk}\n\n")
    };
    let text = chunk(
        json!({"role": "assistant", "content": "Half an ans"}),
        Value::Null,
    );
    let end = chunk(json!({}), reason.into());
    let body = format!("{text}{end}data: [DONE]\n\n");
    server("200 OK\r\ncontent-type: text/event-stream", &body).await
}

#[tokio::test]
async fn an_answer_that_reached_its_most_tokens_is_incomplete_and_no_failure() {
    for (upstream, finish_reason, reason) in [
        ("length", "length", "max_output_tokens"),
        ("content_filter", "content_filter", "content_filter"),
    ] {
        let server = cut_off(upstream).await;
        let client = &server.client;
        let mut body = chat(json!([{"role": "user", "content": "hello"}]));
        let completion = client.post("/v1/chat/completions", body.clone()).await.ok();
        let choice = &completion["choices"][0];
        assert_eq!(choice["message"]["content"], "Half an ans");
        assert_eq!(choice["finish_reason"], finish_reason);
        body["stream"] = true.into();
        let events = client.events("/v1/chat/completions", body).await;
        let (done, chunks) = events.split_last().unwrap();
        assert_eq!(done.data, "[DONE]");
        let chunks: Vec<Value> = chunks.iter().map(SseEvent::json).collect();
        assert!(chunks.iter().all(|chunk| chunk["error"].is_null()));
        let last = &chunks.last().unwrap()["choices"][0];
        assert_eq!(last["finish_reason"], finish_reason);

        let mut body = json!({"model": "support", "input": "hello"});
        let response = client.post("/v1/responses", body.clone()).await.ok();
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], reason);
        assert_eq!(response["error"], Value::Null);
        assert_eq!(output_text(&response), "Half an ans");
        assert_eq!(response["output"][0]["status"], "incomplete");
        body["stream"] = true.into();
        let events = client.events("/v1/responses", body).await;
        let last = events.last().unwrap().json();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], reason);
    }
}

#[tokio::test]
async fn what_an_incomplete_response_has_said_is_stored() {
    let server = cut_off("length").await;
    let body = json!({"model": "support", "input": "hello", "conversation": "c"});
    server.client.post("/v1/responses", body).await.ok();
    let shown = server.client.get("/api/conversations/c").await;
    assert_eq!(crate::api::texts(&shown), ["hello", "Half an ans"]);
}

#[tokio::test]
async fn clients_are_not_told_the_address_of_the_provider() {
    let error = json!({"error": {"message": "no such thing"}}).to_string();
    let server = server("400 Bad Request\r\ncontent-type: application/json", &error).await;
    let client = &server.client;
    let body = chat(json!([{"role": "user", "content": "hello"}]));
    let chat = client.post("/v1/chat/completions", body).await;
    assert_eq!(chat.status, 500);
    let body = json!({"model": "support", "input": "hello"});
    let response = client.post("/v1/responses", body).await;
    let body = json!({"input": "hello", "stream": true});
    let path = "/api/conversations/c/messages";
    let events = client.post(path, body).await;
    let runs = client.get("/api/runs").await;
    for answer in [chat, response, events, runs] {
        assert!(answer.text.contains("no such thing"), "{}", answer.text);
        assert!(!answer.text.contains("127.0.0.1"), "{}", answer.text);
    }
}

#[tokio::test]
async fn clients_are_not_told_the_address_of_a_provider_that_is_asked_again() {
    let error = json!({"error": {"message": "too busy"}}).to_string();
    let head = "503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after-ms: 1";
    let address = serve(head, &error).await;
    let endpoint = Endpoint::at(format!("{address}/v1")).key("k").retries(1);
    let model = ChatModel::new(&endpoint.connect().unwrap(), "m");
    let expert = Agent::new("Expert").model(model.clone());
    let team: Team = Team::new()
        .agent(Agent::new("Triage").model(model))
        .build()
        .unwrap();
    let asking: Team = Team::new()
        .agent(
            Agent::new("Desk").tool(expert.as_tool("ask_expert")).model(
                ScriptedModel::new()
                    .call("ask_expert", r#"{"input": "hello"}"#)
                    .say("No."),
            ),
        )
        .build()
        .unwrap();
    let service = Service::builder()
        .team(ServedTeam::new("support", team, ()))
        .team(ServedTeam::new("desk", asking, ()))
        .record(RecordingLimits::default())
        .conversations(Conversations::in_memory());
    let server = TestServer::of(service.build().unwrap()).await;
    let client = &server.client;
    for team in ["support", "desk"] {
        let body = json!({"input": "hello", "stream": true, "team": team});
        let path = format!("/api/conversations/{team}/messages");
        let events = client.post(&path, body).await;
        assert!(events.text.contains("model_retry"), "{}", events.text);
        assert!(events.text.contains("too busy"), "{}", events.text);
        assert!(!events.text.contains("127.0.0.1"), "{}", events.text);
    }
    let runs = client.get("/api/runs").await.ok();
    let run = runs["runs"].as_array().unwrap().last().unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let recording = format!("/api/runs/{run}/recording");
    let rows = client.get(&recording).await.ok()["rows"].clone();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["kind"] == "model");
    let details = client
        .get(&format!("{recording}/{}", row.unwrap()["id"]))
        .await
        .ok();
    let retries = details["details"]["retries"].to_string();
    assert!(retries.contains("too busy"), "{details}");
    assert!(!retries.contains("127.0.0.1"), "{details}");
}
