//! The context of a conversation, which stays with it in every protocol.

use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_core::{Agent, Team};
use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech};
use switchboard_server::{ServedTeam, TeamContext, VoiceModels};

use crate::realtime::open;
use crate::support::{RuleModel, TestServer, answer, with_json};

/// A team whose agent is told the tier of its customer.
struct Tiers;

fn tiered(tier: &str) -> ServedTeam {
    let desk = Agent::<String>::new("Desk")
        .instructions_fn(|ctx, _agent| String::clone(&ctx))
        .model(RuleModel::new());
    let team = Team::new().agent(desk).build().unwrap();
    ServedTeam::new("tiered", team, tier.to_owned()).context(Tiers)
}

impl TeamContext for Tiers {
    fn values(&self) -> Vec<(String, Value)> {
        vec![("tier".to_owned(), "basic".into())]
    }

    fn with(&self, values: &Map<String, Value>) -> Result<ServedTeam, String> {
        let tier = values.get("tier").and_then(Value::as_str);
        Ok(tiered(tier.ok_or("there is no tier")?))
    }
}

#[tokio::test]
async fn a_conversation_keeps_its_context_in_every_protocol() {
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(["hello"]),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(1)),
    );
    let served = tiered("basic").voice(models);
    let server = TestServer::with(|builder| builder.team(served)).await;
    let client = &server.client;
    let path = "/api/conversations/c/messages";
    let body = json!({"input": "instructions", "team": "tiered", "context": {"tier": "premium"}});
    let expected = "Desk: you said instructions (premium)";
    assert_eq!(client.post(path, body).await.ok()["output"], expected);
    let body = json!({"input": "instructions", "team": "tiered"});
    assert_eq!(client.post(path, body).await.ok()["output"], expected);
    let body = json!({"input": "instructions"});
    assert_eq!(client.post(path, body).await.ok()["output"], expected);

    let body = json!({"model": "tiered", "input": "instructions", "conversation": "c"});
    let response = client.post("/v1/responses", body).await.ok();
    assert_eq!(response["output"][0]["content"][0]["text"], expected);

    let message = json!({"id": "u", "role": "user", "content": "instructions"});
    let body = json!({"threadId": "c", "runId": "r", "protocolVersion": "1.0", "messages": [message],
                      "tools": [], "context": [], "state": {}, "forwardedProps": {}});
    let events = client.events("/agui/tiered", body).await;
    let deltas = events.iter().map(crate::support::SseEvent::json);
    let said: String = deltas
        .filter_map(|event| Some(event["delta"].as_str()?.to_owned()))
        .collect();
    assert_eq!(said, expected);

    let message = json!({"messageId": "m", "role": "ROLE_USER", "contextId": "c",
                         "parts": [{"text": "instructions"}]});
    let request = client.request("POST", "/a2a/tiered/message:send");
    let request = request.header("A2A-Version", "1.0");
    let sent = answer(with_json(request, &json!({"message": message})))
        .await
        .ok();
    let said = &sent["task"]["artifacts"][0]["parts"][0]["text"];
    assert_eq!(*said, expected, "{sent}");

    let mut socket = open(&server, "tiered", json!({"conversation": "c"})).await;
    let text = json!({"type": "text", "text": "instructions"});
    socket.send(text).await;
    let frames = socket.until("answer_ended").await;
    let mut said = frames
        .iter()
        .filter(|frame| frame["role"] == "assistant")
        .map(|frame| &frame["text"]);
    assert_eq!(said.next(), Some(&json!(expected)), "{frames:#?}");

    // Another conversation has the context of the team.
    let body = json!({"model": "tiered", "input": "instructions", "conversation": "d"});
    let response = client.post("/v1/responses", body).await.ok();
    let basic = "Desk: you said instructions (basic)";
    assert_eq!(response["output"][0]["content"][0]["text"], basic);
}
