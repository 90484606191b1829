//! Messages as tasks: their answers, their streams, their ends.

use serde_json::{Value, json};
use switchboard_core::output::OutputType;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Team};
use switchboard_server::ServedTeam;

use super::{
    AGENT, call, error_code, message, reply, request, result, send, stream, summary, texts,
};
use crate::support::{PATIENCE, SseEvent, TestServer, until, with_json};

#[tokio::test]
async fn a_message_is_a_task_whose_artifacts_are_the_answers() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("my bill")).await;
    let (id, context) = (
        task["id"].as_str().unwrap(),
        task["contextId"].as_str().unwrap(),
    );
    assert_eq!(
        task,
        json!({
            "id": id, "contextId": context,
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": task["status"]["timestamp"]},
            "artifacts": [{
                "artifactId": "message-1", "name": "Billing",
                "parts": [{"text": "Billing: you said my bill"}],
                "metadata": {"switchboard": {"agent": "Billing"}},
            }],
            "history": [{"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "my bill"}],
                         "contextId": context, "taskId": id}],
            "metadata": {"switchboard": {
                "agent": "Billing",
                "handoffs": [{"from": "Triage", "to": "Billing", "status": "taken"}],
                "usage": {"requests": 1, "inputTokens": 10, "outputTokens": 5},
            }},
        })
    );
    // The context is the conversation, for every protocol.
    let shown = server
        .client
        .get(&format!("/api/conversations/{context}"))
        .await
        .ok();
    assert_eq!(
        (&shown["agent"], &shown["team"]),
        (&json!("Billing"), &json!("support"))
    );
    let mut second = message("and now?");
    second["contextId"] = context.into();
    let second = send(&server.client, second).await;
    assert_eq!(second["contextId"], context);
    assert_ne!(second["id"], id);
    assert_eq!(texts(&second), ["Billing: you said and now?"]);
    // The same over HTTP+JSON.
    let path = format!("{AGENT}/tasks/{id}");
    let got = crate::support::answer(request(&server.client, "GET", &path)).await;
    assert_eq!(got.headers["content-type"], "application/json");
    assert_eq!(got.ok(), task);
    let body = json!({"message": message("my bill"), "configuration": {"historyLength": 0}});
    let sent = request(&server.client, "POST", &format!("{AGENT}/message:send"));
    let sent = sent
        .header("content-type", "application/a2a+json")
        .body(body.to_string());
    let sent = crate::support::answer(sent).await;
    assert_eq!(sent.headers["content-type"], "application/a2a+json");
    let sent = sent.ok();
    assert_eq!(texts(&sent["task"]), ["Billing: you said my bill"]);
    assert!(sent["task"]["history"].is_null(), "{sent}");
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_ends_with_its_last_state() {
    let server = TestServer::start().await;
    let updates = stream(
        &server.client,
        "SendStreamingMessage",
        json!({"message": message("my bill")}),
    )
    .await;
    assert_eq!(
        updates[0]["task"]["status"]["state"],
        "TASK_STATE_SUBMITTED"
    );
    let (states, text) = summary(&updates);
    assert_eq!(states, ["SUBMITTED", "WORKING", "COMPLETED"]);
    assert_eq!(text, "Billing: you said my bill");
    let handoffs: Vec<&Value> = updates
        .iter()
        .map(|update| &update["statusUpdate"]["metadata"]["switchboard"]["handoff"])
        .filter(|handoff| !handoff.is_null())
        .collect();
    assert_eq!(
        handoffs,
        [&json!({"from": "Triage", "to": "Billing", "status": "taken"})]
    );
    let pieces: Vec<&Value> = updates
        .iter()
        .map(|update| &update["artifactUpdate"])
        .filter(|update| !update.is_null())
        .collect();
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!(
        (&pieces[0]["append"], &pieces[0]["lastChunk"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        (&pieces[1]["append"], &pieces[1]["lastChunk"]),
        (&json!(true), &json!(false))
    );
    let last = pieces.last().unwrap();
    assert_eq!(
        (&last["append"], &last["lastChunk"]),
        (&json!(true), &json!(true))
    );
    // Everything is stored when the stream ends.
    let id = &updates[0]["task"]["id"];
    let task = result(&server.client, "GetTask", json!({"id": id})).await;
    assert_eq!(texts(&task), ["Billing: you said my bill"]);
    // Over HTTP+JSON the events are the same, without the envelope.
    let body = json!({"message": message("my bill")});
    let sent = request(&server.client, "POST", &format!("{AGENT}/message:stream"));
    let events = server
        .client
        .open(with_json(sent, &body))
        .await
        .rest()
        .await;
    let updates: Vec<Value> = events.iter().map(SseEvent::json).collect();
    assert_eq!(summary(&updates).1, "Billing: you said my bill");
}

#[tokio::test]
async fn a_task_that_runs_is_read_followed_and_cancelled() {
    let server = TestServer::start().await;
    let client = &server.client;
    let body = json!({"message": message("slow"), "configuration": {"returnImmediately": true}});
    let begun = result(client, "SendMessage", body).await["task"].clone();
    let id = begun["id"].clone();
    assert!(
        ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]
            .contains(&begun["status"]["state"].as_str().unwrap())
    );
    until(|| async {
        let task = result(client, "GetTask", json!({"id": id})).await;
        task["artifacts"][0]["parts"][0]["text"] == "Triage: "
    })
    .await;
    // A message to it is refused while it runs.
    assert_eq!(
        error_code(
            client,
            "SendMessage",
            json!({"message": reply(&begun, "more")})
        )
        .await,
        -32004
    );
    // A reader that comes later gets the task as it is, and then the rest.
    let path = format!("{AGENT}/tasks/{}:subscribe", id.as_str().unwrap());
    let mut late = client.open(request(client, "POST", &path)).await;
    let first = late.next().await.unwrap().json();
    assert_eq!(
        first["task"]["artifacts"][0]["parts"][0]["text"],
        "Triage: "
    );
    let path = format!("{AGENT}/tasks/{}:cancel", id.as_str().unwrap());
    let cancelled = crate::support::answer(request(client, "POST", &path))
        .await
        .ok();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let rest: Vec<Value> = late.rest().await.iter().map(SseEvent::json).collect();
    assert_eq!(
        rest.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    assert_eq!(
        error_code(client, "CancelTask", json!({"id": id})).await,
        -32002
    );
    assert_eq!(
        error_code(client, "SubscribeToTask", json!({"id": id})).await,
        -32004
    );
}

#[tokio::test]
async fn an_answer_of_a_type_is_data() {
    let model = ScriptedModel::new().say(r#"{"total": 5}"#);
    let schema = json!({"type": "object", "properties": {"total": {"type": "integer"}},
                        "required": ["total"], "additionalProperties": false});
    let output = OutputType::described_by("Bill", schema).unwrap();
    let team: Team = Team::new()
        .agent(Agent::new("Clerk").model(model).output_as(output))
        .build()
        .unwrap();
    let server =
        TestServer::with(|builder| builder.team(ServedTeam::new("clerks", team, ()))).await;
    let body = json!({"message": message("how much?")});
    let sent = request(&server.client, "POST", "/a2a/clerks/message:send");
    let sent = crate::support::answer(with_json(sent, &body)).await.ok();
    assert_eq!(
        sent["task"]["artifacts"],
        json!([{
            "artifactId": "message-1", "name": "Clerk",
            "parts": [{"data": {"total": 5}, "mediaType": "application/json"}],
            "metadata": {"switchboard": {"agent": "Clerk"}},
        }])
    );
}

#[tokio::test]
async fn a_run_that_fails_is_a_failed_task() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("fail")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    let text = task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("the provider is down"), "{text}");
}

#[tokio::test]
async fn a_task_of_a_server_that_drains_ends_with_it() {
    let server = TestServer::start().await;
    let body = json!({"message": message("slow"), "configuration": {"returnImmediately": true}});
    let task = result(&server.client, "SendMessage", body).await["task"].clone();
    let path = format!("{AGENT}/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let mut late = server
        .client
        .open(request(&server.client, "POST", &path))
        .await;
    late.next().await.unwrap();
    let service = server.service.clone();
    let draining =
        tokio::spawn(async move { service.drain(std::time::Duration::from_millis(100)).await });
    let rest: Vec<Value> = late.rest().await.iter().map(SseEvent::json).collect();
    assert_eq!(
        rest.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_FAILED"
    );
    tokio::time::timeout(PATIENCE, draining)
        .await
        .unwrap()
        .unwrap();
    let refused = call(
        &server.client,
        "SendMessage",
        json!({"message": message("hello")}),
    )
    .await;
    assert_eq!(refused.status, 503);
}
