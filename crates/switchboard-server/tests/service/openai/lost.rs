//! Stored responses whose client, process or record is gone.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, ConversationStore, Conversations, Entry, EntryContent, Expected,
};

use super::output_text;
use crate::support::{Client, TestServer, until, with_json};
use crate::watched_store::WatchedStore;

/// Begins a response that does not end before the gate of the model is opened, and disconnects.
async fn begin_and_leave(client: &Client) -> Value {
    let body = json!({"model": "support", "input": "slow please", "stream": true});
    let request = with_json(client.request("POST", "/v1/responses"), &body);
    let mut stream = client.open(request).await;
    let created = stream.next().await.unwrap().json();
    while stream.next().await.unwrap().name.as_deref() != Some("response.output_text.delta") {}
    created["response"].clone()
}

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_run_has_ended_once_its_response_is_stored() {
    let watched = WatchedStore::new(&Conversations::in_memory());
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    let response = begin_and_leave(client).await;
    watched.hold_back("~response/");
    server.model.gate.add_permits(1);
    until(async || watched.is_held()).await;
    // Whoever shuts the server down waits for the run.
    let runs = client.get("/api/runs").await.ok();
    assert_eq!(runs["runs"][0]["status"], "running");
    watched.release();
    server.service.drain(Duration::from_secs(60)).await;
    assert_eq!(
        client.get(&path(&response)).await.ok()["status"],
        "completed"
    );
}

#[tokio::test]
async fn a_response_is_stored_again_if_the_store_has_failed() {
    let watched = WatchedStore::new(&Conversations::in_memory());
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let response = begin_and_leave(&server.client).await;
    watched.fail_writes("~response/");
    server.model.gate.add_permits(1);
    until(async || watched.has_failed_writes()).await;
    watched.heal();
    server.service.drain(Duration::from_secs(60)).await;
    let stored = server.client.get(&path(&response)).await.ok();
    assert_eq!(output_text(&stored), "Triage: you said slow please");
}

#[tokio::test]
async fn a_response_that_is_deleted_while_it_is_made_stays_deleted() {
    let server = TestServer::start().await;
    let client = &server.client;
    let response = begin_and_leave(client).await;
    assert_eq!(client.delete(&path(&response)).await.ok()["deleted"], true);
    server.model.gate.add_permits(1);
    server.service.drain(Duration::from_secs(60)).await;
    assert_eq!(client.get(&path(&response)).await.status, 404);
}

/// Leaves a response as a process does that is killed while it makes it.
async fn kill_while_it_is_made(store: &Conversations, response: &Value) {
    let name = format!("~response/{}", response["id"].as_str().unwrap());
    let head = store.get(name.as_str()).head().await.unwrap().unwrap();
    let next = head.revision.next;
    let stored = ConversationStore::read(store, &name, next - 1..next).await;
    let mut record: Value = serde_json::from_str(stored.unwrap()[0].content.as_json()).unwrap();
    record["response"]["status"] = "in_progress".into();
    record["next"] = Value::Null;
    record["process"] = "another".into();
    let item = Item::from_json(record.to_string()).unwrap();
    let commit = Commit::new(Expected::Any, vec![Entry::new(EntryContent::Item(item))]);
    ConversationStore::commit(store, &name, commit)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_response_whose_process_was_killed_has_failed_and_is_gone_on_from() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let create = async |body: Value| client.post("/v1/responses", body).await.ok();
    let begin = async || {
        let response = create(json!({"model": "support", "input": "my bill"})).await;
        kill_while_it_is_made(&store, &response).await;
        response
    };
    let lost = begin().await;
    let shown = client.get(&path(&lost)).await.ok();
    assert_eq!(shown["status"], "failed");
    assert_eq!(client.get(&path(&lost)).await.ok(), shown);

    let lost = begin().await;
    let cancelled = client
        .post(&format!("{}/cancel", path(&lost)), json!({}))
        .await;
    assert_eq!(cancelled.ok()["status"], "failed");

    let lost = begin().await;
    let body = json!({"model": "support", "input": "two", "previous_response_id": lost["id"]});
    let next = create(body).await;
    assert_eq!(output_text(&next), "Billing: you said two");
    assert_eq!(next["conversation"], lost["conversation"]);
}

#[tokio::test]
async fn a_response_that_failed_before_anything_was_stored_is_gone_on_from() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let create = async |body: Value| server.client.post("/v1/responses", body).await.ok();
    let go_on = async |previous: &Value| {
        let previous = &previous["id"];
        create(json!({"model": "support", "input": "two", "previous_response_id": previous})).await
    };
    let failed = create(json!({"model": "support", "input": "fail"})).await;
    assert_eq!(failed["status"], "failed");
    let next = go_on(&failed).await;
    assert_eq!(output_text(&next), "Triage: you said two");
    assert_eq!(next["conversation"], failed["conversation"]);
    // Once more from the same response.
    let other = go_on(&failed).await;
    assert_eq!(output_text(&other), "Triage: you said two");
    assert_ne!(other["conversation"], failed["conversation"]);

    let lost = create(json!({"model": "support", "input": "fail"})).await;
    kill_while_it_is_made(&store, &lost).await;
    let next = go_on(&lost).await;
    assert_eq!(next["conversation"], lost["conversation"]);
}

#[tokio::test]
async fn a_response_whose_conversation_is_gone_is_not_gone_on_from() {
    let server = TestServer::start().await;
    let client = &server.client;
    let create = async |body: Value| client.post("/v1/responses", body).await;
    let go_on = async |previous: &Value| {
        let previous = &previous["id"];
        create(json!({"model": "support", "input": "two", "previous_response_id": previous})).await
    };
    let first = create(json!({"model": "support", "input": "one"}))
        .await
        .ok();
    let id = first["conversation"]["id"].as_str().unwrap();
    client.delete(&format!("/api/conversations/{id}")).await;
    assert_eq!(go_on(&first).await.status, 404);

    let body = json!({"model": "support", "input": "weather please", "store": false,
                      "tools": [super::weather()]});
    let first = create(body).await.ok();
    let call = &first["output"][0]["call_id"];
    let output = json!({"type": "function_call_output", "call_id": call, "output": "rain"});
    let conversation = &first["conversation"];
    let body = json!({"model": "support", "input": [output], "conversation": conversation});
    let second = create(body).await.ok();
    assert_eq!(output_text(&second), "Triage: I got rain.");
    assert_eq!(go_on(&second).await.status, 404);
}
