//! A team whose handoff goes to a team of another server, over A2A.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::stream::EventKind;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Handoff, Runner};
use switchboard_models::{Endpoint, ModelError, ModelErrorKind, RemoteAgent};
use switchboard_server::{Keys, make_key};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Client, TestServer, answer, until, with_json};

/// Triage, which hands off to the agent at an address, and has a scripted model.
fn triage(endpoint: &Endpoint, model: &ScriptedModel) -> Agent {
    let remote = RemoteAgent::new(&endpoint.connect().unwrap());
    let support = Agent::new("Support")
        .model(remote)
        .handoff(Handoff::to_previous());
    Agent::new("Triage").model(model.clone()).handoff(support)
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::at(format!("{url}/a2a/support"))
}

/// The tasks of a server, the latest first.
async fn tasks(client: &Client) -> Vec<Value> {
    let request = client
        .request("GET", "/a2a/support/tasks?includeArtifacts=true")
        .header("A2A-Version", "1.0");
    let listed = answer(request).await.ok();
    listed["tasks"].as_array().unwrap().clone()
}

/// Answers every request with one response, and returns the address.
pub(crate) async fn serve(head: &str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let response =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 16 << 10];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

/// The address of a card with one interface.
async fn card(interface: Value, is_streaming: bool) -> String {
    let card = json!({"name": "Support", "supportedInterfaces": [interface],
                      "capabilities": {"streaming": is_streaming}});
    serve(
        "200 OK\r\ncontent-type: application/json",
        &card.to_string(),
    )
    .await
}

fn model_error(error: &switchboard_core::Error) -> &ModelError {
    error.cause().unwrap().downcast_ref().unwrap()
}

#[tokio::test]
async fn a_handoff_to_a_remote_team_is_streamed() {
    let server = TestServer::start().await;
    let model = ScriptedModel::new().call("transfer_to_support", "{}");
    let triage = triage(&endpoint(server.url()), &model);
    let mut stream = Runner::new(&triage).stream("my bill");
    let mut pieces = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::TextDelta { text, .. } = event.kind {
            pieces.push(text);
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.last_agent().name(), "Support");
    assert_eq!(result.final_text(), "Billing: you said my bill");
    assert_eq!(pieces.concat(), "Billing: you said my bill");
    assert!(pieces.len() > 3, "{pieces:?}");
    let tasks = tasks(&server.client).await;
    let parts = &tasks[0]["history"][0]["parts"];
    assert_eq!(parts, &json!([{"text": "my bill"}]));
}

#[tokio::test]
async fn a_question_of_the_remote_team_is_answered_in_its_task_and_then_the_conversation_goes_back()
{
    let server = TestServer::start().await;
    let model = ScriptedModel::new()
        .call("transfer_to_support", "{}")
        .say("What else?")
        .call("transfer_to_support", "{}");
    let triage = triage(&endpoint(server.url()), &model);
    let conversation = Conversations::in_memory().get("tuesday");
    let runner = Runner::new(&triage).session(&conversation);
    let asked = runner.run("refund my bill").await.unwrap();
    assert_eq!(
        asked.final_text(),
        "Billing wants to call refund with {\"amount\":5}. Answer \"approve\" or \"reject\"."
    );
    // Another runner, as after a restart: the conversation knows the task.
    let again = self::triage(&endpoint(server.url()), &model);
    let runner = Runner::new(&again).session(&conversation);
    let done = runner.run("approve").await.unwrap();
    assert_eq!(done.final_text(), "Billing: I got refunded {\"amount\":5}.");
    assert_eq!(done.last_agent().name(), "Support");
    assert_eq!(tasks(&server.client).await.len(), 1);
    // The task has ended: the next message goes to the agent that the conversation came from.
    let back = runner.run("thank you").await.unwrap();
    assert_eq!(
        (back.last_agent().name(), &*back.final_text()),
        ("Triage", "What else?")
    );
    assert_eq!(tasks(&server.client).await.len(), 1);
    // Handed over again, it goes on in the same context, with what was said meanwhile.
    let more = runner.run("is it paid?").await.unwrap();
    assert_eq!(more.last_agent().name(), "Support");
    let tasks = tasks(&server.client).await;
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0]["contextId"], tasks[1]["contextId"]);
    assert_eq!(
        tasks[0]["history"][0]["parts"],
        json!([
            {"text": "The conversation so far:\nUser: thank you\nAssistant: What else?"},
            {"text": "is it paid?"},
        ])
    );
}

#[tokio::test]
async fn a_message_is_handed_back_once_even_if_the_filter_hides_the_handoff() {
    let server = TestServer::start().await;
    let model = ScriptedModel::new()
        .call("transfer_to_support", "{}")
        .call("transfer_to_support", "{}");
    let client = endpoint(server.url()).connect().unwrap();
    let support = Agent::new("Support")
        .model(RemoteAgent::new(&client))
        .handoff(Handoff::to_previous());
    let handoff =
        switchboard_core::handoff(&support).filter(switchboard_core::filters::remove_all_tools());
    let triage: Agent = Agent::new("Triage").model(model.clone()).handoff(handoff);
    let conversation = Conversations::in_memory().get("tuesday");
    let runner = Runner::new(&triage).session(&conversation);
    runner.run("one").await.unwrap();
    let second = runner.run("two").await.unwrap();
    assert_eq!(second.last_agent().name(), "Support");
    assert_eq!(second.final_text(), "Triage: you said two");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn an_agent_without_handoffs_keeps_the_conversation() {
    let server = TestServer::start().await;
    let client = endpoint(server.url()).connect().unwrap();
    let support: Agent = Agent::new("Support").model(RemoteAgent::new(&client));
    let conversation = Conversations::in_memory().get("tuesday");
    let runner = Runner::new(&support).session(&conversation);
    for text in ["one", "two"] {
        let answered = runner.run(text).await.unwrap();
        assert_eq!(answered.final_text(), format!("Triage: you said {text}"));
    }
    let tasks = tasks(&server.client).await;
    assert_eq!(tasks[0]["contextId"], tasks[1]["contextId"]);
}

#[tokio::test]
async fn a_task_that_ended_meanwhile_gives_way_to_another_in_its_context() {
    let server = TestServer::start().await;
    let client = endpoint(server.url()).connect().unwrap();
    let support: Agent = Agent::new("Support").model(RemoteAgent::new(&client));
    let conversation = Conversations::in_memory().get("tuesday");
    let runner = Runner::new(&support).session(&conversation);
    runner.run("refund my bill").await.unwrap();
    let task = tasks(&server.client).await.remove(0);
    let path = format!("/a2a/support/tasks/{}:cancel", task["id"].as_str().unwrap());
    let cancel = server
        .client
        .request("POST", &path)
        .header("A2A-Version", "1.0");
    answer(cancel).await.ok();
    let next = runner.run("hello").await.unwrap();
    assert_eq!(next.final_text(), "Billing: you said hello");
    let tasks = tasks(&server.client).await;
    assert_eq!(
        (tasks.len(), &tasks[0]["contextId"]),
        (2, &task["contextId"])
    );
}

#[tokio::test]
async fn the_binding_is_the_cards_and_a_server_that_does_not_stream_is_asked_for_its_task() {
    let server = TestServer::start().await;
    let url = format!("{}/a2a/support", server.url());
    for (binding, is_streaming) in [
        ("HTTP+JSON", true),
        ("HTTP+JSON", false),
        ("JSONRPC", false),
    ] {
        let interface = json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
        let card = card(interface, is_streaming).await;
        let client = Endpoint::at(card).connect().unwrap();
        let remote = RemoteAgent::new(&client);
        let refused = remote.card().await.unwrap_err();
        assert_eq!(refused.kind(), ModelErrorKind::Configuration);
        let remote = remote.allow_endpoint(server.url()).unwrap();
        assert_eq!(remote.card().await.unwrap().name, "Support");
        let support: Agent = Agent::new("Support").model(remote);
        let mut stream = Runner::new(&support).stream("my bill");
        while stream.next().await.is_some() {}
        let answered = stream.finish().await.unwrap();
        assert_eq!(
            answered.final_text(),
            "Billing: you said my bill",
            "{binding}"
        );
        let plain = Runner::new(&support).run("my bill").await.unwrap();
        assert_eq!(plain.final_text(), "Billing: you said my bill", "{binding}");
    }
    // A server may answer while the task is still under way.
    let working = json!({"task": {"id": "task_1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let done = json!({"id": "task_1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
                      "artifacts": [{"artifactId": "a", "parts": [{"text": "At last."}]}]});
    let both = working
        .as_object()
        .into_iter()
        .chain(done.as_object())
        .flatten();
    let both: serde_json::Map<String, Value> = both.map(|(k, v)| (k.clone(), v.clone())).collect();
    let slow = serve(
        "200 OK\r\ncontent-type: application/json",
        &Value::from(both).to_string(),
    )
    .await;
    let interface = json!({"url": slow, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
    let client = Endpoint::at(card(interface, false).await)
        .connect()
        .unwrap();
    let remote = RemoteAgent::new(&client).allow_endpoint(&slow).unwrap();
    let support: Agent = Agent::new("Support").model(remote);
    let answered = Runner::new(&support).run("hello").await.unwrap();
    assert_eq!(answered.final_text(), "At last.");
}

#[tokio::test]
async fn failures_of_the_remote_team_are_told() {
    let server = TestServer::start().await;
    let model = ScriptedModel::new().call("transfer_to_support", "{}");
    let triage = triage(&endpoint(server.url()), &model);
    let failed = Runner::new(&triage).run("fail").await.unwrap_err();
    let error = model_error(&failed);
    assert_eq!(error.kind(), ModelErrorKind::Failed);
    assert!(
        error.to_string().contains("the remote agent failed: "),
        "{error}"
    );
    assert!(
        error.to_string().contains("the provider is down"),
        "{error}"
    );
}

#[tokio::test]
async fn the_key_is_sent_and_never_told() {
    let (key, entry) = make_key("alice").unwrap();
    let keys = Keys::from_entries([entry]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    let at = |key: &str| {
        let client = endpoint(server.url()).key(key).connect().unwrap();
        let support: Agent = Agent::new("Support").model(RemoteAgent::new(&client));
        support
    };
    let answered = Runner::new(&at(&key)).run("my bill").await.unwrap();
    assert_eq!(answered.final_text(), "Billing: you said my bill");
    let refused = Runner::new(&at("sb_wrong_secret"))
        .run("my bill")
        .await
        .unwrap_err();
    assert_eq!(model_error(&refused).kind(), ModelErrorKind::Authentication);
    assert!(!format!("{refused:?} {refused}").contains("wrong_secret"));
    // A card that would lead the key to another server is refused, and nothing is sent there.
    let url = format!("{}/a2a/support", server.url());
    let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let client = Endpoint::at(card(interface, true).await)
        .key(&key)
        .connect()
        .unwrap();
    let support: Agent = Agent::new("Support").model(RemoteAgent::new(&client));
    let before = tasks(&server.client_with(&key)).await.len();
    let refused = Runner::new(&support).run("my bill").await.unwrap_err();
    assert_eq!(model_error(&refused).kind(), ModelErrorKind::Configuration);
    assert_eq!(tasks(&server.client_with(&key)).await.len(), before);
}

#[tokio::test]
async fn redirects_web_pages_huge_cards_and_other_versions_are_errors() {
    let huge = format!("{{\"name\": \"{}\"}}", "x".repeat(2 << 20));
    let old = json!({"name": "Old", "supportedInterfaces": [
        {"url": "http://127.0.0.1:1/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]});
    for (head, body, kind) in [
        (
            "307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/",
            "",
            ModelErrorKind::Redirect,
        ),
        (
            "200 OK\r\ncontent-type: text/html",
            "<html>",
            ModelErrorKind::WebPage,
        ),
        ("200 OK", huge.as_str(), ModelErrorKind::TooLarge),
        ("200 OK", "[1]", ModelErrorKind::BadAnswer),
        (
            "200 OK",
            old.to_string().as_str(),
            ModelErrorKind::BadAnswer,
        ),
    ] {
        let address = serve(head, body).await;
        let client = Endpoint::at(address).retries(0).connect().unwrap();
        let error = RemoteAgent::new(&client).card().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{head}: {error}");
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_cancels_the_remote_task() {
    let server = TestServer::start().await;
    let model = ScriptedModel::new().call("transfer_to_support", "{}");
    let triage = triage(&endpoint(server.url()), &model);
    let mut stream = Runner::new(&triage).stream("slow");
    while let Some(event) = stream.next().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            break;
        }
    }
    drop(stream);
    until(|| async {
        let tasks = tasks(&server.client).await;
        tasks[0]["status"]["state"] == "TASK_STATE_CANCELED"
    })
    .await;
}

#[tokio::test]
async fn a_remote_agent_that_takes_too_long_is_left() {
    let server = TestServer::start().await;
    let mut slow = endpoint(server.url()).retries(0);
    slow = slow.total_timeout(Duration::from_millis(300));
    let client = slow.connect().unwrap();
    let support: Agent = Agent::new("Support").model(RemoteAgent::new(&client));
    let late = Runner::new(&support).run("slow").await.unwrap_err();
    assert_eq!(model_error(&late).kind(), ModelErrorKind::Timeout);
    // A client of the same server goes on.
    let body = json!({"input": "hello"});
    let request = server
        .client
        .request("POST", "/api/conversations/a/messages");
    answer(with_json(request, &body)).await.ok();
}
