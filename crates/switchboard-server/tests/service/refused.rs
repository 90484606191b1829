//! Requests that are refused: they change nothing.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_server::{KeyEntry, Keys, Limits, make_key};

use crate::support::{Answer, Client, TestServer, answer, with_json};

/// A server with one key, over a store.
async fn server(store: &Conversations, entry: KeyEntry, runs: usize) -> TestServer {
    let mut limits = Limits::default();
    limits.runs = runs;
    let keys = Keys::from_entries([entry]).unwrap();
    let store = store.clone();
    TestServer::with(|builder| builder.conversations(store).keys(keys).limits(limits)).await
}

async fn chat(client: &Client, texts: &[&str]) -> Answer {
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages = roles.zip(texts);
    let messages = messages.map(|(role, text)| json!({"role": role, "content": text}));
    let messages: Vec<Value> = messages.collect();
    let request = client.request("POST", "/v1/chat/completions");
    let request = request.header("X-Conversation-Id", "chat");
    let body = json!({"model": "support", "messages": messages});
    answer(with_json(request, &body)).await
}

async fn agui(client: &Client, run: &str) -> Answer {
    let message = json!({"id": "1", "role": "user", "content": "one"});
    let body = json!({
        "threadId": "thread", "runId": run, "state": {}, "messages": [message],
        "tools": [], "context": [], "forwardedProps": {},
    });
    client.post("/agui/support", body).await
}

/// All conversations with their entries.
async fn everything(client: &Client) -> Vec<Value> {
    let listed = client.get("/api/conversations").await.ok();
    let mut shown = Vec::new();
    for conversation in listed["conversations"].as_array().unwrap() {
        let id = conversation["id"].as_str().unwrap();
        shown.push(client.get(&format!("/api/conversations/{id}")).await.ok());
    }
    shown
}

#[tokio::test]
async fn a_request_that_is_refused_has_taken_nothing_back_and_copied_nothing() {
    let store = Conversations::in_memory();
    let (key, entry) = make_key("acme").unwrap();
    let open = server(&store, entry.clone(), 1024).await;
    let client = open.client_with(&key);
    for text in ["one", "two"] {
        let path = "/api/conversations/api/messages";
        client.post(path, json!({"input": text})).await.ok();
    }
    assert_eq!(chat(&client, &["one"]).await.status, 200);
    let said = ["one", "Triage: you said one", "two"];
    assert_eq!(chat(&client, &said).await.status, 200);
    assert_eq!(agui(&client, "r1").await.status, 200);
    let create = async |body: Value| client.post("/v1/responses", body).await.ok()["id"].clone();
    let first = create(json!({"model": "support", "input": "one"})).await;
    let goes_on = json!({"model": "support", "input": "two", "previous_response_id": first});
    create(goes_on.clone()).await;
    let before = everything(&client).await;
    assert_eq!(before.len(), 4);

    let full = server(&store, entry.clone(), 0).await;
    let ending = server(&store, entry.clone(), 1024).await;
    ending.service.drain(Duration::ZERO).await;
    let mut used_up = entry;
    used_up.concurrent_runs = Some(0);
    let limited = server(&store, used_up, 1024).await;
    for (server, status) in [(full, 503), (ending, 503), (limited, 429)] {
        let refusing = server.client_with(&key);
        let resend = "/api/conversations/api/resend";
        let in_place = json!({"position": 0, "in_place": true});
        let message = json!({"input": "x", "team": "support"});
        let answers = [
            refusing.post(resend, in_place).await,
            refusing.post(resend, json!({"position": 0})).await,
            refusing
                .post("/api/conversations/new/messages", message)
                .await,
            agui(&refusing, "r2").await,
            chat(&refusing, &said).await,
            chat(&refusing, &["another"]).await,
            refusing.post("/v1/responses", goes_on.clone()).await,
        ];
        for (at, answer) in answers.iter().enumerate() {
            assert_eq!(answer.status, status, "{at}: {}", answer.text);
        }
        assert_eq!(everything(&client).await, before);
    }
    // The same requests are possible where there is room.
    assert_eq!(agui(&client, "r2").await.status, 200);
    client.post("/v1/responses", goes_on).await.ok();
    assert_eq!(everything(&client).await.len(), 5);
}
