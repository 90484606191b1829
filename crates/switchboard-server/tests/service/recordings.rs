//! What happened in a run, and why.

use serde_json::{Value, json};
use switchboard_core::filters;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Team, handoff};
use switchboard_server::{Keys, RecordingLimits, ServedTeam, make_key};

use crate::support::{Client, TestServer};

async fn recording_server() -> TestServer {
    TestServer::with(|builder| builder.record(RecordingLimits::default())).await
}

/// Sends a message, and returns the identifier of its run.
async fn send(client: &Client, conversation: &str, text: &str) -> String {
    let path = format!("/api/conversations/{conversation}/messages");
    let run = client.post(&path, json!({"input": text})).await.ok();
    run["id"].as_str().unwrap().to_owned()
}

fn rows(page: &Value) -> Vec<(String, String, String)> {
    let rows = page["rows"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (text(&row["kind"]), text(&row["name"]), text(&row["status"])))
        .collect()
}

fn row<'a>(page: &'a Value, kind: &str, name: &str) -> &'a Value {
    let rows = page["rows"].as_array().unwrap().iter();
    let mut found = rows.filter(|row| row["kind"] == kind && row["name"] == name);
    found.next().unwrap()
}

#[tokio::test]
async fn a_run_is_recorded_with_what_was_sent_and_what_came_back() {
    let server = recording_server().await;
    let client = &server.client;
    let run = send(client, "c", "my bill").await;
    let page = client.get(&format!("/api/runs/{run}/recording")).await.ok();
    let expected = [
        ("run", "Agent workflow", "ok"),
        ("agent", "Triage", "ok"),
        ("turn", "1", "ok"),
        ("model", "rules", "ok"),
        ("handoff", "Triage → Billing", "ok"),
        ("agent", "Billing", "ok"),
        ("turn", "2", "ok"),
        ("model", "rules", "ok"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(rows(&page), expected);
    assert_eq!(page["recording"]["status"], "completed");
    assert_eq!(page["recording"]["tokens"]["output"], 5);
    assert_eq!(page["next"], Value::Null);

    let model = client
        .get(&format!("/api/runs/{run}/recording/4"))
        .await
        .ok();
    assert_eq!(model["row"]["summary"], "transfer_to_billing({})");
    let details = &model["details"];
    assert_eq!(
        details["input"],
        json!([{"content": "my bill", "role": "user"}])
    );
    let handoffs: Vec<&str> = details["handoffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|handoff| handoff["tool"].as_str().unwrap())
        .collect();
    assert_eq!(handoffs, ["transfer_to_billing", "transfer_to_ann"]);
    assert_eq!(details["output"][0]["name"], "transfer_to_billing");

    let listed = client.get("/api/conversations/c/recordings").await.ok();
    assert_eq!(listed["recordings"][0]["run"], run);
    assert_eq!(
        client
            .get(&format!("/api/runs/{run}/recording/99"))
            .await
            .status,
        404
    );
    let trace = client.get("/api/conversations/c/export?format=trace").await;
    assert_eq!(trace.text.lines().count(), 8);
}

#[tokio::test]
async fn a_handoff_shows_the_record_beside_what_the_next_agent_saw_and_what_each_filter_did() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?");
    let filter = filters::remove_all_tools().then(filters::redact_pii());
    let team: Team = Team::new()
        .agent(
            Agent::new("Triage")
                .handoff(handoff("Billing").filter(filter))
                .model(model.clone()),
        )
        .agent(Agent::new("Billing").model(model))
        .build()
        .unwrap();
    let server = TestServer::with(|builder| {
        builder
            .team(ServedTeam::new("filtered", team, ()))
            .record(RecordingLimits::default())
    })
    .await;
    let body = json!({"input": "Mail me at ann@example.com", "team": "filtered"});
    let run = server
        .client
        .post("/api/conversations/c/messages", body)
        .await
        .ok();
    let run = run["id"].as_str().unwrap();
    let path = format!("/api/runs/{run}/recording");
    let page = server.client.get(&path).await.ok();
    let id = &row(&page, "handoff", "Triage → Billing")["id"];
    let details = server.client.get(&format!("{path}/{id}")).await.ok()["details"].clone();
    assert_eq!(details["outcome"], "taken");
    assert_eq!(details["record"].as_array().unwrap().len(), 3);
    let seen = details["seen"].as_array().unwrap();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].to_string().contains("ann@example.com"), "{seen:?}");
    assert_eq!(
        details["diff"],
        json!([
            {"status": "removed", "record": 0, "seen": null},
            {"status": "removed", "record": 1, "seen": null},
            {"status": "removed", "record": 2, "seen": null},
            {"status": "added", "record": null, "seen": 0},
        ])
    );
    let steps = details["steps"].as_array().unwrap();
    let names: Vec<&Value> = steps.iter().map(|step| &step["filter"]).collect();
    assert_eq!(names, ["remove_all_tools", "redact_pii"]);
    assert_eq!(
        steps[0]["diff"],
        json!([
            {"status": "same", "record": 0, "seen": 0},
            {"status": "removed", "record": 1, "seen": null},
            {"status": "removed", "record": 2, "seen": null},
        ])
    );
    assert_eq!(
        steps[1]["diff"],
        json!([{"status": "changed", "record": 0, "seen": 0}])
    );
}

#[tokio::test]
async fn a_recording_is_read_while_the_run_goes_on_and_ends_with_it() {
    let server = recording_server().await;
    let client = &server.client;
    let body = json!({"input": "slow bill", "stream": true});
    let request = client.request("POST", "/api/conversations/c/messages");
    let mut stream = client.open(crate::support::with_json(request, &body)).await;
    let run = stream.headers["x-run-id"].to_str().unwrap().to_owned();
    loop {
        let event = stream.next().await.unwrap();
        if event.name.as_deref() == Some("text_delta") {
            break;
        }
    }
    let path = format!("/api/runs/{run}/recording");
    let page = client.get(&path).await.ok();
    assert_eq!(page["recording"]["status"], "running");
    let asked = page["rows"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&asked["kind"], &asked["status"]),
        (&json!("model"), &json!("running"))
    );

    let followed = client
        .open(client.request("GET", &format!("{path}/events")))
        .await;
    server.model.gate.add_permits(1);
    let events = followed.rest().await;
    assert_eq!(events.last().unwrap().name.as_deref(), Some("end"));
    let last = client
        .get(&format!("{path}?changed_after={}", page["seq"]))
        .await
        .ok();
    assert_eq!(last["recording"]["status"], "completed");
    let changed = last["rows"].as_array().unwrap();
    assert!(
        changed
            .iter()
            .any(|row| row["id"] == asked["id"] && row["status"] == "ok")
    );
    let nothing = client
        .get(&format!("{path}?changed_after={}", last["seq"]))
        .await
        .ok();
    assert_eq!(nothing["rows"], json!([]));
}

#[tokio::test]
async fn recordings_are_bounded_and_go_with_their_conversation() {
    let mut limits = RecordingLimits::default();
    limits.runs = 2;
    limits.rows = 3;
    let server = TestServer::with(|builder| builder.record(limits)).await;
    let client = &server.client;
    let first = send(client, "a", "hello").await;
    let second = send(client, "b", "my bill").await;
    let third = send(client, "c", "hello").await;
    let status = async |run: &str| {
        client
            .get(&format!("/api/runs/{run}/recording"))
            .await
            .status
    };
    assert_eq!(
        (
            status(&first).await,
            status(&second).await,
            status(&third).await
        ),
        (404, 200, 200)
    );
    let page = client
        .get(&format!("/api/runs/{second}/recording"))
        .await
        .ok();
    assert_eq!(
        (&page["recording"]["rows"], &page["recording"]["dropped"]),
        (&json!(3), &json!(5))
    );
    assert_eq!(client.delete("/api/conversations/c").await.status, 204);
    assert_eq!(status(&third).await, 404);
}

#[tokio::test]
async fn the_recording_of_a_conversation_that_is_not_stored_goes_with_it() {
    let server = recording_server().await;
    let client = &server.client;
    let last = async || client.get("/api/runs").await.ok()["runs"][0].clone();
    let body = json!({"model": "support", "input": "slow hidden", "store": false, "stream": true});
    let request = crate::support::with_json(client.request("POST", "/v1/responses"), &body);
    let stream = client.open(request).await;
    let run = last().await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{run}/recording");
    assert_eq!(client.get(&path).await.status, 200);
    server.model.gate.add_permits(1);
    stream.rest().await;
    crate::support::until(|| async { last().await.is_null() }).await;
    assert_eq!(client.get(&path).await.status, 404);
    let body = json!({"model": "support", "input": "kept"});
    client.post("/v1/responses", body).await.ok();
    let run = last().await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{run}/recording");
    assert_eq!(client.get(&path).await.status, 200);
}

#[tokio::test]
async fn nothing_is_recorded_unless_it_is_asked_for() {
    let server = TestServer::start().await;
    let run = send(&server.client, "c", "hello").await;
    let path = format!("/api/runs/{run}/recording");
    assert_eq!(server.client.get(&path).await.status, 404);
    let studio = server.client.get("/api/studio").await.ok();
    assert_eq!(studio["recording"], false);
}

#[tokio::test]
async fn recordings_waits_and_changes_of_another_tenant_are_not_seen() {
    let (alice, first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    let keys = Keys::from_entries([first, second]).unwrap();
    let server =
        TestServer::with(|builder| builder.keys(keys).record(RecordingLimits::default())).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let mut changes = bob.open(bob.request("GET", "/api/events")).await;
    assert_eq!(changes.next().await.unwrap().name.as_deref(), Some("hello"));
    let run = send(&alice, "secret", "refund my bill").await;
    for path in [
        format!("/api/runs/{run}/recording"),
        format!("/api/runs/{run}/recording/1"),
        format!("/api/runs/{run}/recording/events"),
        "/api/conversations/secret/turns".to_owned(),
        "/api/conversations/secret/export?format=json".to_owned(),
        "/api/conversations/secret/export?format=markdown".to_owned(),
        "/api/conversations/secret/export?format=trace".to_owned(),
        "/api/conversations/secret/export?format=case".to_owned(),
    ] {
        if path.ends_with("=case") && !cfg!(feature = "studio") {
            continue;
        }
        let answer = bob.get(&path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert!(!answer.text.contains("refund"));
        assert_eq!(alice.get(&path).await.status, 200, "{path}");
    }
    let resend = json!({"position": 0, "to": "mine"});
    let answer = bob.post("/api/conversations/secret/resend", resend).await;
    assert!([404, 409].contains(&answer.status), "{}", answer.text);
    let none = bob.get("/api/conversations/secret/recordings").await.ok();
    assert_eq!(none["recordings"], json!([]));
    assert_eq!(bob.get("/api/waiting").await.ok()["waiting"], json!([]));
    let waiting = alice.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"].as_array().unwrap().len(), 1);
    // The next change that Bob is told of is his own.
    send(&bob, "own", "hello").await;
    let change = changes.next().await.unwrap();
    assert_eq!(change.json()["id"], "own", "{change:?}");
}
