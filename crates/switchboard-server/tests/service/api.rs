//! The service's own API.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;

use crate::support::{Answer, SseEvent, TestServer, answer, until, with_json};
use crate::watched_store::WatchedStore;

fn kinds(events: &[SseEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| event.json()["type"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn texts(conversation: &Answer) -> Vec<String> {
    let items = conversation.ok()["items"].as_array().unwrap().clone();
    let content = |entry: &Value| match &entry["content"]["content"] {
        Value::String(text) => Some(text.clone()),
        parts => Some(parts[0]["text"].as_str()?.to_owned()),
    };
    items.iter().filter_map(content).collect()
}

#[tokio::test]
async fn a_message_is_answered_by_the_agent_that_got_the_conversation() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let first = server
        .client
        .post(path, json!({"input": "my bill"}))
        .await
        .ok();
    assert_eq!(first["status"], "completed");
    assert_eq!(first["output"], "Billing: you said my bill");
    assert_eq!(first["agent"], "Billing");
    assert_eq!(first["usage"]["output_tokens"], 5);
    let second = server
        .client
        .post(path, json!({"input": "thanks"}))
        .await
        .ok();
    assert_eq!(second["output"], "Billing: you said thanks");
    let shown = server.client.get("/api/conversations/c1").await;
    assert_eq!(
        texts(&shown),
        [
            "my bill",
            "Billing: you said my bill",
            "thanks",
            "Billing: you said thanks"
        ]
    );
    assert_eq!(shown.ok()["agent"], "Billing");
    assert_eq!(shown.ok()["team"], "support");
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_run_with_their_numbers() {
    let server = TestServer::start().await;
    let body = json!({"input": "my bill", "stream": true});
    let events = server
        .client
        .events("/api/conversations/c1/messages", body)
        .await;
    let ids: Vec<u64> = events
        .iter()
        .map(|event| event.id.as_ref().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    let kinds = kinds(&events);
    assert_eq!(kinds.first().unwrap(), "run_started");
    assert_eq!(kinds.last().unwrap(), "run_finished");
    assert_eq!(kinds.iter().filter(|kind| *kind == "handoff").count(), 1);
    for event in &events {
        assert_eq!(event.json()["type"].as_str(), event.name.as_deref());
    }
}

#[tokio::test]
async fn a_client_that_comes_back_misses_and_repeats_nothing() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let request = with_json(
        server
            .client
            .request("POST", "/api/conversations/c1/messages"),
        &body,
    );
    let mut stream = server.client.open(request).await;
    let run = stream.headers["x-run-id"].to_str().unwrap().to_owned();
    let mut seen = Vec::new();
    loop {
        let event = stream.next().await.unwrap();
        let is_text = event.name.as_deref() == Some("text_delta");
        seen.push(event);
        if is_text {
            break;
        }
    }
    // The connection is cut, and the run goes on.
    drop(stream);
    let info = server.client.get(&format!("/api/runs/{run}")).await.ok();
    assert_eq!(info["status"], "running");
    server.model.gate.add_permits(1);
    let path = format!("/api/runs/{run}/events");
    let last = seen.last().unwrap().id.clone().unwrap();
    let request = server
        .client
        .request("GET", &path)
        .header("Last-Event-ID", last);
    seen.extend(server.client.open(request).await.rest().await);
    let whole = server
        .client
        .open(server.client.request("GET", &path))
        .await
        .rest()
        .await;
    assert_eq!(seen, whole);
    assert_eq!(kinds(&whole).last().unwrap(), "run_finished");
}

#[tokio::test]
async fn two_clients_may_follow_one_run() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let request = with_json(
        server
            .client
            .request("POST", "/api/conversations/c1/messages"),
        &body,
    );
    let first = server.client.open(request).await;
    let run = first.headers["x-run-id"].to_str().unwrap().to_owned();
    let request = server
        .client
        .request("GET", &format!("/api/runs/{run}/events"));
    let second = server.client.open(request).await;
    server.model.gate.add_permits(1);
    let (first, second) = tokio::join!(first.rest(), second.rest());
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_message_that_is_sent_twice_with_one_idempotency_key_is_one() {
    let server = TestServer::start().await;
    let send = || async {
        let request = server
            .client
            .request("POST", "/api/conversations/c1/messages");
        let request =
            with_json(request, &json!({"input": "hello"})).header("Idempotency-Key", "k1");
        crate::support::answer(request).await.ok()
    };
    let (first, second) = (send().await, send().await);
    assert_eq!(first["id"], second["id"]);
    let shown = server.client.get("/api/conversations/c1").await;
    assert_eq!(texts(&shown), ["hello", "Triage: you said hello"]);
}

#[tokio::test]
async fn an_idempotency_key_that_was_sent_with_another_message_is_refused() {
    let server = TestServer::start().await;
    let send = async |id: &str, body: Value| {
        let path = format!("/api/conversations/{id}/messages");
        let request = with_json(server.client.request("POST", &path), &body);
        answer(request.header("Idempotency-Key", "k1")).await
    };
    let first = send("c1", json!({"input": "hello"})).await.ok();
    let refused = (422, "idempotency_key_reused".to_owned());
    let other = send("c2", json!({"input": "hello"})).await;
    assert_eq!(other.error_code(), refused);
    let other = send("c1", json!({"input": "good bye"})).await;
    assert_eq!(other.error_code(), refused);
    // It may be read otherwise.
    let same = send("c1", json!({"input": "hello", "stream": true})).await;
    assert_eq!(same.headers["x-run-id"], first["id"].as_str().unwrap());
}

#[tokio::test]
async fn of_two_decisions_at_once_one_is_carried_out_and_the_other_is_refused() {
    let watched = WatchedStore::new(&Conversations::in_memory());
    let store = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(store)).await;
    let client = &server.client;
    let body = json!({"input": "refund my bill"});
    let waiting = client.post("/api/conversations/c1/messages", body).await;
    let call = waiting.ok()["waiting"][0]["call_id"].clone();
    let decide = async || {
        let body = json!({"decisions": [{"call_id": call, "approve": true}]});
        client.post("/api/conversations/c1/decisions", body).await
    };
    // Both have read the wait before either has taken it.
    watched.hold_back("~resumed/");
    let (late, first) = tokio::join!(decide(), async {
        until(async || watched.is_held()).await;
        let first = decide().await;
        watched.release();
        first
    });
    assert_eq!(first.ok()["status"], "completed");
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
    let runs = client.get("/api/runs").await.ok();
    let runs = runs["runs"].as_array().unwrap().iter();
    let failed = runs.filter(|run| run["status"] == "failed");
    assert_eq!(failed.count(), 0);
}

#[tokio::test]
async fn a_run_is_cancelled_and_what_was_shown_is_kept() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let request = with_json(
        server
            .client
            .request("POST", "/api/conversations/c1/messages"),
        &body,
    );
    let mut stream = server.client.open(request).await;
    let run = stream.headers["x-run-id"].to_str().unwrap().to_owned();
    while stream.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    let cancelled = server
        .client
        .post(&format!("/api/runs/{run}/cancel"), json!({}))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(kinds(&stream.rest().await).last().unwrap(), "run_stopped");
    let shown = server.client.get("/api/conversations/c1").await;
    assert_eq!(texts(&shown), ["slow please", "Triage: "]);
    let runs = server.client.get("/api/runs").await.ok();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_waits_for_its_approval_and_goes_on() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let waiting = server
        .client
        .post(path, json!({"input": "refund my bill"}))
        .await
        .ok();
    assert_eq!(waiting["status"], "waiting");
    assert_eq!(waiting["waiting"][0]["tool"], "refund");
    let shown = server.client.get("/api/conversations/c1").await.ok();
    assert_eq!(shown["waiting"], waiting["waiting"]);

    let path = "/api/conversations/c1/decisions";
    let wrong = json!({"decisions": [{"call_id": "call_99", "approve": true}]});
    assert_eq!(
        server.client.post(path, wrong).await.error_code(),
        (409, "conflict".to_owned())
    );
    let call = &waiting["waiting"][0]["call_id"];
    let decided = json!({"decisions": [{"call_id": call, "approve": true}]});
    let done = server.client.post(path, decided.clone()).await.ok();
    assert_eq!(done["output"], "Billing: I got refunded {\"amount\":5}.");
    assert_eq!(server.client.post(path, decided).await.error_code().0, 409);
}

#[tokio::test]
async fn a_rejected_call_is_told_to_the_model() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let waiting = server
        .client
        .post(path, json!({"input": "refund my bill"}))
        .await
        .ok();
    let call = &waiting["waiting"][0]["call_id"];
    let body = json!({"decisions": [{"call_id": call, "approve": false, "message": "Not today."}]});
    let done = server
        .client
        .post("/api/conversations/c1/decisions", body)
        .await
        .ok();
    assert_eq!(done["output"], "Billing: I got Not today..");
}

#[tokio::test]
async fn a_person_answers_and_hands_back() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let waiting = server
        .client
        .post(path, json!({"input": "a person"}))
        .await
        .ok();
    assert_eq!(waiting["waiting"][0]["kind"], "person");
    assert_eq!(waiting["waiting"][0]["agent"], "Ann");
    let path = "/api/conversations/c1/answers";
    let none = server.client.post(path, json!({})).await;
    assert_eq!(none.error_code(), (400, "invalid_request".to_owned()));
    let wrong = server
        .client
        .post(path, json!({"person": "Bob", "text": "Hi"}))
        .await;
    assert_eq!(wrong.error_code().0, 409);
    let done = server
        .client
        .post(path, json!({"person": "Ann", "text": "I am Ann."}))
        .await
        .ok();
    assert_eq!(
        (&done["status"], &done["output"]),
        (&json!("completed"), &json!("I am Ann."))
    );
    let again = server
        .client
        .post("/api/conversations/c1/messages", json!({"input": "thanks"}))
        .await
        .ok();
    assert_eq!(again["status"], "waiting");
    let body = json!({"text": "Bye.", "hand_back": true, "then_wait": true});
    let done = server.client.post(path, body).await.ok();
    assert_eq!(done["output"], "Bye.");
    let next = server
        .client
        .post("/api/conversations/c1/messages", json!({"input": "hello"}))
        .await
        .ok();
    assert_eq!(next["output"], "Triage: you said hello");
}

#[tokio::test]
async fn a_failed_run_is_told_and_the_conversation_goes_on() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let failed = server
        .client
        .post(path, json!({"input": "fail"}))
        .await
        .ok();
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["kind"], "model");
    let next = server
        .client
        .post(path, json!({"input": "hello"}))
        .await
        .ok();
    assert_eq!(next["status"], "completed");
}

#[tokio::test]
async fn conversations_are_listed_in_pages_searched_forked_and_deleted() {
    let server = TestServer::start().await;
    for id in ["a", "b", "c"] {
        let path = format!("/api/conversations/{id}/messages");
        server
            .client
            .post(&path, json!({"input": format!("apple {id}")}))
            .await
            .ok();
    }
    let ids = |answer: Value| -> Vec<String> {
        let list = answer["conversations"].as_array().unwrap().clone();
        list.iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = server.client.get("/api/conversations?limit=2").await.ok();
    let cursor = first["next"].as_str().unwrap().to_owned();
    let second = server
        .client
        .get(&format!("/api/conversations?limit=2&cursor={cursor}"))
        .await
        .ok();
    assert_eq!(second["next"], Value::Null);
    let mut all = ids(first);
    all.extend(ids(second));
    all.sort();
    assert_eq!(all, ["a", "b", "c"]);

    let found = server.client.get("/api/search?q=APPLE%20b").await.ok();
    let found: Vec<&str> = found["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["conversation"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["b", "b"]);

    server
        .client
        .post("/api/conversations/a/messages", json!({"input": "pear"}))
        .await
        .ok();
    let shown = server.client.get("/api/conversations/a").await.ok();
    let items = shown["items"].as_array().unwrap();
    let pear = items
        .iter()
        .find(|entry| entry["content"]["content"] == "pear")
        .unwrap();
    let body = json!({"to": "a2", "before": pear["position"]});
    let forked = server
        .client
        .post("/api/conversations/a/fork", body.clone())
        .await;
    assert_eq!(forked.status, 201);
    let copy = server.client.get("/api/conversations/a2").await;
    assert_eq!(texts(&copy), ["apple a", "Triage: you said apple a"]);
    let exported = server.client.get("/api/conversations/a2/export").await;
    assert!(!exported.ok().to_string().contains("pear"));
    let found = server.client.get("/api/search?q=pear").await.ok();
    let found = found["found"].as_array().unwrap();
    assert!(
        found.iter().all(|one| one["conversation"] == "a"),
        "{found:?}"
    );
    assert_eq!(
        server
            .client
            .post("/api/conversations/a/fork", body)
            .await
            .error_code()
            .0,
        409
    );

    assert_eq!(
        server.client.delete("/api/conversations/a").await.status,
        204
    );
    assert_eq!(
        server.client.get("/api/conversations/a").await.error_code(),
        (404, "not_found".to_owned())
    );
    assert_eq!(
        server.client.delete("/api/conversations/a").await.status,
        404
    );
}

#[tokio::test]
async fn deleting_a_conversation_ends_its_runs() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let request = with_json(
        server
            .client
            .request("POST", "/api/conversations/c1/messages"),
        &body,
    );
    let mut stream = server.client.open(request).await;
    while stream.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    assert_eq!(
        server.client.delete("/api/conversations/c1").await.status,
        204
    );
    assert_eq!(kinds(&stream.rest().await).last().unwrap(), "run_stopped");
    assert_eq!(server.client.get("/api/conversations/c1").await.status, 404);
}

#[tokio::test]
async fn messages_to_one_conversation_are_answered_one_after_the_other() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let slow = with_json(
        server.client.request("POST", path),
        &json!({"input": "slow one", "stream": true}),
    );
    let mut first = server.client.open(slow).await;
    while first.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    let client = server.client.clone();
    let second = tokio::spawn(async move { client.post(path, json!({"input": "two"})).await.ok() });
    until(|| async {
        server.client.get("/api/runs").await.ok()["runs"]
            .as_array()
            .unwrap()
            .len()
            == 2
    })
    .await;
    server.model.gate.add_permits(1);
    assert_eq!(kinds(&first.rest().await).last().unwrap(), "run_finished");
    assert_eq!(second.await.unwrap()["output"], "Triage: you said two");
    let shown = server.client.get("/api/conversations/c1").await;
    assert_eq!(
        texts(&shown),
        [
            "slow one",
            "Triage: you said slow one",
            "two",
            "Triage: you said two"
        ]
    );
}

#[tokio::test]
async fn teams_are_listed_drawn_and_checked() {
    let server = TestServer::start().await;
    let teams = server.client.get("/api/teams").await.ok();
    let agents = &teams["teams"][0]["agents"];
    assert_eq!(agents[0]["name"], "Triage");
    assert_eq!(agents[0]["is_start"], true);
    assert_eq!(agents[0]["handoffs"], json!(["Billing", "Ann"]));
    assert_eq!(agents[1]["tools"], json!(["refund"]));
    let drawing = server.client.get("/api/teams/support/graph").await;
    assert!(drawing.text.starts_with("flowchart"), "{}", drawing.text);
    let drawing = server
        .client
        .get("/api/teams/support/graph?format=dot")
        .await;
    assert!(drawing.text.starts_with("digraph"), "{}", drawing.text);
    let check = server.client.get("/api/teams/support/check").await.ok();
    assert!(check["findings"].is_array());
    assert_eq!(
        server.client.get("/api/teams/other").await.error_code().0,
        404
    );
}

#[tokio::test]
async fn a_conversation_may_begin_with_any_agent() {
    let server = TestServer::start().await;
    let path = "/api/conversations/c1/messages";
    let body = json!({"input": "hello", "agent": "Billing"});
    assert_eq!(
        server.client.post(path, body).await.ok()["output"],
        "Billing: you said hello"
    );
    let body = json!({"input": "hello", "agent": "Nobody"});
    assert_eq!(server.client.post(path, body).await.error_code().0, 404);
}

#[tokio::test]
async fn the_document_is_served() {
    let server = TestServer::start().await;
    let document = server.client.get("/api/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let message = &document["components"]["schemas"]["MessageBody"];
    assert_eq!(message["required"], json!(["input"]));
}

#[tokio::test]
async fn with_a_conversation_its_events_are_gone_and_their_readers_at_the_end() {
    let server = TestServer::start().await;
    let client = &server.client;
    let path = "/api/conversations/c/messages";
    let body = json!({"input": "my secret"});
    let request = client
        .request("POST", path)
        .header("Idempotency-Key", "once");
    let run = answer(with_json(request, &body)).await.ok();
    let run = format!("/api/runs/{}", run["id"].as_str().unwrap());
    let events = format!("{run}/events");
    assert!(client.get(&events).await.text.contains("my secret"));
    assert_eq!(client.delete("/api/conversations/c").await.status, 204);
    for path in [&run, &events] {
        let gone = client.get(path).await;
        assert_eq!(gone.status, 404, "{}", gone.text);
    }
    assert!(!client.get("/api/runs").await.text.contains(&run));
    // The same message is another one now.
    let request = client
        .request("POST", path)
        .header("Idempotency-Key", "once");
    let again = answer(with_json(request, &body)).await.ok();
    assert_ne!(format!("/api/runs/{}", again["id"].as_str().unwrap()), run);

    // A run under way is cancelled, and whoever follows it is at the end.
    let slow = json!({"input": "slow", "stream": true});
    let request = with_json(
        client.request("POST", "/api/conversations/d/messages"),
        &slow,
    );
    let mut following = client.open(request).await;
    following.next().await.unwrap();
    let run = following.headers["x-run-id"].to_str().unwrap().to_owned();
    let deleted = client.delete("/api/conversations/d").await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let rest = tokio::time::timeout(std::time::Duration::from_secs(5), following.rest());
    rest.await
        .expect("the stream of a deleted conversation goes on");
    assert_eq!(client.get(&format!("/api/runs/{run}")).await.status, 404);
}
