//! A team as an A2A agent, over both bindings.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::output::OutputType;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Team};
use switchboard_server::{Keys, ServedTeam, make_key};

use crate::support::{Answer, Client, PATIENCE, RuleModel, SseEvent, TestServer, until, with_json};

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

#[tokio::test]
async fn the_card_has_the_team_with_a_skill_for_each_agent() {
    let server = TestServer::start().await;
    let url = format!("{}/a2a/support", server.url());
    let answer = server.client.get("/.well-known/agent-card.json").await;
    let skill = |name: &str, description: &str| json!({"id": name, "name": name, "description": description, "tags": ["support"]});
    assert_eq!(
        answer.ok(),
        json!({
            "name": "support",
            "description": "The team support.",
            "version": env!("CARGO_PKG_VERSION"),
            "supportedInterfaces": [
                {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            ],
            "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
            "defaultInputModes": ["text/plain", "text/markdown", "application/json", "application/pdf",
                                  "image/png", "image/jpeg", "image/gif", "image/webp"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [
                skill("Triage", "Questions for Triage."),
                skill("Billing", "Bills."),
                skill("Ann", "A person."),
            ],
        })
    );
    assert_eq!(answer.headers["cache-control"], "public, max-age=300");
    let own = server
        .client
        .get("/a2a/support/.well-known/agent-card.json")
        .await;
    assert_eq!(own.text, answer.text);
    let again = server.client.request("GET", "/.well-known/agent-card.json");
    let again = again.header("If-None-Match", &answer.headers["etag"]);
    assert_eq!(crate::support::answer(again).await.status, 304);
    assert_eq!(
        error_code(&server.client, "GetExtendedAgentCard", json!({})).await,
        -32004
    );
    assert_eq!(
        server
            .client
            .get("/a2a/other/.well-known/agent-card.json")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn each_of_several_teams_has_its_card_and_its_tasks() {
    let model = RuleModel::new();
    let second: Team = Team::new()
        .agent(Agent::new("Lone").model(model))
        .build()
        .unwrap();
    let server = TestServer::with(|builder| {
        builder
            .team(ServedTeam::new("second team", second, ()).description("Does little."))
            .public_url("https://agents.example/here/")
    })
    .await;
    let first = server.client.get("/.well-known/agent-card.json").await.ok();
    let second = server
        .client
        .get("/a2a/second%20team/.well-known/agent-card.json")
        .await
        .ok();
    assert_eq!(
        (&first["name"], &second["name"]),
        (&json!("support"), &json!("second team"))
    );
    assert_eq!(
        second["supportedInterfaces"][0]["url"],
        "https://agents.example/here/a2a/second%20team"
    );
    let task = send(&server.client, message("hello")).await;
    let path = format!("/a2a/second%20team/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(
        crate::support::answer(request(&server.client, "GET", &path))
            .await
            .status,
        404
    );
    // The context of one team is not the other's.
    let mut stray = message("hello");
    stray["contextId"] = task["contextId"].clone();
    let body = json!({"message": stray});
    let sent = with_json(
        request(&server.client, "POST", "/a2a/second%20team/message:send"),
        &body,
    );
    assert_eq!(crate::support::answer(sent).await.status, 400);
}

#[tokio::test]
async fn with_keys_the_public_card_has_no_agents_and_the_extended_one_has() {
    let (key, entry) = make_key("alice").unwrap();
    let keys = Keys::from_entries([entry]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    let card = server.client.get("/.well-known/agent-card.json").await.ok();
    assert_eq!(card["skills"][0]["id"], "support");
    assert!(!card.to_string().contains("Billing"), "{card}");
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    assert_eq!(
        card["securitySchemes"]["key"]["httpAuthSecurityScheme"]["scheme"],
        "Bearer"
    );
    let alice = server.client_with(&key);
    let extended = result(&alice, "GetExtendedAgentCard", json!({})).await;
    assert_eq!(extended["skills"][1]["id"], "Billing");
    let answer =
        crate::support::answer(request(&alice, "GET", "/a2a/support/extendedAgentCard")).await;
    assert_eq!(answer.ok(), extended);
    // Without a key there is an error in the protocol's form, and nothing else.
    let refused = call(&server.client, "GetExtendedAgentCard", json!({})).await;
    assert_eq!(
        (refused.status, &refused.headers["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    assert_eq!(
        refused.json(),
        json!({"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "a valid key is needed", "details": []}})
    );
}

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
    // What is no decision changes nothing.
    let unclear = send(&server.client, reply(&task, "yes, but only 3")).await;
    assert_eq!(unclear["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let stored = result(&server.client, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(stored, task);
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
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
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
    let waiting = &task["status"]["message"]["parts"][1]["data"]["waiting"][0];
    let path = format!(
        "/api/conversations/{}/decisions",
        task["contextId"].as_str().unwrap()
    );
    let body = json!({"decisions": [{"call_id": waiting["call_id"], "approve": true}]});
    server.client.post(&path, body).await.ok();
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
async fn tasks_are_listed_newest_first_with_a_cursor_and_filters() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut ids = Vec::new();
    for text in ["one", "two", "refund my bill", "four"] {
        ids.push(
            send(client, message(text)).await["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        // The order is by milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let listed = |answer: &Value| -> Vec<String> {
        let tasks = answer["tasks"].as_array().unwrap();
        tasks
            .iter()
            .map(|task| task["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    let all = result(client, "ListTasks", json!({})).await;
    assert_eq!(listed(&all), newest);
    assert_eq!(
        (&all["totalSize"], &all["pageSize"], &all["nextPageToken"]),
        (&json!(4), &json!(50), &json!(""))
    );
    assert!(all["tasks"][0]["artifacts"].is_null());
    let first = result(client, "ListTasks", json!({"pageSize": 3})).await;
    let token = first["nextPageToken"].as_str().unwrap();
    let path = format!("{AGENT}/tasks?pageSize=3&pageToken={token}&includeArtifacts=true");
    let second = crate::support::answer(request(client, "GET", &path))
        .await
        .ok();
    assert_eq!([listed(&first), listed(&second)].concat(), newest);
    assert_eq!(
        (&second["totalSize"], &second["nextPageToken"]),
        (&json!(4), &json!(""))
    );
    assert_eq!(texts(&second["tasks"][0]), ["Triage: you said one"]);
    let waiting = result(
        client,
        "ListTasks",
        json!({"status": "TASK_STATE_INPUT_REQUIRED"}),
    )
    .await;
    assert_eq!(
        (listed(&waiting), &waiting["totalSize"]),
        (vec![ids[2].clone()], &json!(1))
    );
    let task = result(client, "GetTask", json!({"id": ids[1]})).await;
    let in_context = result(client, "ListTasks", json!({"contextId": task["contextId"]})).await;
    assert_eq!(listed(&in_context), [ids[1].clone()]);
    let since =
        result(client, "GetTask", json!({"id": ids[2]})).await["status"]["timestamp"].clone();
    let later = result(client, "ListTasks", json!({"statusTimestampAfter": since})).await;
    assert_eq!(listed(&later), newest[..2]);
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"historyLength": -1}),
        json!({"status": "TASK_STATE_RUNNING"}),
        json!({"pageToken": "nonsense"}),
        json!({"statusTimestampAfter": "yesterday"}),
    ] {
        assert_eq!(
            error_code(client, "ListTasks", wrong.clone()).await,
            -32602,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn nothing_of_another_tenants_tasks_is_seen_or_changed() {
    let (alice, first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    let keys = Keys::from_entries([first, second]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let task = send(&alice, message("refund my bill")).await;
    let id = task["id"].as_str().unwrap();
    for (method, params) in [
        ("GetTask", json!({"id": id})),
        ("CancelTask", json!({"id": id})),
        ("SubscribeToTask", json!({"id": id})),
        ("SendMessage", json!({"message": reply(&task, "approve")})),
        (
            "SendStreamingMessage",
            json!({"message": reply(&task, "approve")}),
        ),
    ] {
        let answer = call(&bob, method, params).await;
        assert_eq!(
            answer.json()["error"]["code"],
            -32001,
            "{method}: {}",
            answer.text
        );
        assert!(!answer.text.contains("alice"), "{}", answer.text);
    }
    let push = |config: &str| format!("{AGENT}/tasks/{id}/pushNotificationConfigs{config}");
    for (method, path, status) in [
        ("GET", format!("{AGENT}/tasks/{id}"), 404),
        ("POST", format!("{AGENT}/tasks/{id}:cancel"), 404),
        ("POST", format!("{AGENT}/tasks/{id}:subscribe"), 404),
        ("GET", push(""), 400),
        ("GET", push("/c"), 400),
        ("DELETE", push("/c"), 400),
    ] {
        let answer = crate::support::answer(request(&bob, method, &path)).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        assert!(!answer.text.contains("refund"), "{}", answer.text);
    }
    assert_eq!(result(&bob, "ListTasks", json!({})).await["totalSize"], 0);
    let filtered = json!({"contextId": task["contextId"]});
    assert_eq!(
        result(&bob, "ListTasks", filtered).await["tasks"],
        json!([])
    );
    // The same context of another tenant is another conversation.
    let mut stray = message("what was said?");
    stray["contextId"] = task["contextId"].clone();
    let own = send(&bob, stray).await;
    assert_eq!(texts(&own), ["Triage: you said what was said?"]);
    for path in [
        format!("{AGENT}/tasks/..%2fbob%2f{id}"),
        format!("{AGENT}/tasks/%7Etask%7E{id}"),
    ] {
        assert_eq!(
            crate::support::answer(request(&bob, "GET", &path))
                .await
                .status,
            404,
            "{path}"
        );
    }
    let kept = result(&alice, "GetTask", json!({"id": id})).await;
    assert_eq!(kept, task);
    // A key for other teams does not see this one.
    let (carol, mut entry) = make_key("alice").unwrap();
    entry.teams = Some(vec!["other".to_owned()]);
    let keys = Keys::from_entries([entry]).unwrap();
    let other = TestServer::with(|builder| builder.keys(keys)).await;
    let refused = call(&other.client_with(&carol), "ListTasks", json!({})).await;
    assert_eq!(
        refused.json()["error"],
        json!({"code": -32600, "message": "there is no team \"support\""})
    );
}

#[tokio::test]
async fn requests_that_are_none_get_the_errors_of_json_rpc() {
    let server = TestServer::start().await;
    let raw = |body: &str| {
        let request = request(&server.client, "POST", AGENT);
        request
            .header("content-type", "application/json")
            .body(body.to_owned())
    };
    let deep = "[".repeat(100_000);
    for (body, code) in [
        ("{", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ListTasks"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":[]}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":7}}"#,
            -32602,
        ),
    ] {
        let answer = crate::support::answer(raw(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(
            answer.json()["error"]["code"],
            code,
            "{}: {}",
            &body[..body.len().min(80)],
            answer.text
        );
    }
    for (field, value) in [
        ("parts", json!([])),
        ("parts", json!([{}])),
        ("parts", json!([{"text": "a", "url": "https://b.example"}])),
        ("parts", json!([{"raw": "a b", "mediaType": "image/png"}])),
        (
            "parts",
            json!([{"url": "file:///etc/passwd", "mediaType": "image/png"}]),
        ),
        ("role", json!("ROLE_AGENT")),
        ("messageId", json!("")),
        ("contextId", json!("a/b")),
        ("contextId", json!("~task~x")),
    ] {
        let mut wrong = message("hello");
        wrong[field] = value.clone();
        let answer = call(&server.client, "SendMessage", json!({"message": wrong}))
            .await
            .ok();
        assert_eq!(answer["error"]["code"], -32602, "{field} {value}: {answer}");
        let violations = &answer["error"]["data"][0]["fieldViolations"];
        assert!(
            violations[0]["field"]
                .as_str()
                .unwrap()
                .starts_with("message"),
            "{answer}"
        );
    }
    let mut file = message("x");
    file["parts"] = json!([{"raw": "AAAA", "mediaType": "application/x-unknown"}]);
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": file})).await,
        -32005
    );
    let mut lost = message("x");
    lost["taskId"] = json!("task_00000000000000000000000000000000");
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": lost})).await,
        -32001
    );
    let task = send(&server.client, message("refund my bill")).await;
    let mut stray = reply(&task, "approve");
    stray["contextId"] = json!("another");
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": stray})).await,
        -32602
    );
    let push = json!({"message": message("x"), "configuration": {"taskPushNotificationConfig": {"url": "https://a.example"}}});
    assert_eq!(
        error_code(&server.client, "SendMessage", push).await,
        -32003
    );
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(
            error_code(&server.client, &method, json!({})).await,
            -32003,
            "{method}"
        );
    }
    assert_eq!(
        error_code(&server.client, "ListTaskPushNotificationConfigs", json!({})).await,
        -32003
    );
}

#[tokio::test]
async fn the_version_is_checked_and_a_request_without_one_speaks_an_old_one() {
    let server = TestServer::start().await;
    let path = format!("{AGENT}/tasks");
    for (version, status) in [
        (Some("1.0"), 200),
        (Some("1.0.1"), 200),
        (Some("0.3"), 400),
        (Some("2.0"), 400),
        (Some("10.0"), 400),
        (None, 400),
    ] {
        let mut request = server.client.request("GET", &path);
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let answer = crate::support::answer(request).await;
        assert_eq!(answer.status, status, "{version:?}");
        if status == 400 {
            let error = &answer.json()["error"];
            assert_eq!(error["status"], "FAILED_PRECONDITION");
            assert_eq!(
                error["details"],
                json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "VERSION_NOT_SUPPORTED", "domain": "a2a-protocol.org"}])
            );
        }
    }
    server
        .client
        .get(&format!("{path}?A2A-Version=1.0"))
        .await
        .ok();
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "ListTasks"});
    let old = server.client.post(AGENT, body).await.ok();
    assert_eq!(
        (&old["id"], &old["error"]["code"]),
        (&json!("a"), &json!(-32009))
    );
}

#[tokio::test]
async fn huge_bodies_and_other_types_are_refused() {
    let server = TestServer::with(|builder| {
        let mut limits = switchboard_server::Limits::default();
        limits.body_bytes = 10_000;
        limits.runs = 1;
        builder.limits(limits)
    })
    .await;
    let huge = json!({"message": message(&"x".repeat(20_000))});
    let answer = call(&server.client, "SendMessage", huge.clone()).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (413, &json!(-32600))
    );
    let path = format!("{AGENT}/message:send");
    let answer =
        crate::support::answer(with_json(request(&server.client, "POST", &path), &huge)).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (413, &json!(413))
    );
    let typed = request(&server.client, "POST", &path)
        .header("content-type", "text/plain")
        .body("{}");
    let typed = crate::support::answer(typed).await;
    let reason = &typed.json()["error"]["details"][0]["reason"];
    assert_eq!(
        (typed.status, reason),
        (415, &json!("CONTENT_TYPE_NOT_SUPPORTED"))
    );
    // A path that is none has an error in the same form.
    let lost = crate::support::answer(request(&server.client, "GET", "/a2a/support/nothing")).await;
    assert_eq!(lost.json()["error"]["status"], "NOT_FOUND");
    // A full house says so, and when to come back.
    let body = json!({"message": message("slow"), "configuration": {"returnImmediately": true}});
    result(&server.client, "SendMessage", body).await;
    let full = call(
        &server.client,
        "SendMessage",
        json!({"message": message("hello")}),
    )
    .await;
    assert_eq!(
        (full.status, &full.headers["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    assert_eq!(full.json()["error"]["code"], -32603);
    // The task that was never begun is not there.
    assert_eq!(
        result(&server.client, "ListTasks", json!({})).await["totalSize"],
        1
    );
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

/// Two processes, as far as the store can tell.
async fn two_servers() -> (TestServer, TestServer) {
    let store = Conversations::in_memory();
    let first = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let second = TestServer::with(|builder| builder.conversations(store)).await;
    (first, second)
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

#[tokio::test]
async fn a_list_of_tasks_has_them_as_they_are_now() {
    let server = TestServer::start().await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    let slow = begin(client, "slow").await;
    assert_eq!(
        listed(client, json!({})).await,
        ["WORKING", "INPUT_REQUIRED"]
    );
    let context = waits["contextId"].as_str().unwrap();
    let shown = client.get(&format!("/api/conversations/{context}")).await;
    let call = &shown.ok()["waiting"][0]["call_id"];
    let decisions = json!({"decisions": [{"call_id": call, "approve": true}]});
    let path = format!("/api/conversations/{context}/decisions");
    client.post(&path, decisions).await.ok();
    // Nobody has asked for the task itself.
    for (filter, expected) in [
        ("TASK_STATE_COMPLETED", &["COMPLETED"] as &[_]),
        ("TASK_STATE_INPUT_REQUIRED", &[]),
        ("TASK_STATE_WORKING", &["WORKING"]),
    ] {
        let found = listed(client, json!({"status": filter})).await;
        assert_eq!(found, expected, "{filter}");
    }
    server.model.gate.add_permits(1);
    until(|| async { state(client, &slow).await == "COMPLETED" }).await;
    assert_eq!(listed(client, json!({})).await, ["COMPLETED", "COMPLETED"]);
}
