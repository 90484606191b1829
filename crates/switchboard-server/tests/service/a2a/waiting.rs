//! Tasks that wait for decisions and people.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::conversation::{ConversationStore, Conversations};
use tokio::sync::Semaphore;

use super::{
    AGENT, approve, begin_approval, error_code, message, reply, request, result, send,
    slow_refunds, state, stream, summary, texts, until_said,
};
use crate::support::{PATIENCE, SseEvent, TestServer, until, with_json};

#[tokio::test]
async fn a_call_that_waits_is_input_required_and_the_next_message_decides_it() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("refund my bill")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let parts = &task["status"]["message"]["parts"];
    assert_eq!(
        parts[0]["text"],
        "Billing wants to call refund with {\"amount\":5}. Answer \"approve\" or \"reject\"."
    );
    assert_eq!(parts[1]["data"]["waiting"][0]["tool"], "refund");
    // What is no decision is in the history, and changes nothing else.
    let unclear = send(&server.client, reply(&task, "yes, but only 3")).await;
    assert_eq!(unclear["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let stored = result(&server.client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(stored["status"], task["status"]);
    assert_eq!(stored["history"], unclear["history"]);
    assert_eq!(stored["history"][1]["parts"][0]["text"], "yes, but only 3");
    let task = stored;
    // A task that waits can be subscribed to: the stream has the task, and then what comes of the next message.
    let path = format!("{AGENT}/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let mut subscribed = server
        .client
        .open(request(&server.client, "GET", &path))
        .await;
    assert_eq!(
        subscribed.next().await.unwrap().json(),
        json!({"task": task})
    );
    let updates = stream(
        &server.client,
        "SendStreamingMessage",
        json!({"message": reply(&task, "approve")}),
    )
    .await;
    let (states, text) = summary(&updates);
    assert_eq!(states, ["WORKING", "COMPLETED"]);
    assert_eq!(text, "Billing: I got refunded {\"amount\":5}.");
    let seen: Vec<Value> = subscribed.rest().await.iter().map(SseEvent::json).collect();
    assert_eq!(summary(&seen), (states, text));
    let done = result(&server.client, "GetTask", json!({"id": task["id"]})).await;
    let roles: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
    // A task that has ended takes no message.
    let late = json!({"message": reply(&task, "approve")});
    assert_eq!(
        error_code(&server.client, "SendMessage", late).await,
        -32004
    );
}

#[tokio::test]
async fn decisions_can_be_data_and_a_rejection_has_a_reason() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("refund my bill")).await;
    let call_id = &task["status"]["message"]["parts"][1]["data"]["waiting"][0]["call_id"];
    let mut decided = reply(&task, "");
    decided["parts"] = json!([{"data": {"decisions": [{"call_id": call_id, "approve": false, "message": "ask a manager"}]}}]);
    let done = send(&server.client, decided).await;
    assert_eq!(texts(&done), ["Billing: I got ask a manager."]);
    let task = send(&server.client, message("refund my bill")).await;
    let done = send(&server.client, reply(&task, "no: it is too late")).await;
    assert_eq!(texts(&done), ["Billing: I got it is too late."]);
}

#[tokio::test]
async fn the_next_message_of_a_task_answers_for_a_person() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("a person")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(
        task["status"]["message"]["parts"][0]["text"],
        "Ann is asked for an answer. The next message of this task is the answer."
    );
    let done = send(&server.client, reply(&task, "I am here.")).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done), ["I am here."]);
}

#[tokio::test]
async fn a_decision_through_the_api_completes_the_task() {
    let server = TestServer::start().await;
    let task = send(&server.client, message("refund my bill")).await;
    approve(&server.client, &task).await.ok();
    let done = result(&server.client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
    // Another message instead of a decision ends the wait, and the task.
    let task = send(&server.client, message("refund my bill")).await;
    let mut other = message("never mind");
    other["contextId"] = task["contextId"].clone();
    send(&server.client, other).await;
    let dropped = result(&server.client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(dropped["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_task_that_waits_is_cancelled_with_its_wait() {
    let server = TestServer::start().await;
    let client = &server.client;
    let task = send(client, message("refund my bill")).await;
    let is_waiting = async || {
        let listed = client.get("/api/conversations").await.ok();
        listed["conversations"][0]["is_waiting"].clone()
    };
    assert_eq!(is_waiting().await, true);
    let cancelled = result(client, "CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(is_waiting().await, false);
    let context = task["contextId"].as_str().unwrap();
    let call_id = &task["status"]["message"]["parts"][1]["data"]["waiting"][0]["call_id"];
    let decisions = json!({"decisions": [{"call_id": call_id, "approve": true}]});
    let decided = client
        .post(
            &format!("/api/conversations/{context}/decisions"),
            decisions,
        )
        .await;
    assert_eq!(decided.error_code(), (409, "conflict".to_owned()));
    let mut next = message("hello");
    next["contextId"] = context.into();
    assert_eq!(
        texts(&send(client, next).await),
        ["Billing: you said hello"]
    );
}

#[tokio::test]
async fn a_task_whose_decision_through_the_api_fails_or_is_cancelled_ends_so() {
    let server = TestServer::start().await;
    let client = &server.client;
    let task = send(client, message("refund my bill, which breaks")).await;
    assert_eq!(approve(client, &task).await.ok()["status"], "failed");
    let failed = result(client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED");
    let reason = &failed["status"]["message"]["parts"][0]["text"];
    assert!(
        reason.as_str().unwrap().contains("the provider is down"),
        "{reason}"
    );

    let task = send(client, message("refund my bill slowly")).await;
    let (mut events, run) = begin_approval(client, &task).await;
    until_said(&mut events).await;
    let cancel = format!("/api/runs/{run}/cancel");
    client.post(&cancel, json!({})).await.ok();
    let cancelled = result(client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    // Another message does not change what the task came to.
    let task = send(client, message("refund my bill, which breaks")).await;
    approve(client, &task).await.ok();
    let mut next = message("hello");
    next["contextId"] = task["contextId"].clone();
    send(client, next).await;
    assert_eq!(state(client, &task).await, "FAILED");
}

#[tokio::test]
async fn a_task_that_was_decided_is_completed_whatever_is_said_afterwards() {
    let server = TestServer::start().await;
    let client = &server.client;
    let task = send(client, message("refund my bill")).await;
    approve(client, &task).await.ok();
    let mut next = message("hello");
    next["contextId"] = task["contextId"].clone();
    send(client, next).await;
    let done = result(client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
}

#[tokio::test]
async fn a_task_that_waits_again_after_a_decision_through_the_api_is_decided_by_its_next_message() {
    let server = TestServer::start().await;
    let client = &server.client;
    let task = send(client, message("refund my bill twice")).await;
    assert_eq!(approve(client, &task).await.ok()["status"], "waiting");
    // Nobody has asked for the task since.
    let done = send(client, reply(&task, "approve")).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done), ["Billing: I got refunded {\"amount\":5}."]);
}

#[tokio::test]
async fn a_decision_that_fails_before_it_is_carried_out_leaves_the_task_and_the_conversation_waiting()
 {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let task = send(client, message("refund my bill")).await;
    let context = task["contextId"].as_str().unwrap();
    // Another run has the conversation, as far as the store can tell.
    let lease = ConversationStore::lease(&store, context, "another", PATIENCE);
    assert!(lease.await.unwrap());
    let (events, run) = begin_approval(client, &task).await;
    let cancel = format!("/api/runs/{run}/cancel");
    let cancelled = client.post(&cancel, json!({})).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    drop(events);
    assert_eq!(state(client, &task).await, "INPUT_REQUIRED");
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"][0]["conversation"], context);
    ConversationStore::release(&store, context, "another")
        .await
        .unwrap();
    approve(client, &task).await.ok();
    assert_eq!(state(client, &task).await, "COMPLETED");
}

#[tokio::test]
async fn a_task_that_is_cancelled_while_its_call_is_carried_out_leaves_no_wait() {
    let gate = Arc::new(Semaphore::new(0));
    let server = slow_refunds(Conversations::in_memory(), &gate).await;
    let client = &server.client;
    let task = send(client, message("a refund")).await;
    let parameters = json!({"message": reply(&task, "approve"),
                            "configuration": {"returnImmediately": true}});
    result(client, "SendMessage", parameters).await;
    let cancelled = result(client, "CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"], json!([]));
    let late = approve(client, &task).await;
    assert_eq!(late.error_code(), (409, "conflict".to_owned()));
}

#[tokio::test]
async fn a_decision_that_came_too_late_is_no_failure_of_its_task() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    let task = send(client, message("refund my bill")).await;
    let context = task["contextId"].as_str().unwrap();
    // Somebody else has the conversation, and ends its wait.
    let lease = ConversationStore::lease(&store, context, "another", PATIENCE);
    assert!(lease.await.unwrap());
    let body = json!({"message": reply(&task, "approve")});
    let path = format!("{AGENT}/message:stream");
    let sent = with_json(request(client, "POST", &path), &body);
    let followed = client.open(sent).await;
    until(|| async { state(client, &task).await == "WORKING" }).await;
    let conversation = store.get(context);
    let next = conversation.head().await.unwrap().unwrap().revision.next;
    conversation.rewind(next).await.unwrap();
    ConversationStore::release(&store, context, "another")
        .await
        .unwrap();
    let updates: Vec<Value> = followed.rest().await.iter().map(SseEvent::json).collect();
    assert_eq!(summary(&updates).0, ["WORKING", "CANCELED"]);
    assert_eq!(state(client, &task).await, "CANCELED");
}
