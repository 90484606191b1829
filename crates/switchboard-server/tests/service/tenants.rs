//! Every endpoint with the key of the wrong tenant.

mod routes;

use serde_json::{Value, json};
use switchboard_server::{Keys, RecordingLimits, make_key};

use crate::support::{Answer, Client, TestServer, with_json};

struct Tenants {
    server: TestServer,
    alice: Client,
    bob: Client,
    run: String,
    response: String,
}

/// Alice has a conversation, a run, a response, and calls that wait; Bob has a key.
async fn tenants() -> Tenants {
    let (alice, first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    let keys = Keys::from_entries([first, second]).unwrap();
    let server =
        TestServer::with(|builder| builder.keys(keys).record(RecordingLimits::default())).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let run = alice
        .post(
            "/api/conversations/secret/messages",
            json!({"input": "refund my bill"}),
        )
        .await
        .ok();
    let person = alice
        .post(
            "/api/conversations/asked/messages",
            json!({"input": "a person"}),
        )
        .await
        .ok();
    assert_eq!(
        (&run["status"], &person["status"]),
        (&json!("waiting"), &json!("waiting"))
    );
    let response = alice
        .post(
            "/v1/responses",
            json!({"model": "support", "input": "hidden"}),
        )
        .await
        .ok();
    Tenants {
        server,
        run: run["id"].as_str().unwrap().to_owned(),
        response: response["id"].as_str().unwrap().to_owned(),
        alice,
        bob,
    }
}

/// Asserts that an answer is the one for what does not exist.
fn assert_missing(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 404, "{what}: {}", answer.text);
    assert!(!answer.text.contains("alice"), "{}", answer.text);
}

#[tokio::test]
async fn nothing_of_another_tenant_is_seen_or_changed() {
    let tenants = tenants().await;
    let Tenants {
        bob,
        alice,
        run,
        response,
        ..
    } = &tenants;
    for path in [
        "/api/conversations/secret".to_owned(),
        format!("/api/runs/{run}"),
        format!("/api/runs/{run}/events"),
        format!("/v1/responses/{response}"),
        format!("/v1/responses/{response}/input_items"),
    ] {
        assert_missing(&bob.get(&path).await, &path);
        assert_eq!(alice.get(&path).await.status, 200, "{path}");
    }
    let call = json!({"decisions": [{"call_id": "call_1", "approve": true}]});
    for (path, body) in [
        ("/api/conversations/secret/decisions".to_owned(), call),
        (
            "/api/conversations/asked/answers".to_owned(),
            json!({"text": "I am Ann."}),
        ),
        (
            "/api/conversations/secret/fork".to_owned(),
            json!({"to": "mine"}),
        ),
        (format!("/api/runs/{run}/cancel"), json!({})),
        (format!("/v1/responses/{response}/cancel"), json!({})),
        (
            "/v1/responses".to_owned(),
            json!({"model": "support", "input": "x", "previous_response_id": response}),
        ),
    ] {
        assert_missing(&bob.post(&path, body).await, &path);
    }
    for path in [
        "/api/conversations/secret".to_owned(),
        format!("/v1/responses/{response}"),
    ] {
        assert_missing(&bob.delete(&path).await, &path);
    }
    assert_eq!(
        bob.get("/api/conversations").await.ok()["conversations"],
        json!([])
    );
    assert_eq!(bob.get("/api/runs").await.ok()["runs"], json!([]));
    assert_eq!(
        bob.get("/api/search?q=hidden").await.ok()["found"],
        json!([])
    );
    assert_eq!(
        alice.get("/api/search?q=hidden").await.ok()["found"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    // All of Alice's is as it was.
    let shown = alice.get("/api/conversations/secret").await.ok();
    assert_eq!(shown["waiting"].as_array().unwrap().len(), 1);
    alice.get(&format!("/v1/responses/{response}")).await.ok();
}

/// A request to an endpoint of the API; each new one that is about a conversation or a run has to be added.
fn body_for(operation: &str) -> Value {
    match operation {
        "messages" => json!({"input": "hello"}),
        "decisions" => json!({"decisions": [{"call_id": "call_1", "approve": true}]}),
        "answers" => json!({"text": "I am Ann."}),
        "fork" => json!({"to": "mine"}),
        "resend" => json!({"position": 0, "to": "mine"}),
        "cancel" => json!({}),
        other => panic!("no body for {other}"),
    }
}

#[tokio::test]
async fn no_endpoint_of_the_document_shows_or_changes_what_is_another_tenants() {
    let tenants = tenants().await;
    let (alice, bob) = (&tenants.alice, &tenants.bob);
    let document = alice.get("/api/openapi.json").await.ok();
    let before = alice.get("/api/conversations/secret").await.ok();
    let (mut tried, mut listed) = (0, 0);
    for (path, operations) in document["paths"].as_object().unwrap() {
        if !path.contains("{conversation}") && !path.contains("{run}") {
            // A list; the changes have no end.
            if operations.get("get").is_some() && path != "/api/events" {
                let path = path.replace("{team}", "support");
                let path = path.replace("{agent}", "Billing") + "?q=bill";
                let shown = bob.get(&path).await.text;
                let has_alices = shown.contains("my bill") || shown.contains(&tenants.run);
                assert!(!has_alices, "{path}: {shown}");
                listed += 1;
            }
            continue;
        }
        let last = path.rsplit('/').next().unwrap();
        let path = path
            .replace("{conversation}", "secret")
            .replace("{run}", &tenants.run)
            .replace("{row}", "1");
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let request = bob.request(&method, &path);
            let request = match &*method {
                "POST" => with_json(request, &body_for(last)),
                _ => request,
            };
            let answer = crate::support::answer(request).await;
            let what = format!("{method} {path}: {} {}", answer.status, answer.text);
            match (&*method, last) {
                // A conversation of Bob's own of that name, which is deleted again.
                ("POST", "messages") => {
                    assert_eq!(answer.json()["output"], "Triage: you said hello", "{what}");
                    assert_eq!(bob.delete("/api/conversations/secret").await.status, 204);
                }
                ("GET", "recordings") => assert_eq!(answer.json()["recordings"], json!([])),
                _ => assert!([400, 404, 409].contains(&answer.status), "{what}"),
            }
            assert!(!answer.text.contains("refund"), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 12 && listed > 8, "{tried} {listed}");
    let after = alice.get("/api/conversations/secret").await.ok();
    assert_eq!(after, before);
}

#[tokio::test]
async fn one_name_is_two_conversations_for_two_tenants() {
    let tenants = tenants().await;
    let Tenants { bob, alice, .. } = &tenants;
    let send = |client: &Client| {
        let client = client.clone();
        async move {
            client
                .post(
                    "/api/conversations/same/messages",
                    json!({"input": "hello"}),
                )
                .await
                .ok()
        }
    };
    send(alice).await;
    send(bob).await;
    let items = |shown: Value| shown["items"].as_array().unwrap().len();
    assert_eq!(items(bob.get("/api/conversations/same").await.ok()), 2);
    assert_eq!(items(alice.get("/api/conversations/same").await.ok()), 2);
    assert_eq!(bob.delete("/api/conversations/same").await.status, 204);
    assert_eq!(items(alice.get("/api/conversations/same").await.ok()), 2);
}

#[tokio::test]
async fn no_path_header_or_name_leads_to_another_tenant() {
    let tenants = tenants().await;
    let bob = &tenants.bob;
    for path in [
        "/api/conversations/alice%2Fsecret",
        "/api/conversations/..%2Falice%2Fsecret",
        "/api/conversations/bob%2F..%2Falice%2Fsecret",
        "/api/conversations/alice%5Csecret",
        "/api/conversations/secret%00",
        "/api/conversations/%7Eresponse%7Ex",
        "/api//conversations/secret",
        "/api/conversations/./secret",
    ] {
        let answer = bob.get(path).await;
        assert!(
            [400, 404].contains(&answer.status),
            "{path}: {}",
            answer.status
        );
    }
    for header in ["x-tenant", "x-openwebui-chat-id", "x-conversation-id"] {
        let body = json!({"model": "support", "messages": [{"role": "user", "content": "hello"}]});
        let request = with_json(bob.request("POST", "/v1/chat/completions"), &body)
            .header(header, "alice/secret");
        let answer = crate::support::answer(request).await;
        assert!([200, 400].contains(&answer.status));
        assert!(!answer.text.contains("refund"));
    }
    for conversation in ["alice/secret", "../alice/secret", "~response~x"] {
        let body = json!({"model": "support", "input": "x", "conversation": conversation});
        assert_eq!(bob.post("/v1/responses", body).await.status, 400);
        let body = json!({"to": conversation});
        assert_eq!(
            bob.post("/api/conversations/mine/fork", body).await.status,
            400
        );
    }
    assert_eq!(
        tenants.alice.get("/api/conversations/secret").await.ok()["waiting"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_calls_of_another_tenant_cannot_be_answered() {
    let tenants = tenants().await;
    let weather =
        json!({"type": "function", "name": "get_weather", "parameters": {"type": "object"}});
    let body = json!({"model": "support", "input": "weather", "tools": [weather]});
    let first = tenants.alice.post("/v1/responses", body).await.ok();
    let call = first["output"][0].clone();
    assert_eq!(call["name"], "get_weather");
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "snow"});
    // Bob's request is one of its own: nothing of Alice's conversation is in the answer, and hers still waits.
    let body = json!({"model": "support", "input": [call, output]});
    tenants.bob.post("/v1/responses", body).await;
    let id = first["conversation"]["id"].as_str().unwrap();
    let shown = tenants
        .alice
        .get(&format!("/api/conversations/{id}"))
        .await
        .ok();
    assert_eq!(shown["waiting"].as_array().unwrap().len(), 1);
    let body = json!({"model": "support", "input": [output], "previous_response_id": first["id"]});
    let done = tenants.alice.post("/v1/responses", body).await.ok();
    assert_eq!(
        done["output"][0]["content"][0]["text"],
        "Triage: I got snow."
    );
    drop(tenants.server);
}

#[tokio::test]
async fn an_idempotency_key_is_the_tenants_own() {
    let tenants = tenants().await;
    let send = |client: &Client, text: &str| {
        let request = with_json(
            client.request("POST", "/api/conversations/same/messages"),
            &json!({"input": text}),
        );
        crate::support::answer(request.header("Idempotency-Key", "k"))
    };
    let first = send(&tenants.alice, "one").await.ok();
    let second = send(&tenants.bob, "two").await.ok();
    assert_eq!(second["output"], "Triage: you said two");
    assert_ne!(first["id"], second["id"]);
}

#[tokio::test]
async fn only_a_key_for_it_reads_the_metrics() {
    let (plain, first) = make_key("acme").unwrap();
    let (reader, mut second) = make_key("monitoring").unwrap();
    second.metrics = true;
    let keys = Keys::from_entries([first, second]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    assert_eq!(server.client_with(&plain).get("/metrics").await.status, 404);
    assert_eq!(
        server.client_with(&reader).get("/metrics").await.status,
        200
    );
}
