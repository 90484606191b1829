//! Decisions that were cut off or came to nothing, and waits that look alike.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::conversation::{
    Commit, ConversationStore, Conversations, Entry, EntryContent, Expected,
};
use switchboard_server::Limits;
use tokio::sync::Semaphore;

use super::{
    AGENT, approval, approve, begin, begin_approval, error_code, listed, message, reply, request,
    result, send, slow_refunds, state, summary, texts,
};
use crate::support::{PATIENCE, SseEvent, TestServer, until, with_json};
use crate::watched_store::WatchedStore;

/// A server with a store, whose messages do not wait long for their conversation.
async fn impatient(store: Conversations) -> TestServer {
    let mut limits = Limits::default();
    limits.conversation_wait = Duration::from_millis(50);
    TestServer::with(|builder| builder.conversations(store).limits(limits)).await
}

/// The name that a task is stored under.
fn record_name(task: &Value) -> String {
    format!("~task/{}", task["id"].as_str().unwrap())
}

/// Leaves a task that waits as a process does that is killed once it has stored that it goes on with it.
async fn kill_while_it_goes_on(store: &Conversations, task: &Value) {
    let name = record_name(task);
    let head = store.get(name.as_str()).head().await.unwrap().unwrap();
    let next = head.revision.next;
    let stored = ConversationStore::read(store, &name, next - 1..next);
    let stored = stored.await.unwrap();
    let mut record: Value = serde_json::from_str(stored[0].content.as_json()).unwrap();
    record["task"]["status"] = json!({
        "state": "TASK_STATE_WORKING", "timestamp": "2026-01-01T00:00:00.000Z",
    });
    record["run"] = json!("run_00000000000000000000000000000000");
    record["process"] = json!("another");
    let item = switchboard_core::Item::from_json(record.to_string()).unwrap();
    let entry = Entry::new(EntryContent::Item(item));
    let mut commit = Commit::new(Expected::Any, vec![entry]);
    commit.details = head.details;
    ConversationStore::commit(store, &name, commit)
        .await
        .unwrap();
}

/// The number of times that a task was stored.
async fn times_stored(store: &Conversations, task: &Value) -> u64 {
    let head = store.get(record_name(task)).head().await.unwrap();
    head.unwrap().revision.next
}

#[tokio::test]
async fn a_task_whose_decision_is_made_again_after_its_process_was_killed_is_completed() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    kill_while_it_goes_on(&store, &waits).await;
    // Nobody has asked for the task since.
    approve(client, &waits).await.ok();
    let completed = json!({"status": "TASK_STATE_COMPLETED"});
    assert_eq!(listed(client, completed).await, ["COMPLETED"]);
    let done = result(client, "GetTask", json!({"id": waits["id"]})).await;
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);

    let waits = send(client, message("refund my bill")).await;
    kill_while_it_goes_on(&store, &waits).await;
    assert_eq!(state(client, &waits).await, "INPUT_REQUIRED");
    let done = send(client, reply(&waits, "approve")).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");

    let waits = send(client, message("refund my bill")).await;
    kill_while_it_goes_on(&store, &waits).await;
    let mut other = message("never mind");
    other["contextId"] = waits["contextId"].clone();
    send(client, other).await;
    assert_eq!(state(client, &waits).await, "CANCELED");
}

#[tokio::test]
async fn a_decision_that_does_not_get_its_conversation_leaves_the_task_waiting_with_the_reason() {
    let store = Conversations::in_memory();
    let server = impatient(store.clone()).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    let context = waits["contextId"].as_str().unwrap();
    let lease = ConversationStore::lease(&store, context, "another", PATIENCE);
    assert!(lease.await.unwrap());
    let again = send(client, reply(&waits, "approve")).await;
    assert_eq!(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let parts = again["status"]["message"]["parts"].as_array().unwrap();
    let asked = &waits["status"]["message"]["parts"];
    assert_eq!(json!(parts[..2]), *asked);
    let reason = parts[2]["text"].as_str().unwrap();
    assert!(
        reason.starts_with("The last answer was not carried out: ")
            && reason.contains("nothing was run"),
        "{reason}"
    );
    // A stream tells the same.
    let path = format!("{AGENT}/message:stream");
    let body = json!({"message": reply(&waits, "approve")});
    let sent = with_json(request(client, "POST", &path), &body);
    let updates = client.open(sent).await.rest().await;
    let updates: Vec<Value> = updates.iter().map(SseEvent::json).collect();
    assert_eq!(summary(&updates).0, ["WORKING", "INPUT_REQUIRED"]);
    let last = updates.last().unwrap();
    let parts = last["statusUpdate"]["status"]["message"]["parts"].as_array();
    assert_eq!(parts.unwrap().len(), 3);

    ConversationStore::release(&store, context, "another")
        .await
        .unwrap();
    let done = send(client, reply(&waits, "approve")).await;
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
}

#[tokio::test]
async fn a_decision_that_is_cancelled_by_its_run_leaves_the_task_and_the_call_waiting() {
    let gate = Arc::new(Semaphore::new(0));
    let server = slow_refunds(Conversations::in_memory(), &gate).await;
    let client = &server.client;
    let waits = send(client, message("a refund")).await;
    let parameters = json!({"message": reply(&waits, "approve"),
                            "configuration": {"returnImmediately": true}});
    result(client, "SendMessage", parameters).await;
    let runs = client.get("/api/runs").await.ok();
    let run = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    client
        .post(&format!("/api/runs/{run}/cancel"), json!({}))
        .await
        .ok();
    let again = result(client, "GetTask", json!({"id": waits["id"]})).await;
    assert_eq!(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let parts = &again["status"]["message"]["parts"];
    assert_eq!(
        parts[2]["text"],
        "The last answer was not carried out: The run was cancelled."
    );
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"].as_array().unwrap().len(), 1);
    gate.add_permits(1);
    let done = send(client, reply(&waits, "approve")).await;
    assert_eq!(texts(&done), ["Clerk: I got paid."]);
}

#[tokio::test]
async fn a_task_that_cannot_be_cancelled_at_once_is_cancelled_with_its_wait_or_not_at_all() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    let cancel = async |task: &Value| {
        let parameters = json!({"id": task["id"]});
        super::call(client, "CancelTask", parameters).await.json()
    };
    // Its wait cannot be ended.
    let waits = send(client, message("refund my bill")).await;
    watched.fail_writes(waits["contextId"].as_str().unwrap());
    assert!(!cancel(&waits).await["error"].is_null());
    assert_eq!(state(client, &waits).await, "INPUT_REQUIRED");
    watched.heal();
    let cancelled = cancel(&waits).await;
    assert_eq!(
        cancelled["result"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    let late = approve(client, &waits).await;
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
    // It cannot be stored once its wait has ended.
    let waits = send(client, message("refund my bill")).await;
    watched.fail_writes("~task/");
    assert!(!cancel(&waits).await["error"].is_null());
    watched.heal();
    assert_eq!(state(client, &waits).await, "CANCELED");
    let late = approve(client, &waits).await;
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
}

#[tokio::test]
async fn messages_that_decide_nothing_are_answered_without_storing_ever_more() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    let before = times_stored(&store, &waits).await;
    let long = format!("well {}", "w".repeat(20_000));
    for text in [long.as_str()].into_iter().chain(["hm"; 20]) {
        let again = send(client, reply(&waits, text)).await;
        let asked = &again["status"]["message"]["parts"][0]["text"];
        assert!(asked.as_str().unwrap().starts_with("This is no decision."));
    }
    assert_eq!(times_stored(&store, &waits).await, before + 8);
    let stored = result(client, "GetTask", json!({"id": waits["id"]})).await;
    assert_eq!(stored["history"].as_array().unwrap().len(), 1 + 8);
    let done = send(client, reply(&waits, "approve")).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_decision_is_carried_out_though_its_client_goes_before_it_begins() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    for by_api in [true, false] {
        let waits = send(client, message("refund my bill")).await;
        watched.hold_back("~resumed/");
        let request = if by_api {
            let (path, body) = approval(&waits);
            with_json(client.request("POST", &path), &body)
        } else {
            let body = json!({"message": reply(&waits, "approve")});
            with_json(
                request(client, "POST", &format!("{AGENT}/message:send")),
                &body,
            )
        };
        let sent = tokio::spawn(request.send());
        until(|| async { watched.take_is_held() }).await;
        sent.abort();
        assert!(sent.await.unwrap_err().is_cancelled());
        // The server notices that the client has gone.
        tokio::time::sleep(Duration::from_millis(50)).await;
        watched.release();
        until(|| async { state(client, &waits).await == "COMPLETED" }).await;
    }
}

#[tokio::test]
async fn a_task_is_not_taken_for_a_later_one_that_waits_for_the_same_person() {
    let server = TestServer::start().await;
    let client = &server.client;
    let first = send(client, message("a person")).await;
    let context = first["contextId"].as_str().unwrap();
    let path = format!("/api/conversations/{context}/answers");
    client.post(&path, json!({"text": "I am here."})).await.ok();
    // Nobody has asked for the task since.
    let mut next = message("are you still there?");
    next["contextId"] = first["contextId"].clone();
    let second = send(client, next).await;
    assert_eq!(second["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let late = json!({"message": reply(&first, "an answer to the second question")});
    assert_eq!(error_code(client, "SendMessage", late).await, -32004);
    let done = result(client, "GetTask", json!({"id": first["id"]})).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done), ["I am here."]);
    let done = send(client, reply(&second, "I am.")).await;
    assert_eq!(texts(&done), ["I am."]);
}

#[tokio::test]
async fn a_task_is_not_taken_for_one_of_another_conversation_of_the_same_name() {
    let server = TestServer::start().await;
    let client = &server.client;
    let begin = async || {
        let mut begun = message("a person");
        begun["contextId"] = json!("desk");
        send(client, begun).await
    };
    let first = begin().await;
    let deleted = client.request("DELETE", "/api/conversations/desk");
    assert_eq!(crate::support::answer(deleted).await.status, 204);
    let second = begin().await;
    assert_eq!(second["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(state(client, &first).await, "CANCELED");
    let done = send(client, reply(&second, "I am here.")).await;
    assert_eq!(texts(&done), ["I am here."]);
}

#[tokio::test]
async fn a_run_that_fails_is_a_failed_task_though_its_end_cannot_be_noted() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    for (text, end) in [
        ("refund my bill, which breaks", "FAILED"),
        ("refund my bill", "COMPLETED"),
    ] {
        let waits = send(client, message(text)).await;
        watched.hold_back("~resumed/");
        let approved = {
            let (client, waits) = (client.clone(), waits.clone());
            tokio::spawn(async move { approve(&client, &waits).await })
        };
        until(|| async { watched.take_is_held() }).await;
        watched.fail_writes("~resumed/");
        watched.release();
        approved.await.unwrap().ok();
        watched.heal();
        assert_eq!(state(client, &waits).await, end);
    }
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_when_its_run_ends_is_still_listed_as_waiting() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    let context = waits["contextId"].as_str().unwrap();
    let lease = ConversationStore::lease(&store, context, "another", PATIENCE);
    assert!(lease.await.unwrap());
    let (events, run) = begin_approval(client, &waits).await;
    watched.fail_reads(context);
    client
        .post(&format!("/api/runs/{run}/cancel"), json!({}))
        .await
        .ok();
    drop(events);
    watched.heal();
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"][0]["conversation"], context);
    assert_eq!(state(client, &waits).await, "INPUT_REQUIRED");
}

#[tokio::test]
async fn a_decision_that_fails_is_a_failed_task_though_its_first_events_were_dropped() {
    let mut limits = Limits::default();
    limits.events = 1;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill, which breaks")).await;
    let failed = send(client, reply(&waits, "approve")).await;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(state(client, &waits).await, "FAILED");
}

#[tokio::test]
async fn a_task_whose_end_could_not_be_stored_is_told_as_it_is_once_the_store_answers() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let held = Conversations::new(watched.clone());
    let server = TestServer::with(|builder| builder.conversations(held)).await;
    let client = &server.client;
    let slow = begin(client, "a slow answer").await;
    watched.hold_back("~waiting/");
    let waits = begin(client, "refund my bill").await;
    until(|| async { watched.take_is_held() }).await;
    watched.fail_writes("~task/");
    watched.release();
    server.model.gate.add_permits(1);
    until(|| async {
        let runs = client.get("/api/runs").await.ok();
        let mut runs = runs["runs"].as_array().unwrap().iter();
        runs.all(|run| run["status"] != "running")
    })
    .await;
    watched.heal();
    let completed = json!({"status": "TASK_STATE_COMPLETED"});
    assert_eq!(listed(client, completed).await, ["COMPLETED"]);
    let slow = result(client, "GetTask", json!({"id": slow["id"]})).await;
    assert_eq!(texts(&slow), ["Triage: you said a slow answer"]);
    let done = send(client, reply(&waits, "approve")).await;
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
}

#[tokio::test]
async fn a_task_is_cancelled_though_its_client_goes_meanwhile() {
    let store = Conversations::in_memory();
    let watched = WatchedStore::new(&store);
    let server = impatient(Conversations::new(watched.clone())).await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    watched.hold_back(waits["contextId"].as_str().unwrap());
    let path = format!("{AGENT}/tasks/{}:cancel", waits["id"].as_str().unwrap());
    let sent = tokio::spawn(with_json(request(client, "POST", &path), &json!({})).send());
    until(|| async { watched.take_is_held() }).await;
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    // The server notices that the client has gone.
    tokio::time::sleep(Duration::from_millis(50)).await;
    watched.release();
    until(|| async { state(client, &waits).await == "CANCELED" }).await;
    let mut next = message("and now?");
    next["contextId"] = waits["contextId"].clone();
    let next = send(client, next).await;
    assert_eq!(next["status"]["state"], "TASK_STATE_COMPLETED");
}
