//! Agent cards.

use serde_json::json;
use switchboard_core::{Agent, Team};
use switchboard_server::{Keys, ServedTeam, make_key};

use super::{call, error_code, message, request, result, send};
use crate::support::{RuleModel, TestServer, with_json};

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
