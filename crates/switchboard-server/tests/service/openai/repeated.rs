//! Requests that are sent a second time, and names of conversations that clients choose.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;

use super::{chat, output_text, weather};
use crate::support::{Client, Events, SseEvent, TestServer, answer, until, with_json};
use crate::watched_store::WatchedStore;

/// The texts of a conversation.
async fn texts(client: &Client, id: &str) -> Vec<String> {
    let path = format!("/api/conversations/{id}");
    crate::api::texts(&client.get(&path).await)
}

/// Returns `true` for a part of the answer in the stream of a chat.
fn is_text(event: &SseEvent) -> bool {
    event.json()["choices"][0]["delta"]["content"].is_string()
}

/// The output of the last call of a response, as an item.
fn rain(response: &Value) -> Value {
    let call = response["output"].as_array().unwrap().last().unwrap();
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": "rain"})
}

/// The whole history of a client after a response that ended with a call of its tool.
fn history(question: &str, response: &Value) -> Value {
    let mut call = response["output"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    call.as_object_mut().unwrap().remove("agent");
    json!([{"role": "user", "content": question}, call, rain(response)])
}

#[tokio::test]
async fn outputs_that_are_sent_twice_leave_the_conversation_that_waited_for_them() {
    let server = TestServer::start().await;
    let client = &server.client;
    let question = "weather for my bill";
    let body = json!({"model": "support", "input": question, "tools": [weather()]});
    let first = client.post("/v1/responses", body).await.ok();
    let kept = first["conversation"]["id"].as_str().unwrap().to_owned();
    let body =
        json!({"model": "support", "input": history(question, &first), "tools": [weather()]});
    let second = client.post("/v1/responses", body.clone()).await.ok();
    assert_eq!(output_text(&second), "Billing: I got rain.");
    assert_eq!(second["conversation"]["id"], kept.as_str());
    let before = texts(client, &kept).await;

    let third = client.post("/v1/responses", body).await.ok();
    assert_eq!(third["status"], "completed");
    assert_ne!(third["conversation"]["id"], kept.as_str());
    assert_eq!(texts(client, &kept).await, before);
    for response in [second, third] {
        let body =
            json!({"model": "support", "input": "two", "previous_response_id": response["id"]});
        client.post("/v1/responses", body).await.ok();
    }
}

#[tokio::test]
async fn outputs_that_two_processes_get_are_carried_out_once() {
    let watched = WatchedStore::new(&Conversations::in_memory());
    let store = || Conversations::new(watched.clone());
    let one = TestServer::with(|builder| builder.conversations(store())).await;
    let other = TestServer::with(|builder| builder.conversations(store())).await;
    let question = "weather please";
    let body = json!({"model": "support", "input": question, "tools": [weather()], "store": false});
    let first = one.client.post("/v1/responses", body).await.ok();
    let body = json!({"model": "support", "input": history(question, &first), "store": false});
    // Both have read the wait before either has taken it.
    watched.hold_back("~resumed/");
    let late = one.client.post("/v1/responses", body.clone());
    let (late, second) = tokio::join!(late, async {
        until(async || watched.is_held()).await;
        let second = other.client.post("/v1/responses", body.clone()).await;
        watched.release();
        second
    });
    assert_eq!(output_text(&second.ok()), "Triage: I got rain.");
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
}

#[tokio::test]
async fn a_name_that_a_client_has_chosen_is_never_temporary() {
    let server = TestServer::start().await;
    let client = &server.client;
    let path = "/api/conversations/temp_hall/messages";
    client.post(path, json!({"input": "one"})).await.ok();
    let body = json!({"model": "support", "input": "two", "conversation": "temp_hall"});
    client.post("/v1/responses", body).await.ok();
    let request = client.request("POST", "/v1/chat/completions");
    let request = request.header("X-Conversation-Id", "temp_hall");
    let messages = json!([
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "Triage: you said one"},
        {"role": "user", "content": "two"}, {"role": "assistant", "content": "Triage: you said two"},
        {"role": "user", "content": "three"},
    ]);
    answer(with_json(request, &chat(messages))).await.ok();
    let said =
        ["one", "two", "three"].map(|text| [text.to_owned(), format!("Triage: you said {text}")]);
    assert_eq!(texts(client, "temp_hall").await, said.concat());

    // The identifiers of calls name the conversation, but not how long it is kept.
    let name = "temp_0123456789abcdef";
    let question = "weather please";
    let body =
        json!({"model": "support", "input": question, "conversation": name, "tools": [weather()]});
    let first = client.post("/v1/responses", body).await.ok();
    let body =
        json!({"model": "support", "input": history(question, &first), "tools": [weather()]});
    let second = client.post("/v1/responses", body).await.ok();
    assert_eq!(output_text(&second), "Triage: I got rain.");
    assert!(texts(client, name).await.contains(&output_text(&second)));
}

#[tokio::test]
async fn a_chat_that_is_sent_again_while_it_is_answered_is_one_message() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut body = chat(json!([{"role": "user", "content": "slow please"}]));
    body["stream"] = true.into();
    let send = async || {
        let request = client.request("POST", "/v1/chat/completions");
        let request = request.header("X-Conversation-Id", "c");
        client.open(with_json(request, &body)).await
    };
    let mut first = send().await;
    while !is_text(&first.next().await.unwrap()) {}
    // The second request is answered from the run of the first, which has not ended.
    let mut second = send().await;
    while !is_text(&second.next().await.unwrap()) {}
    server.model.gate.add_permits(1);
    assert_eq!(first.rest().await.last().unwrap().data, "[DONE]");
    assert_eq!(second.rest().await.last().unwrap().data, "[DONE]");
    let once = ["slow please", "Triage: you said slow please"];
    assert_eq!(texts(client, "c").await, once);

    // After the end of the run it is a wish for another answer.
    server.model.gate.add_permits(1);
    let runs = async || {
        client.get("/api/runs").await.ok()["runs"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = runs().await;
    send().await.rest().await;
    assert_eq!(runs().await, before + 1);
    assert_eq!(texts(client, "c").await, once);
}

#[tokio::test]
async fn a_chat_that_is_sent_again_while_it_waits_for_another_is_one_message() {
    let server = TestServer::start().await;
    let client = &server.client;
    let question = json!({"role": "user", "content": "slow please"});
    let answer = json!({"role": "assistant", "content": "Triage: you said slow please"});
    let send = async |messages: Value| {
        let mut body = chat(messages);
        body["stream"] = true.into();
        let request = client.request("POST", "/v1/chat/completions");
        let request = request.header("X-Conversation-Id", "c");
        let mut events = client.open(with_json(request, &body)).await;
        while !is_text(&events.next().await.unwrap()) {}
        events
    };
    let runs = async || {
        client.get("/api/runs").await.ok()["runs"]
            .as_array()
            .unwrap()
            .len()
    };
    let first = send(json!([question])).await;
    let again = json!([question, answer, {"role": "user", "content": "slow again"}]);
    let (second, third, ()) = tokio::join!(send(again.clone()), send(again), async {
        // Meanwhile both requests arrive.
        for _ in 0..50 {
            assert_eq!(runs().await, 1);
        }
        server.model.gate.add_permits(1);
    });
    // Both have the beginning of one answer.
    assert_eq!(runs().await, 2);
    server.model.gate.add_permits(1);
    for events in [first, second, third] {
        assert_eq!(events.rest().await.last().unwrap().data, "[DONE]");
    }
    assert_eq!(runs().await, 2);
}

#[tokio::test]
async fn only_open_webui_has_its_tasks_answered_without_a_conversation() {
    let server = TestServer::start().await;
    let body = chat(json!([{"role": "user", "content": "### Task: my bill"}]));
    let completion = server.client.post("/v1/chat/completions", body).await.ok();
    let said = &completion["choices"][0]["message"]["content"];
    assert_eq!(said, "Billing: you said ### Task: my bill");
}

/// Opens the stream of a response, and reads to the beginning of its text.
async fn open_response(client: &Client, body: &Value) -> (Value, Events) {
    let request = with_json(client.request("POST", "/v1/responses"), body);
    let mut events = client.open(request).await;
    let created = events.next().await.unwrap().json()["response"].clone();
    while events.next().await.unwrap().name.as_deref() != Some("response.output_text.delta") {}
    (created, events)
}

#[tokio::test]
async fn a_response_that_is_asked_for_again_while_it_is_made_is_one_message() {
    let server = TestServer::start().await;
    let client = &server.client;
    for is_stored in [true, false] {
        let id = format!("c-{is_stored}");
        let mut body = json!({"model": "support", "input": "slow please", "conversation": id,
                              "store": is_stored, "stream": true});
        let (created, first) = open_response(client, &body).await;
        let (again, second) = open_response(client, &body).await;
        assert_eq!(again["id"], created["id"]);
        server.model.gate.add_permits(1);
        for events in [first, second] {
            let last = events.rest().await.pop().unwrap().json();
            assert_eq!(last["type"], "response.completed");
            assert_eq!(last["response"]["id"], created["id"]);
        }
        let once = ["slow please", "Triage: you said slow please"];
        assert_eq!(texts(client, &id).await, once);

        // Without a stream, while both wait for the same answer.
        body["stream"] = false.into();
        let create = || client.post("/v1/responses", body.clone());
        let (first, second, ()) = tokio::join!(create(), create(), async {
            until(async || client.get("/api/runs").await.text.contains("running")).await;
            server.model.gate.add_permits(1);
        });
        let (first, second) = (first.ok(), second.ok());
        assert_eq!(output_text(&first), "Triage: you said slow please");
        assert_eq!(output_text(&second), output_text(&first));
        assert_eq!(second["id"], first["id"]);
        assert_eq!(texts(client, &id).await, [once, once].concat());
        let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
        let status = if is_stored { 200 } else { 404 };
        assert_eq!(client.get(&path).await.status, status);
    }
}

#[tokio::test]
async fn two_responses_to_the_same_one_do_not_share_a_conversation() {
    let server = TestServer::start().await;
    let client = &server.client;
    let create = async |body: Value| client.post("/v1/responses", body).await.ok();
    let first = create(json!({"model": "support", "input": "one"})).await;
    let previous = &first["id"];
    let mut body = json!({"model": "support", "input": "slow please",
                          "previous_response_id": previous, "stream": true});
    let (second, events) = open_response(client, &body).await;
    body["stream"] = false.into();
    let (third, ()) = tokio::join!(create(body), async {
        // Meanwhile the other request arrives.
        for _ in 0..50 {
            client.get("/api/runs").await.ok();
        }
        server.model.gate.add_permits(1);
        events.rest().await;
        server.model.gate.add_permits(1);
    });
    assert_eq!(second["conversation"], first["conversation"]);
    assert_ne!(third["conversation"], first["conversation"]);
    let expected = [
        "one",
        "Triage: you said one",
        "slow please",
        "Triage: you said slow please",
    ];
    for response in [second, third] {
        let id = response["conversation"]["id"].as_str().unwrap();
        assert_eq!(texts(client, id).await, expected);
    }
}
