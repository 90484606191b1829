//! Realtime sessions over speech to text and text to speech.

use std::time::Duration;

use serde_json::json;
use switchboard_realtime::testing::{
    ScriptedRealtimeModel, ScriptedSpeechToText, ScriptedTextToSpeech, speech,
};
use switchboard_server::{ServedTeam, VoiceModels};

use super::{Frame, open, realtime_server, stored, types, voice_server};
use crate::support::{RuleModel, TestServer, team, until};

#[tokio::test]
async fn a_voice_pipeline_hears_hands_over_and_speaks() {
    let server = voice_server(&["my bill", "refund my bill"]).await;
    let mut socket = open(&server, "voice", json!({"conversation": "v"})).await;
    let second = speech(24_000).to_pcm();
    for piece in second.chunks(9_600) {
        socket.send_audio(piece.to_vec()).await;
    }
    let frames = socket.until("answer_ended").await;
    assert_eq!(frames[0]["mode"], "voice");
    let told: Vec<String> = frames
        .iter()
        .filter(|frame| frame["type"] == "message")
        .map(|frame| frame["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["my bill", "Billing: you said my bill"]);
    let kinds = types(&frames);
    let place = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(place("speech_started") < place("speech_stopped"));
    assert!(place("speech_stopped") < place("answer_started"));
    let handoff = &frames[place("handoff")];
    assert_eq!(
        (&handoff["from"], &handoff["to"], &handoff["payload"]),
        (&json!("Triage"), &json!("Billing"), &json!({}))
    );

    // A call that waits is decided, and the run goes on.
    for piece in second.chunks(9_600) {
        socket.send_audio(piece.to_vec()).await;
    }
    let frames = socket.until("approval_required").await;
    let call = frames.last().unwrap()["waiting"][0]["call_id"].clone();
    socket
        .send(json!({"type": "decide", "call_id": call, "approve": true}))
        .await;
    let frames = socket.until("tool_ended").await;
    assert_eq!(frames.last().unwrap()["output"], "refunded {\"amount\":5}");
    socket.until("answer_ended").await;
    socket.send(json!({"type": "close"})).await;
    socket.end().await;
    assert_eq!(
        stored(&server.client, "v").await,
        [
            "user: my bill",
            "assistant: Billing: you said my bill",
            "user: refund my bill",
            "assistant: Billing: I got refunded {\"amount\":5}.",
        ]
    );
    // What happened is recorded, all runs of the session together.
    let path = "/api/conversations/v/recordings";
    until(|| async {
        let recordings = server.client.get(path).await.ok()["recordings"].clone();
        recordings[0]["status"] == "completed"
    })
    .await;
    let recordings = server.client.get(path).await.ok()["recordings"].clone();
    assert_eq!(recordings.as_array().unwrap().len(), 1);
    assert_eq!(recordings[0]["tokens"]["input"], 20);
    let path = format!(
        "/api/runs/{}/recording",
        recordings[0]["run"].as_str().unwrap()
    );
    let rows = server.client.get(&path).await.ok()["rows"].clone();
    let titles = rows.as_array().unwrap().iter();
    let titles: Vec<&str> = titles.map(|row| row["name"].as_str().unwrap()).collect();
    assert!(titles.contains(&"Triage → Billing"), "{titles:?}");
    let metrics = server.client.get("/metrics").await.text;
    let tokens = "switchboard_tokens_total{team=\"voice\",kind=\"input\"} 20";
    assert!(metrics.contains(tokens), "{metrics}");
}

#[tokio::test]
async fn speech_interrupts_a_spoken_answer_and_the_conversation_keeps_what_was_heard() {
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(["and now"]),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(500)),
    );
    let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
    let server = TestServer::with(|builder| builder.team(served)).await;
    let body = json!({"conversation": "v", "playback": "reported"});
    let mut socket = open(&server, "voice", body).await;
    socket.send(json!({"type": "text", "text": "hello"})).await;
    while !matches!(socket.next().await, Frame::Audio(_)) {}
    // "Triage:" has seven of twenty-two characters.
    socket.send(json!({"type": "played", "ms": 3_600})).await;
    for piece in speech(24_000).to_pcm().chunks(9_600) {
        socket.send_audio(piece.to_vec()).await;
    }
    let frames = socket.until("interrupted").await;
    assert_eq!(frames.last().unwrap()["heard"], "Triage:");
    socket.until("answer_started").await;
    socket.send(json!({"type": "close"})).await;
    socket.end().await;
    let stored = stored(&server.client, "v").await;
    assert_eq!(stored[..2], ["user: hello", "assistant: Triage:"]);
}

#[tokio::test]
async fn push_to_talk_and_mute() {
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(["hello"]),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(1)),
    );
    let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
    let server = TestServer::with(|builder| builder.team(served)).await;
    let mut socket = open(&server, "voice", json!({"turns": "manual"})).await;
    socket.send(json!({"type": "mute", "on": true})).await;
    socket.send_audio(vec![0; 9_600]).await;
    socket.send(json!({"type": "mute", "on": false})).await;
    socket.send_audio(vec![0; 4_800]).await;
    socket.send(json!({"type": "commit"})).await;
    let frames = socket.until("answer_ended").await;
    let user = json!({"type": "message", "role": "user", "text": "hello"});
    assert!(frames.contains(&user), "{frames:#?}");

    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hm."));
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({"turns": "manual"})).await;
    socket.send_audio(vec![0; 4_800]).await;
    socket.send(json!({"type": "commit"})).await;
    socket.until("answer_ended").await;
    let settings = &model.configs()[0].settings;
    assert_eq!(
        settings.turn_detection,
        Some(switchboard_realtime::model::Switch::Off)
    );
}
