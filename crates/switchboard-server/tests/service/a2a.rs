//! A team as an A2A agent, over both bindings.

mod cards;
mod cut_off;
mod lists;
mod refused;
mod several_processes;
mod tasks;
mod waiting;

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::{Agent, Team, tool};
use switchboard_server::{ServedTeam, Service};
use tokio::sync::Semaphore;

use crate::support::{Answer, Client, Events, RuleModel, TestServer, with_json};

const AGENT: &str = "/a2a/support";

/// A request with the version of the protocol.
fn request(client: &Client, method: &str, path: &str) -> reqwest::RequestBuilder {
    client.request(method, path).header("A2A-Version", "1.0")
}

async fn call(client: &Client, method: &str, params: Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    crate::support::answer(with_json(request(client, "POST", AGENT), &body)).await
}

/// The result of a call over JSON-RPC.
async fn result(client: &Client, method: &str, params: Value) -> Value {
    let answer = call(client, method, params).await.ok();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(7)),
        "{answer}"
    );
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// The code of the error of a call over JSON-RPC.
async fn error_code(client: &Client, method: &str, params: Value) -> i64 {
    let answer = call(client, method, params).await;
    answer.json()["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no error: {}", answer.text))
}

fn message(text: &str) -> Value {
    json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A message of a task.
fn reply(task: &Value, text: &str) -> Value {
    let mut message = message(text);
    message["taskId"] = task["id"].clone();
    message
}

async fn send(client: &Client, message: Value) -> Value {
    let sent = result(client, "SendMessage", json!({"message": message})).await;
    sent["task"].clone()
}

/// The results of a streamed call over JSON-RPC.
async fn stream(client: &Client, method: &str, params: Value) -> Vec<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let events = client
        .open(with_json(request(client, "POST", AGENT), &body))
        .await;
    let events = events.rest().await;
    events
        .iter()
        .map(|event| event.json()["result"].clone())
        .collect()
}

/// The states of a stream, and the texts of its artifacts put together.
fn summary(updates: &[Value]) -> (Vec<String>, String) {
    let mut states = Vec::new();
    let mut text = String::new();
    for update in updates {
        for status in [&update["task"]["status"], &update["statusUpdate"]["status"]] {
            states.extend(
                status["state"]
                    .as_str()
                    .map(|state| state.replace("TASK_STATE_", "")),
            );
        }
        let piece = &update["artifactUpdate"]["artifact"]["parts"][0]["text"];
        text.push_str(piece.as_str().unwrap_or_default());
    }
    states.dedup();
    (states, text)
}

fn texts(task: &Value) -> Vec<&str> {
    let artifacts = task["artifacts"].as_array().unwrap();
    artifacts
        .iter()
        .map(|artifact| artifact["parts"][0]["text"].as_str().unwrap())
        .collect()
}

/// Sends a message without waiting for its answer.
async fn begin(client: &Client, text: &str) -> Value {
    let parameters =
        json!({"message": message(text), "configuration": {"returnImmediately": true}});
    result(client, "SendMessage", parameters).await["task"].clone()
}

async fn state(client: &Client, task: &Value) -> String {
    let task = result(client, "GetTask", json!({"id": task["id"]})).await;
    let state = task["status"]["state"].as_str().unwrap();
    state.replace("TASK_STATE_", "")
}

/// The states of all tasks, the latest first, and those that a filter finds.
async fn listed(client: &Client, parameters: Value) -> Vec<String> {
    let listed = result(client, "ListTasks", parameters).await;
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(listed["totalSize"], tasks.len());
    let state = |task: &Value| {
        let state = task["status"]["state"].as_str().unwrap();
        state.replace("TASK_STATE_", "")
    };
    tasks.iter().map(state).collect()
}

/// The decision that approves the call that a task has asked for first.
fn approval(task: &Value) -> (String, Value) {
    let call = &task["status"]["message"]["parts"][1]["data"]["waiting"][0]["call_id"];
    let path = format!(
        "/api/conversations/{}/decisions",
        task["contextId"].as_str().unwrap()
    );
    (
        path,
        json!({"decisions": [{"call_id": call, "approve": true}]}),
    )
}

/// Approves the call of a task through the API, and waits for the end of its run.
async fn approve(client: &Client, task: &Value) -> Answer {
    let (path, body) = approval(task);
    client.post(&path, body).await
}

/// Begins to carry the call of a task out. Returns the events of its run, and the run.
async fn begin_approval(client: &Client, task: &Value) -> (Events, String) {
    let (path, mut body) = approval(task);
    body["stream"] = json!(true);
    let events = client
        .open(with_json(client.request("POST", &path), &body))
        .await;
    let run = events.headers["x-run-id"].to_str().unwrap().to_owned();
    (events, run)
}

/// Reads events until an agent has said something.
async fn until_said(events: &mut Events) {
    loop {
        let event = events.next().await.expect("nothing was said");
        if event.json()["type"] == "text_delta" {
            return;
        }
    }
}

/// A server with an agent that pays back once the gate has a permit for it.
async fn slow_refunds(store: Conversations, gate: &Arc<Semaphore>) -> TestServer {
    let gate = gate.clone();
    let refund = tool::<()>("refund").needs_approval();
    let refund = refund.run_raw(&json!({"type": "object"}), move |_ctx| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            "paid"
        }
    });
    let clerk = Agent::new("Clerk").tool(refund).model(RuleModel::new());
    let team: Team = Team::new().agent(clerk).build().unwrap();
    let service = Service::builder()
        .team(ServedTeam::new("support", team, ()))
        .conversations(store);
    TestServer::of(service.build().unwrap()).await
}
