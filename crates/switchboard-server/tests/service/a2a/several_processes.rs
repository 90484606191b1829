//! Tasks of several processes that share a store.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;

use super::{AGENT, begin, listed, message, reply, request, result, send, state, summary};
use crate::support::{TestServer, until, with_json};

/// Two processes, as far as the store can tell.
async fn two_servers() -> (TestServer, TestServer) {
    let store = Conversations::in_memory();
    let first = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let second = TestServer::with(|builder| builder.conversations(store)).await;
    (first, second)
}

#[tokio::test]
async fn a_task_of_another_process_is_told_as_it_is_there() {
    let (one, other) = two_servers().await;
    let task = begin(&one.client, "slow").await;
    assert_eq!(state(&other.client, &task).await, "WORKING");
    assert_eq!(listed(&other.client, json!({})).await, ["WORKING"]);
    let working = json!({"status": "TASK_STATE_WORKING"});
    assert_eq!(listed(&other.client, working).await, ["WORKING"]);
    // Whoever follows it in the other process gets its end.
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task["id"]}});
    let followed = with_json(request(&other.client, "POST", AGENT), &body);
    let mut followed = other.client.open(followed).await;
    let mut updates = vec![followed.next().await.unwrap()];
    one.model.gate.add_permits(1);
    until(|| async { state(&other.client, &task).await == "COMPLETED" }).await;
    updates.extend(followed.rest().await);
    let updates: Vec<Value> = updates
        .iter()
        .map(|event| event.json()["result"].clone())
        .collect();
    let (states, _) = summary(&updates);
    assert_eq!(states, ["WORKING", "COMPLETED"]);

    // One that waits, and is decided by the other process.
    let waits = send(&one.client, message("refund my bill")).await;
    assert_eq!(state(&other.client, &waits).await, "INPUT_REQUIRED");
    let done = send(&other.client, reply(&waits, "approve")).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(state(&one.client, &waits).await, "COMPLETED");
}

#[tokio::test]
async fn a_task_whose_decision_is_carried_out_by_another_process_is_under_way() {
    let (one, other) = two_servers().await;
    let waits = send(&one.client, message("refund my bill slowly")).await;
    assert_eq!(state(&one.client, &waits).await, "INPUT_REQUIRED");
    let context = waits["contextId"].as_str().unwrap();
    let path = format!("/api/conversations/{context}");
    let call = other.client.get(&path).await.ok()["waiting"][0]["call_id"].clone();
    let decided = {
        let (client, path) = (other.client.clone(), format!("{path}/decisions"));
        let mut body = json!({"decisions": [{"call_id": call, "approve": true}]});
        body["stream"] = json!(true);
        tokio::spawn(async move { client.events(&path, body).await })
    };
    until(|| async { state(&one.client, &waits).await != "INPUT_REQUIRED" }).await;
    assert_eq!(state(&one.client, &waits).await, "WORKING");
    other.model.gate.add_permits(1);
    decided.await.unwrap();
    until(|| async { state(&one.client, &waits).await == "COMPLETED" }).await;
}

/// Makes all processes look as if their leases were over, as after they were killed.
async fn end_leases(store: &Conversations) {
    for head in store.list(None).await.unwrap() {
        if head.id.starts_with("~process/") {
            store.delete(&head.id).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_task_whose_decision_was_cut_off_in_another_process_has_failed() {
    let store = Conversations::in_memory();
    let one = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let other = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let waits = send(&one.client, message("refund my bill slowly")).await;
    let context = waits["contextId"].as_str().unwrap();
    let path = format!("/api/conversations/{context}");
    let call = other.client.get(&path).await.ok()["waiting"][0]["call_id"].clone();
    let body = json!({"decisions": [{"call_id": call, "approve": true}], "stream": true});
    let decided = with_json(
        other.client.request("POST", &format!("{path}/decisions")),
        &body,
    );
    let _decided = other.client.open(decided).await;
    until(|| async {
        end_leases(&store).await;
        state(&one.client, &waits).await == "FAILED"
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_process_is_gone_has_failed() {
    let store = Conversations::in_memory();
    let one = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let other = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let task = begin(&one.client, "slow").await;
    assert_eq!(state(&other.client, &task).await, "WORKING");
    until(|| async {
        end_leases(&store).await;
        state(&other.client, &task).await == "FAILED"
    })
    .await;
    assert_eq!(listed(&other.client, json!({})).await, ["FAILED"]);
    // The process was there after all: its own word counts.
    one.model.gate.add_permits(1);
    until(|| async { state(&other.client, &task).await == "COMPLETED" }).await;
}

#[tokio::test]
async fn a_task_of_another_process_is_cancelled_there() {
    let (one, other) = two_servers().await;
    let task = begin(&one.client, "slow").await;
    let cancelled = result(&other.client, "CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(state(&one.client, &task).await, "CANCELED");
}
