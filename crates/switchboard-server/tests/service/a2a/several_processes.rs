//! Tasks of several processes that share a store.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use tokio::sync::Semaphore;

use super::{
    AGENT, approve, begin, begin_approval, call, error_code, listed, message, reply, request,
    result, send, slow_refunds, state, summary, texts, until_said,
};
use crate::support::{TestServer, until, with_json};
use crate::watched_store::WatchedStore;

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

/// A connection of a process to the store in a file.
async fn open_file(folder: &Path) -> Conversations {
    let path = folder.join("conversations.db");
    let store = switchboard_sessions::open(&format!("sqlite:{}", path.display())).await;
    store.unwrap()
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

#[tokio::test]
async fn a_decision_that_was_cut_off_is_known_after_the_list_of_what_waits_was_read() {
    let store = Conversations::in_memory();
    let one = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let other = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let waits = send(&one.client, message("refund my bill slowly")).await;
    let (mut events, _) = begin_approval(&other.client, &waits).await;
    until_said(&mut events).await;
    until(|| async {
        end_leases(&store).await;
        let waiting = one.client.get("/api/waiting").await.ok();
        assert_eq!(waiting["waiting"], json!([]));
        state(&one.client, &waits).await == "FAILED"
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_decision_was_cut_off_before_it_was_carried_out_waits_again() {
    let store = Conversations::in_memory();
    let gate = Arc::new(Semaphore::new(0));
    let one = slow_refunds(store.clone(), &gate).await;
    let other = slow_refunds(store.clone(), &gate).await;
    let waits = send(&one.client, message("a refund")).await;
    let parameters = json!({"message": reply(&waits, "approve"),
                            "configuration": {"returnImmediately": true}});
    result(&other.client, "SendMessage", parameters).await;
    assert_eq!(state(&one.client, &waits).await, "WORKING");
    until(|| async {
        end_leases(&store).await;
        state(&one.client, &waits).await == "INPUT_REQUIRED"
    })
    .await;
    let input_required = json!({"status": "TASK_STATE_INPUT_REQUIRED"});
    assert_eq!(
        listed(&one.client, input_required).await,
        ["INPUT_REQUIRED"]
    );
    // The process was there after all: its own word counts.
    gate.add_permits(1);
    until(|| async { state(&one.client, &waits).await == "COMPLETED" }).await;
}

#[tokio::test]
async fn a_decision_that_fails_in_another_process_is_a_failed_task() {
    let (one, other) = two_servers().await;
    let waits = send(&one.client, message("refund my bill, which breaks")).await;
    approve(&other.client, &waits).await.ok();
    assert_eq!(state(&one.client, &waits).await, "FAILED");
}

#[tokio::test]
async fn a_task_that_another_process_has_changed_meanwhile_is_read_again() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let one = TestServer::with(|builder| builder.conversations(held)).await;
    let other = TestServer::with(|builder| builder.conversations(store)).await;
    let waits = send(&other.client, message("refund my bill twice")).await;
    approve(&other.client, &waits).await.ok();
    // One sees that the task waits for the second call, and is held up before it stores that.
    watched.hold_back("~task/");
    let asked = {
        let (client, waits) = (one.client.clone(), waits.clone());
        tokio::spawn(async move { state(&client, &waits).await })
    };
    until(|| async { watched.is_held() }).await;
    let done = send(&other.client, reply(&waits, "approve")).await;
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
    watched.release();
    assert_eq!(asked.await.unwrap(), "COMPLETED");
    let after = result(&one.client, "GetTask", json!({"id": waits["id"]})).await;
    assert_eq!(after, done);
}

#[tokio::test]
async fn a_decision_that_another_process_carries_out_is_cancelled_with_its_task() {
    let (one, other) = two_servers().await;
    let waits = send(&one.client, message("refund my bill slowly")).await;
    let (mut events, _) = begin_approval(&other.client, &waits).await;
    until_said(&mut events).await;
    let cancelled = result(&one.client, "CancelTask", json!({"id": waits["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(state(&other.client, &waits).await, "CANCELED");
    let late = approve(&other.client, &waits).await;
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_being_carried_out_is_neither_approved_again_nor_cancelled_beside_it() {
    let store = Conversations::in_memory();
    let gate = Arc::new(Semaphore::new(0));
    let one = slow_refunds(store.clone(), &gate).await;
    let other = slow_refunds(store.clone(), &gate).await;
    let waits = send(&one.client, message("a refund")).await;
    let (events, _) = begin_approval(&other.client, &waits).await;
    until(|| async { state(&one.client, &waits).await == "WORKING" }).await;
    for client in [&one.client, &other.client] {
        let again = approve(client, &waits).await;
        assert_eq!(again.error_code(), (409, "conflict".to_owned()));
        let again = json!({"message": reply(&waits, "approve")});
        assert_eq!(error_code(client, "SendMessage", again).await, -32004);
    }
    gate.add_permits(1);
    events.rest().await;
    until(|| async { state(&one.client, &waits).await == "COMPLETED" }).await;
    assert_eq!(gate.available_permits(), 0);

    // One that is cancelled meanwhile is not approved afterwards, and the wait is over.
    let waits = send(&one.client, message("a refund")).await;
    let (events, _) = begin_approval(&other.client, &waits).await;
    until(|| async { state(&one.client, &waits).await == "WORKING" }).await;
    let cancelled = result(&one.client, "CancelTask", json!({"id": waits["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    drop(events);
    for client in [&one.client, &other.client] {
        let late = approve(client, &waits).await;
        assert_eq!(late.error_code(), (409, "conflict".to_owned()));
        let waiting = client.get("/api/waiting").await.ok();
        assert_eq!(waiting["waiting"], json!([]));
    }
    assert_eq!(state(&other.client, &waits).await, "CANCELED");
}

#[tokio::test]
async fn a_task_that_is_approved_twice_at_once_is_carried_out_once() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(1_000));
    let one = slow_refunds(open_file(folder.path()).await, &gate).await;
    let other = slow_refunds(open_file(folder.path()).await, &gate).await;
    for round in 1..=20 {
        let waits = send(&one.client, message("a refund")).await;
        let by_message = async {
            let parameters = json!({"message": reply(&waits, "approve")});
            call(&one.client, "SendMessage", parameters).await
        };
        let (by_message, there, here) = tokio::join!(
            by_message,
            approve(&other.client, &waits),
            approve(&one.client, &waits),
        );
        // The one that was carried out says so; the others are refused, or did not get the conversation.
        let mut carried_out = 0;
        match by_message.json() {
            answer if answer["error"].is_null() => {
                let task = &answer["result"]["task"];
                assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
            }
            answer => assert_eq!(answer["error"]["code"], -32004, "{answer}"),
        }
        for answer in [there, here] {
            match (answer.status, answer.json()) {
                (200, run) if run["status"] == "completed" => carried_out += 1,
                (200, run) => assert_eq!(run["status"], "failed", "{run}"),
                _ => assert_eq!(answer.error_code(), (409, "conflict".to_owned())),
            }
        }
        assert!(carried_out <= 1, "{carried_out} decisions were carried out");
        let done = result(&one.client, "GetTask", json!({"id": waits["id"]})).await;
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        assert_eq!(texts(&done), ["Clerk: I got paid."]);
        assert_eq!(gate.available_permits(), 1_000 - round);
        let waiting = other.client.get("/api/waiting").await.ok();
        assert_eq!(waiting["waiting"], json!([]));
    }
}

#[tokio::test]
async fn a_task_that_is_approved_and_cancelled_at_once_is_one_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(1_000));
    let one = slow_refunds(open_file(folder.path()).await, &gate).await;
    let other = slow_refunds(open_file(folder.path()).await, &gate).await;
    for round in 0..20 {
        let waits = send(&one.client, message("a refund")).await;
        let before = gate.available_permits();
        let pause = std::time::Duration::from_micros(round * 400);
        let cancel = async {
            tokio::time::sleep(pause).await;
            call(&one.client, "CancelTask", json!({"id": waits["id"]})).await
        };
        let (cancelled, _) = tokio::join!(cancel, approve(&other.client, &waits));
        let state = state(&other.client, &waits).await;
        match state.as_str() {
            "CANCELED" => assert!(cancelled.json()["error"].is_null(), "{}", cancelled.text),
            "COMPLETED" => {
                assert_eq!(cancelled.json()["error"]["code"], -32002);
                assert_eq!(gate.available_permits(), before - 1);
            }
            other => panic!("{other}: {}", cancelled.text),
        }
        let late = approve(&other.client, &waits).await;
        assert_eq!(late.error_code(), (409, "conflict".to_owned()));
        let waiting = other.client.get("/api/waiting").await.ok();
        assert_eq!(waiting["waiting"], json!([]));
    }
}
