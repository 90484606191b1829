//! AG-UI, with a client that sends what the protocol says.

mod subagents;

use serde_json::{Value, json};
use switchboard_server::{Keys, make_key};

use crate::support::{Client, TestServer, until, with_json};

/// A message of the user; its text is its identifier.
fn user(text: &str) -> Value {
    json!({"id": text, "role": "user", "content": text})
}

/// An answer that a client has in its list.
fn answer(id: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": "whatever"})
}

fn input(thread: &str, run: &str, messages: &[Value]) -> Value {
    json!({
        "threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": messages,
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    })
}

async fn run(client: &Client, body: Value) -> Vec<Value> {
    run_team(client, "support", body).await
}

async fn run_team(client: &Client, team: &str, body: Value) -> Vec<Value> {
    let events = client.events(&format!("/agui/{team}"), body).await;
    events.iter().map(|event| event.json()).collect()
}

/// The types of events, with what tells them apart.
fn outline(events: &[Value]) -> Vec<String> {
    let field = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let line = |event: &Value| {
        let kind = field(event, "type");
        let detail = match &*kind {
            "STEP_STARTED" | "STEP_FINISHED" => field(event, "stepName"),
            "TEXT_MESSAGE_START" => field(event, "name"),
            "TEXT_MESSAGE_CONTENT" | "TOOL_CALL_ARGS" | "REASONING_MESSAGE_CONTENT" => {
                field(event, "delta")
            }
            "TOOL_CALL_START" => field(event, "toolCallName"),
            "TOOL_CALL_RESULT" => field(event, "content"),
            "CUSTOM" => field(event, "name"),
            "RUN_ERROR" => field(event, "code"),
            "RUN_FINISHED" | "SUBAGENT_FINISHED" => field(&event["outcome"], "type"),
            "SUBAGENT_STARTED" => field(event, "name"),
            "SUBAGENT_ERROR" => field(event, "code"),
            _ => String::new(),
        };
        let inside = if event["subagentRunId"].is_string() {
            "  "
        } else {
            ""
        };
        format!("{inside}{kind} {detail}").trim_end().to_owned()
    };
    events.iter().map(line).collect()
}

/// The text of the last message.
fn said(events: &[Value]) -> String {
    let start = events
        .iter()
        .rposition(|event| event["type"] == "TEXT_MESSAGE_START");
    let events = events[start.unwrap_or(events.len())..].iter();
    let deltas = events.filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

fn last(events: &[Value]) -> &Value {
    events.last().unwrap()
}

/// The texts of the user's messages in a stored conversation.
async fn stored(client: &Client, thread: &str) -> Vec<String> {
    let shown = client
        .get(&format!("/api/conversations/{thread}"))
        .await
        .ok();
    let items = shown["items"].as_array().unwrap().iter();
    let users = items.filter(|entry| entry["content"]["role"] == "user");
    let text = |entry: &Value| entry["content"]["content"].as_str().unwrap().to_owned();
    users.map(text).collect()
}

#[tokio::test]
async fn a_handoff_ends_the_step_of_one_agent_and_begins_that_of_the_next() {
    let server = TestServer::start().await;
    let events = run(&server.client, input("t", "r1", &[user("my bill")])).await;
    assert_eq!(
        outline(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED Triage",
            "TOOL_CALL_START transfer_to_billing",
            "TOOL_CALL_ARGS {}",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT {\"assistant\": \"Billing\"}",
            "CUSTOM switchboard.handoff",
            "STEP_FINISHED Triage",
            "STEP_STARTED Billing",
            "TEXT_MESSAGE_START Billing",
            "TEXT_MESSAGE_CONTENT Billing:",
            "TEXT_MESSAGE_CONTENT you",
            "TEXT_MESSAGE_CONTENT said",
            "TEXT_MESSAGE_CONTENT my",
            "TEXT_MESSAGE_CONTENT bill",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED Billing",
            "RUN_FINISHED success",
        ]
    );
    assert_eq!(
        events[0],
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"})
    );
    let handoff = &events[6]["value"];
    assert_eq!(
        (
            &handoff["from"],
            &handoff["to"],
            &handoff["status"],
            &handoff["payload"]
        ),
        (
            &json!("Triage"),
            &json!("Billing"),
            &json!("taken"),
            &json!({})
        )
    );
    assert_eq!(
        *last(&events),
        json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": "r1",
            "result": "Billing: you said my bill", "outcome": {"type": "success"},
            "usage": [{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15,
                       "reasoningTokens": 0, "cachedInputTokens": 0}],
        })
    );
    assert!(
        !events
            .iter()
            .any(|event| event.to_string().contains("null"))
    );
}

#[tokio::test]
async fn tools_of_the_team_and_reasoning_are_told() {
    let server = TestServer::start().await;
    let events = run(&server.client, input("t", "r1", &[user("lookup")])).await;
    let told = outline(&events);
    let at = told
        .iter()
        .position(|line| line == "TOOL_CALL_START lookup");
    assert_eq!(
        told[at.unwrap()..][..4],
        [
            "TOOL_CALL_START lookup",
            "TOOL_CALL_ARGS {\"account\":7}",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT open",
        ]
    );
    assert_eq!(said(&events), "Triage: I got open.");

    let events = run(&server.client, input("u", "r1", &[user("think")])).await;
    assert_eq!(
        outline(&events)[1..8],
        [
            "STEP_STARTED Triage",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT Hm.",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START Triage",
        ]
    );
}

#[tokio::test]
async fn a_client_sends_its_whole_list_and_only_what_is_new_is_input() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut list = vec![user("my bill")];
    run(client, input("t", "r1", &list)).await;
    list.extend([answer("a1"), user("two")]);
    let events = run(client, input("t", "r2", &list)).await;
    assert_eq!(said(&events), "Billing: you said two");
    assert_eq!(stored(client, "t").await, ["my bill", "two"]);

    // An answer that is asked for again, then a message that is edited.
    let events = run(client, input("t", "r3", &list)).await;
    assert_eq!(said(&events), "Billing: you said two");
    assert_eq!(stored(client, "t").await, ["my bill", "two"]);
    list[2] = user("three");
    let events = run(client, input("t", "r4", &list)).await;
    assert_eq!(said(&events), "Billing: you said three");
    assert_eq!(stored(client, "t").await, ["my bill", "three"]);

    // A client that sends only what is new.
    run(client, input("t", "r5", &[user("four")])).await;
    assert_eq!(stored(client, "t").await, ["my bill", "three", "four"]);
}

#[tokio::test]
async fn a_history_of_another_conversation_is_refused_and_one_without_a_conversation_begins_it() {
    let server = TestServer::start().await;
    let client = &server.client;
    let list = [user("one"), answer("a"), user("two")];
    let events = run(client, input("t", "r1", &list)).await;
    assert_eq!(said(&events), "Triage: you said two");
    assert_eq!(stored(client, "t").await, ["one", "two"]);

    let other = [user("x"), answer("y"), user("z")];
    let events = run(client, input("t", "r2", &other)).await;
    assert_eq!(outline(&events), ["RUN_STARTED", "RUN_ERROR conflict"]);
    let events = run(client, input("t", "r3", &[user("one"), answer("a")])).await;
    assert_eq!(
        outline(&events),
        ["RUN_STARTED", "RUN_ERROR invalid_request"]
    );
    assert_eq!(stored(client, "t").await, ["one", "two"]);
}

#[tokio::test]
async fn a_request_that_is_sent_twice_is_one_run() {
    let server = TestServer::start().await;
    let client = &server.client;
    let first = run(client, input("t", "r1", &[user("one")])).await;
    let again = run(client, input("t", "r1", &[user("one")])).await;
    assert_eq!(first, again);
    assert_eq!(stored(client, "t").await, ["one"]);
}

#[tokio::test]
async fn a_call_that_waits_is_an_interrupt_and_resume_decides_it() {
    let server = TestServer::start().await;
    let client = &server.client;
    for (thread, answer, expected) in [
        (
            "approve",
            json!({"status": "resolved", "payload": {"approved": true, "always": true}}),
            "Billing: I got refunded {\"amount\":5}.",
        ),
        (
            "reject",
            json!({"status": "resolved", "payload": {"approved": false, "message": "Ask a manager"}}),
            "Billing: I got Ask a manager.",
        ),
        (
            "cancel",
            json!({"status": "cancelled"}),
            "Billing: I got Tool execution was not approved..",
        ),
    ] {
        let messages = [user("refund my bill")];
        let events = run(client, input(thread, "r1", &messages)).await;
        let outcome = &last(&events)["outcome"];
        assert_eq!(outcome["type"], "interrupt");
        let interrupt = &outcome["interrupts"][0];
        assert_eq!(interrupt["reason"], "tool_call");
        assert_eq!(interrupt["toolCallId"], interrupt["id"]);
        assert_eq!(interrupt["metadata"]["switchboard"]["tool"], "refund");
        assert!(outline(&events).contains(&"TOOL_CALL_START refund".to_owned()));

        let mut body = input(thread, "r2", &messages);
        body["resume"] = json!([answer]);
        body["resume"][0]["interruptId"] = interrupt["id"].clone();
        let events = run(client, body).await;
        assert_eq!(said(&events), expected);
        let result = events
            .iter()
            .find(|event| event["type"] == "TOOL_CALL_RESULT");
        assert_eq!(result.unwrap()["toolCallId"], interrupt["id"]);
        assert!(!outline(&events).contains(&"TOOL_CALL_START refund".to_owned()));
        assert_eq!(last(&events)["outcome"], json!({"type": "success"}));
    }
}

#[tokio::test]
async fn what_a_resume_cannot_do_is_an_error_and_changes_nothing() {
    let server = TestServer::start().await;
    let client = &server.client;
    let messages = [user("refund my bill")];
    let events = run(client, input("t", "r1", &messages)).await;
    let id = last(&events)["outcome"]["interrupts"][0]["id"].clone();
    let wrong = [
        (json!([]), "conflict"),
        (
            json!([{"interruptId": "other", "status": "resolved", "payload": {"approved": true}}]),
            "conflict",
        ),
        (
            json!([{"interruptId": id, "status": "resolved",
                    "payload": {"approved": true, "editedArgs": {"amount": 1}}}]),
            "invalid_request",
        ),
        (
            json!([{"interruptId": id, "status": "resolved", "payload": {"approved": "yes"}}]),
            "invalid_request",
        ),
    ];
    for (at, (resume, code)) in wrong.into_iter().enumerate() {
        let list = [messages[0].clone(), answer("a"), user("and now?")];
        let mut body = input("t", &format!("w{at}"), &list);
        body["resume"] = resume;
        let events = run(client, body).await;
        assert_eq!(
            outline(&events),
            ["RUN_STARTED".to_owned(), format!("RUN_ERROR {code}")]
        );
    }
    let shown = client.get("/api/conversations/t").await.ok();
    assert_eq!(shown["waiting"][0]["call_id"], id);
    assert_eq!(stored(client, "t").await, ["refund my bill"]);
}

#[tokio::test]
async fn a_person_is_asked_by_an_interrupt_and_the_user_may_write_meanwhile() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut list = vec![user("a person")];
    let events = run(client, input("t", "r1", &list)).await;
    let interrupt = &last(&events)["outcome"]["interrupts"][0];
    assert_eq!(
        (&interrupt["id"], &interrupt["reason"]),
        (&json!("person:Ann"), &json!("input_required"))
    );
    list.push(user("hello?"));
    let events = run(client, input("t", "r2", &list)).await;
    assert_eq!(last(&events)["outcome"]["type"], "interrupt");

    let mut body = input("t", "r3", &list);
    body["resume"] = json!([{"interruptId": "person:Ann", "status": "cancelled"}]);
    let events = run(client, body).await;
    assert_eq!(outline(&events)[1], "RUN_ERROR invalid_request");
    let mut body = input("t", "r4", &list);
    body["resume"] = json!([
        {"interruptId": "person:Ann", "status": "resolved", "payload": {"text": "I am here."}}
    ]);
    let events = run(client, body).await;
    assert_eq!(said(&events), "I am here.");
}

#[tokio::test]
async fn a_tool_of_the_client_ends_the_run_and_its_result_goes_on_with_it() {
    let server = TestServer::start().await;
    let client = &server.client;
    let tools = json!([{"name": "get_weather", "description": "The weather.",
                        "parameters": {"type": "object"}}]);
    let mut list = vec![user("weather for my bill")];
    let mut body = input("t", "r1", &list);
    body["tools"] = tools.clone();
    let events = run(client, body).await;
    let id = events
        .iter()
        .rfind(|event| event["type"] == "TOOL_CALL_END")
        .unwrap()["toolCallId"]
        .clone();
    assert_eq!(
        last(&events)["outcome"],
        json!({"type": "success", "pendingToolCallIds": [id]})
    );
    list.push(json!({"id": "a", "role": "assistant", "toolCalls": [
        {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]}));
    list.push(json!({"id": "o", "role": "tool", "toolCallId": id, "content": "rain"}));
    let mut body = input("t", "r2", &list);
    body["tools"] = tools;
    let events = run(client, body).await;
    assert_eq!(said(&events), "Billing: I got rain.");
    assert_eq!(stored(client, "t").await, ["weather for my bill"]);
}

#[tokio::test]
async fn context_and_state_reach_the_model_and_properties_for_the_service_are_checked() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut body = input("t", "r1", &[user("instructions")]);
    body["context"] = json!([{"description": "the page", "value": "checkout"}]);
    body["state"] = json!({"cart": [1]});
    let events = run(client, body).await;
    assert_eq!(
        said(&events),
        "Triage: you said instructions (Context of the application (the page): checkout\n\n\
         State of the application, as JSON, which you can read and not change: {\"cart\":[1]})"
    );

    let mut body = input("u", "r1", &[user("hello")]);
    body["forwardedProps"] = json!({"other": 1, "switchboard": {"agent": "Billing"}});
    assert_eq!(
        said(&run(client, body.clone()).await),
        "Billing: you said hello"
    );
    body["forwardedProps"] = json!({"switchboard": {"model": "x"}});
    let refused = client.post("/agui/support", body).await;
    assert_eq!(refused.error_code(), (400, "invalid_request".to_owned()));

    let events = client
        .events("/agui/support/Billing", input("v", "r1", &[user("hello")]))
        .await;
    let events: Vec<Value> = events.iter().map(|event| event.json()).collect();
    assert_eq!(said(&events), "Billing: you said hello");
}

#[tokio::test]
async fn a_run_that_fails_closes_everything_and_ends_with_an_error() {
    let server = TestServer::start().await;
    let client = &server.client;
    let events = run(client, input("t", "r1", &[user("fail")])).await;
    assert_eq!(
        outline(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED Triage",
            "STEP_FINISHED Triage",
            "RUN_ERROR model",
        ]
    );
    // The message that failed is not sent again with the next one.
    let events = run(client, input("t", "r2", &[user("fail"), user("hello")])).await;
    assert_eq!(said(&events), "Triage: you said hello");
}

#[tokio::test]
async fn a_run_goes_on_without_its_client_and_a_cancelled_one_says_so() {
    let server = TestServer::start().await;
    let client = &server.client;
    let body = input("t", "r1", &[user("slow")]);
    let mut events = client
        .open(with_json(client.request("POST", "/agui/support"), &body))
        .await;
    let run_id = events.headers["x-run-id"].to_str().unwrap().to_owned();
    while events.next().await.unwrap().json()["type"] != "TEXT_MESSAGE_CONTENT" {}
    drop(events);
    server.model.gate.add_permits(1);
    until(|| async {
        let run = client.get(&format!("/api/runs/{run_id}")).await.ok();
        run["status"] == "completed"
    })
    .await;

    let body = input("u", "r1", &[user("slow")]);
    let mut events = client
        .open(with_json(client.request("POST", "/agui/support"), &body))
        .await;
    let run_id = events.headers["x-run-id"].to_str().unwrap().to_owned();
    while events.next().await.unwrap().json()["type"] != "TEXT_MESSAGE_CONTENT" {}
    client
        .post(&format!("/api/runs/{run_id}/cancel"), json!({}))
        .await
        .ok();
    let rest: Vec<Value> = events
        .rest()
        .await
        .iter()
        .map(|event| event.json())
        .collect();
    assert_eq!(
        outline(&rest),
        [
            "TEXT_MESSAGE_END",
            "STEP_FINISHED Triage",
            "RUN_FINISHED cancelled"
        ]
    );
}

#[tokio::test]
async fn a_full_or_ending_service_has_a_status() {
    let mut limits = switchboard_server::Limits::default();
    limits.runs = 1;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let client = &server.client;
    let body = input("t", "r1", &[user("slow")]);
    let running = client
        .open(with_json(client.request("POST", "/agui/support"), &body))
        .await;
    let full = client
        .post("/agui/support", input("u", "r1", &[user("hello")]))
        .await;
    assert_eq!(full.error_code(), (503, "unavailable".to_owned()));
    server.model.gate.add_permits(1);
    running.rest().await;
    server.service.drain(std::time::Duration::ZERO).await;
    let ending = client
        .post("/agui/support", input("v", "r1", &[user("hello")]))
        .await;
    assert_eq!(ending.error_code(), (503, "unavailable".to_owned()));
}

#[tokio::test]
async fn threads_belong_to_the_tenant_and_wrong_requests_have_a_status() {
    let (alice, first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    let keys = Keys::from_entries([first, second]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let messages = [user("refund my bill")];
    let events = run(&alice, input("t", "r1", &messages)).await;
    let id = last(&events)["outcome"]["interrupts"][0]["id"].clone();

    let mut body = input("t", "r2", &messages);
    body["resume"] =
        json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
    let events = run(&bob, body).await;
    assert_eq!(outline(&events), ["RUN_STARTED", "RUN_ERROR conflict"]);
    // The same request is another tenant's run.
    let events = run(&bob, input("t", "r1", &messages)).await;
    assert_ne!(last(&events)["outcome"]["interrupts"][0]["id"], id);

    let body = || input("t", "r3", &[user("hello")]);
    let no_key = server.client.post("/agui/support", body()).await;
    assert_eq!(no_key.status, 401);
    assert_eq!(alice.post("/agui/other", body()).await.status, 404);
    assert_eq!(alice.post("/agui/support/Nobody", body()).await.status, 404);
    let mut wrong = body();
    wrong["protocolVersion"] = json!("2.0");
    assert_eq!(alice.post("/agui/support", wrong).await.status, 400);
    let mut wrong = body();
    wrong["threadId"] = json!("../x");
    assert_eq!(alice.post("/agui/support", wrong).await.status, 400);
    assert_eq!(alice.post("/agui/support", json!({})).await.status, 400);
}
