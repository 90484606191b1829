//! Agents inside others over AG-UI: those that tools ask, and those that answer side by side.

use serde_json::json;
use switchboard_server::ServedTeam;

use super::{answer, input, last, outline, run_team, said, user};
use crate::support::{RuleModel, TestServer, crew, desk};

/// A server that also has a team with an agent as a tool.
async fn desk_server() -> TestServer {
    let team = desk(&RuleModel::new());
    TestServer::with(|builder| builder.team(ServedTeam::new("desk", team, ()))).await
}

#[tokio::test]
async fn an_agent_that_a_tool_asks_is_a_subagent_of_the_call() {
    let server = desk_server().await;
    let events = run_team(
        &server.client,
        "desk",
        input("t", "r1", &[user("expert lookup")]),
    )
    .await;
    assert_eq!(
        outline(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED Desk",
            "TOOL_CALL_START ask_expert",
            "TOOL_CALL_ARGS {\"input\":\"lookup\"}",
            "TOOL_CALL_END",
            "  SUBAGENT_STARTED Expert",
            "  STEP_STARTED Expert",
            "  TOOL_CALL_START lookup",
            "  TOOL_CALL_ARGS {\"account\":7}",
            "  TOOL_CALL_END",
            "  TOOL_CALL_RESULT open",
            "  TEXT_MESSAGE_START Expert",
            "  TEXT_MESSAGE_CONTENT Expert:",
            "  TEXT_MESSAGE_CONTENT I",
            "  TEXT_MESSAGE_CONTENT got",
            "  TEXT_MESSAGE_CONTENT open.",
            "  TEXT_MESSAGE_END",
            "  STEP_FINISHED Expert",
            "  SUBAGENT_FINISHED success",
            "TOOL_CALL_RESULT Expert: I got open.",
            "TEXT_MESSAGE_START Desk",
            "TEXT_MESSAGE_CONTENT Desk:",
            "TEXT_MESSAGE_CONTENT I",
            "TEXT_MESSAGE_CONTENT got",
            "TEXT_MESSAGE_CONTENT Expert:",
            "TEXT_MESSAGE_CONTENT I",
            "TEXT_MESSAGE_CONTENT got",
            "TEXT_MESSAGE_CONTENT open..",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED Desk",
            "RUN_FINISHED success",
        ]
    );
    let call = &events[2]["toolCallId"];
    assert_eq!(
        events[5],
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": call, "name": "Expert", "parentToolCallId": call})
    );
    assert_eq!(events[18]["result"], "Expert: I got open.");
    assert!(
        !events
            .iter()
            .any(|event| event.to_string().contains("null"))
    );
}

#[tokio::test]
async fn a_subagent_that_waits_is_suspended_and_the_same_one_goes_on() {
    let server = desk_server().await;
    let client = &server.client;
    let list = [user("expert refund")];
    let asked = run_team(client, "desk", input("t", "r1", &list)).await;
    let call = &asked[2]["toolCallId"];
    let interrupts = &last(&asked)["outcome"]["interrupts"];
    let waiting = &interrupts[0]["id"];
    let suspended = asked
        .iter()
        .find(|event| event["type"] == "SUBAGENT_FINISHED");
    assert_eq!(
        *suspended.unwrap(),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": call,
               "outcome": {"type": "suspended", "interruptIds": [waiting]}})
    );
    let mut body = input("t", "r2", &list);
    body["resume"] =
        json!([{"interruptId": waiting, "status": "resolved", "payload": {"approved": true}}]);
    let resumed = run_team(client, "desk", body).await;
    let begun = resumed
        .iter()
        .find(|event| event["type"] == "SUBAGENT_STARTED");
    assert_eq!(begun.unwrap()["subagentRunId"], *call);
    assert_eq!(last(&resumed)["outcome"]["type"], "success");
    assert_eq!(
        said(&resumed),
        "Desk: I got Expert: I got refunded {\"amount\":5}.."
    );
}

#[tokio::test]
async fn a_subagent_that_fails_ends_before_the_run_goes_on_or_ends() {
    let server = desk_server().await;
    let client = &server.client;
    let failed = run_team(client, "desk", input("t", "r1", &[user("expert fail")])).await;
    let told = outline(&failed);
    let at = told
        .iter()
        .position(|line| line.contains("SUBAGENT_ERROR"))
        .unwrap_or_else(|| panic!("{told:#?}"));
    assert!(!told[at..].iter().skip(1).any(|line| line.starts_with("  ")));
    assert_eq!(
        told[at..]
            .iter()
            .filter(|line| line.starts_with("RUN_"))
            .count(),
        1
    );
}

#[tokio::test]
async fn agents_that_answer_side_by_side_are_subagents() {
    let server = TestServer::with(|builder| builder.team(crew())).await;
    let events = run_team(&server.client, "crew", input("t", "r1", &[user("ask")])).await;
    let of_kind = |kind: &str| {
        let events = events.iter().filter(|event| event["type"] == kind);
        events.collect::<Vec<_>>()
    };
    let begun = of_kind("SUBAGENT_STARTED");
    let mut names: Vec<&str> = begun
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["Bills", "Law"]);
    let calls = of_kind("TOOL_CALL_START");
    for event in begun {
        let call = &event["parentToolCallId"];
        let call = calls.iter().find(|other| other["toolCallId"] == *call);
        let tool = call.unwrap()["toolCallName"].as_str().unwrap();
        let name = event["name"].as_str().unwrap().to_lowercase();
        assert_eq!(tool, format!("transfer_to_{name}"));
    }
    let ended = of_kind("SUBAGENT_FINISHED");
    let mut results: Vec<&str> = ended
        .iter()
        .map(|event| event["result"].as_str().unwrap())
        .collect();
    results.sort_unstable();
    assert_eq!(results, ["Bills: yes.", "Law: yes."]);
    assert_eq!(said(&events), "Both say yes.");
}

#[tokio::test]
async fn messages_of_subagents_in_the_clients_list_are_no_part_of_the_conversation() {
    let server = desk_server().await;
    let client = &server.client;
    let mut inner = answer("msg_inner");
    inner["subagentRunId"] = json!("call_1");
    // A history that begins the conversation.
    let list = [user("hello"), inner, answer("a1"), user("two")];
    run_team(client, "desk", input("t", "r1", &list)).await;
    let shown = client.get("/api/conversations/t").await.ok();
    let roles = shown["items"].as_array().unwrap().iter();
    let roles: Vec<&str> = roles
        .map(|entry| entry["content"]["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}
