//! Tools that the provider runs once a person has approved the call.

use serde_json::{Value, json};
use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, Tool, tool};

use super::resume_after;
use crate::stored;

fn request(id: &str) -> Item {
    let request = json!({
        "type": "mcp_approval_request", "id": id, "name": "delete",
        "server_label": "docs", "arguments": "{\"page\":7}",
    });
    Item::from_value(&request).unwrap()
}

fn server() -> Value {
    json!({"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example"})
}

#[tokio::test]
async fn the_provider_gets_the_decision() {
    for (decision, answer) in [
        (
            Decision::approve(),
            json!({"type": "mcp_approval_response", "approval_request_id": "r1", "approve": true}),
        ),
        (
            Decision::reject().message("Keep it."),
            json!({"type": "mcp_approval_response", "approval_request_id": "r1",
                   "approve": false, "reason": "Keep it."}),
        ),
    ] {
        let agent: Agent = Agent::new("Editor").tool(Tool::hosted(server()));
        let model = ScriptedModel::new().reply([request("r1")]).say("Done.");
        let runner = Runner::new(&agent).model(model.clone());
        let result = runner.run("Delete page 7").await.unwrap();
        let waiting = result.interruptions();
        let kind = InterruptionKind::HostedTool {
            server: "docs".into(),
        };
        assert_eq!((waiting.len(), &waiting[0].kind), (1, &kind));
        assert_eq!((&*waiting[0].tool, &*waiting[0].call_id), ("delete", "r1"));

        let mut run = stored(result.run());
        run.decide(&waiting[0], decision).unwrap();
        let result = runner.resume(stored(&run)).await.unwrap();

        assert_eq!(result.final_text(), "Done.");
        let sent = &model.requests()[1].input;
        assert_eq!(sent.len(), 3);
        let sent: Value = serde_json::from_str(sent[2].as_json()).unwrap();
        assert_eq!(sent, answer);
    }
}

#[tokio::test]
async fn a_condition_or_a_standing_decision_answers_in_place_of_a_person() {
    let hosted: Tool = tool("docs")
        .needs_approval_if(|_ctx, arguments| arguments["page"] == 8)
        .hosted(server());
    let agent: Agent = Agent::new("Editor").tool(hosted);
    let model = ScriptedModel::new().reply([request("r1")]).say("Done.");
    let result = Runner::new(&agent)
        .model(model)
        .run("Delete")
        .await
        .unwrap();
    assert_eq!(result.final_text(), "Done.");

    let agent: Agent = Agent::new("Editor").tool(Tool::hosted(server()));
    let model = ScriptedModel::new()
        .reply([request("r1"), request("r2")])
        .reply([request("r3")])
        .say("Done.");
    let runner = Runner::new(&agent).model(model);
    let result = runner.run("Delete").await.unwrap();
    let result = resume_after(&runner, result, Decision::approve().always()).await;
    assert_eq!(result.final_text(), "Done.");
}

#[tokio::test]
async fn a_standing_decision_is_for_one_server() {
    let other =
        json!({"type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example"});
    let agent: Agent = Agent::new("Editor")
        .tool(Tool::hosted(server()))
        .tool(Tool::hosted(other));
    let of_wiki = json!({
        "type": "mcp_approval_request", "id": "r2", "name": "delete",
        "server_label": "wiki", "arguments": "{}",
    });
    let model = ScriptedModel::new()
        .reply([request("r1")])
        .reply([Item::from_value(&of_wiki).unwrap()]);
    let runner = Runner::new(&agent).model(model);
    let result = runner.run("Delete").await.unwrap();
    let result = resume_after(&runner, result, Decision::approve().always()).await;
    let waiting = result.interruptions();
    assert_eq!((waiting.len(), &*waiting[0].call_id), (1, "r2"));
}

#[tokio::test]
async fn a_request_without_an_identifier_cannot_be_answered() {
    let agent: Agent = Agent::new("Editor").tool(Tool::hosted(server()));
    let nameless =
        json!({"type": "mcp_approval_request", "name": "delete", "server_label": "docs"});
    let model = ScriptedModel::new().reply([Item::from_value(&nameless).unwrap()]);
    let error = Runner::new(&agent)
        .model(model)
        .run("Delete")
        .await
        .unwrap_err();
    assert!(error.is_model_behavior(), "{error}");
    assert!(error.to_string().contains("without an id"), "{error}");
}
