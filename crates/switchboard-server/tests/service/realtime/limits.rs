//! The bounds of realtime sessions: tickets, keys, times, frames and queues.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_realtime::model::RealtimeModelEvent;
use switchboard_realtime::testing::{
    ScriptedRealtimeModel, ScriptedSpeechToText, ScriptedTextToSpeech,
};
use switchboard_server::{Keys, Limits, ServedTeam, VoiceModels, make_key};

use super::{Frame, open, open_with, realtime_server, stored, ticket, voice_server};
use crate::support::{Client, PATIENCE, RuleModel, TestServer, team};

#[tokio::test]
async fn a_ticket_is_good_once_for_its_team_and_from_its_own_site() {
    let server = voice_server(&[]).await;
    let name = "switchboard.realtime.v1";
    let own = Some(server.url());
    let id = ticket(&server.client, "voice", json!({"conversation": "c"})).await;
    let protocols = format!("{name}, ticket.{id}");
    let refused = open_with(&server, "voice", &protocols, Some("http://evil.example")).await;
    assert_eq!(refused.err(), Some(403));
    let opened = open_with(&server, "voice", &protocols, own).await.unwrap();
    let replayed = open_with(&server, "voice", &protocols, own).await;
    assert_eq!(replayed.err(), Some(401));

    // A conversation has one session at a time.
    let id = ticket(&server.client, "voice", json!({"conversation": "c"})).await;
    let protocols = format!("{name}, ticket.{id}");
    let second = open_with(&server, "voice", &protocols, own).await;
    assert_eq!(second.err(), Some(409));
    drop(opened);

    let id = ticket(&server.client, "voice", json!({})).await;
    let protocols = format!("{name}, ticket.{id}");
    let other_team = open_with(&server, "support", &protocols, own).await;
    assert_eq!(other_team.err(), Some(401));
    for protocols in [name, "switchboard.realtime.v1, ticket.rt_0", "ticket.x"] {
        let refused = open_with(&server, "voice", protocols, None).await;
        assert!(matches!(refused.err(), Some(400 | 401)), "{protocols}");
    }
    let plain = server.client.get("/api/teams/voice/realtime").await;
    assert_eq!(plain.error_code(), (400, "invalid_request".to_owned()));

    // A team without a voice.
    let path = "/api/teams/support/realtime/tickets";
    let refused = server.client.post(path, json!({})).await;
    assert_eq!(refused.error_code(), (409, "conflict".to_owned()));
    let teams = server.client.get("/api/teams").await.ok();
    assert_eq!(teams["teams"][0]["speech"], Value::Null);
    assert_eq!(teams["teams"][1]["speech"], "voice");
}

#[tokio::test]
async fn sessions_belong_to_the_key_and_its_tenant_and_are_limited() {
    let (alice, mut first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    first.concurrent_runs = Some(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    let write = |entries: &[&switchboard_server::KeyEntry]| {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| serde_json::to_value(entry).unwrap())
            .collect();
        let text = toml::to_string(&json!({"keys": entries})).unwrap();
        std::fs::write(&path, text).unwrap();
    };
    write(&[&first, &second]);
    let keys = Keys::read(&path).unwrap();
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(["hello"]),
        ScriptedTextToSpeech::new(),
    );
    let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
    let mut limits = Limits::default();
    limits.realtime_sessions = 2;
    let server =
        TestServer::with(|builder| builder.team(served).keys(keys.clone()).limits(limits)).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let path_of_tickets = "/api/teams/voice/realtime/tickets";
    let no_key = server.client.post(path_of_tickets, json!({})).await;
    assert_eq!(no_key.status, 401);
    let open = async |client: &Client, conversation: &str| {
        let id = ticket(client, "voice", json!({"conversation": conversation})).await;
        let protocols = format!("switchboard.realtime.v1, ticket.{id}");
        open_with(&server, "voice", &protocols, None).await
    };
    let mut socket = open(&alice, "c").await.unwrap();
    socket.until("session").await;
    // The key's only run.
    assert_eq!(open(&alice, "d").await.err(), Some(429));
    let body = json!({"input": "hi", "team": "support"});
    let limited = alice.post("/api/conversations/e/messages", body).await;
    assert_eq!(limited.status, 429);
    // The same name is another tenant's conversation.
    let mut other = open(&bob, "c").await.unwrap();
    other.until("session").await;
    assert_eq!(open(&bob, "d").await.err(), Some(503));
    socket.send(json!({"type": "text", "text": "secret"})).await;
    socket.until("answer_started").await;
    socket.send(json!({"type": "close"})).await;
    socket.end().await;
    assert!(stored(&alice, "c").await[0].contains("secret"));
    assert_eq!(stored(&bob, "c").await, Vec::<String>::new());

    // A ticket and a session of a key that was removed meanwhile.
    let mut socket = open(&alice, "c").await.unwrap();
    socket.until("session").await;
    let id = ticket(&alice, "voice", json!({})).await;
    write(&[&second]);
    keys.reload().unwrap();
    socket.send(json!({"type": "text", "text": "more"})).await;
    assert_eq!(socket.end().await.0, "limit");
    let protocols = format!("switchboard.realtime.v1, ticket.{id}");
    let refused = open_with(&server, "voice", &protocols, None).await;
    assert_eq!(refused.err(), Some(401));
}

#[tokio::test]
async fn a_session_ends_with_its_time_its_conversation_and_the_service() {
    let mut limits = Limits::default();
    limits.realtime_time = Duration::from_millis(200);
    let model = ScriptedRealtimeModel::new();
    let server = realtime_server(&model, |builder| builder.limits(limits)).await;
    let mut socket = open(&server, "spoken", json!({})).await;
    assert_eq!(socket.end().await, ("time".to_owned(), Some(1000)));

    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hm.").leave_open());
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({"conversation": "c"})).await;
    socket.until("session").await;
    server.client.delete("/api/conversations/c").await;
    assert_eq!(socket.end().await, ("deleted".to_owned(), Some(1000)));

    // The answer that is under way may end.
    let mut idle = open(&server, "spoken", json!({"conversation": "idle"})).await;
    idle.until("session").await;
    let model_of_idle = model.clone();
    idle.send(json!({"type": "text", "text": "Hello"})).await;
    idle.until("answer_started").await;
    let service = server.service.clone();
    let drained = tokio::spawn(async move { service.drain(Duration::from_secs(60)).await });
    idle.until("draining").await;
    let refused = server
        .client
        .post("/api/teams/spoken/realtime/tickets", json!({}))
        .await;
    assert_eq!(refused.status, 503);
    model_of_idle.end_response();
    assert_eq!(idle.end().await, ("draining".to_owned(), Some(1001)));
    tokio::time::timeout(PATIENCE, drained)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn wrong_frames_are_told_and_too_long_ones_end_the_session() {
    let server = voice_server(&[]).await;
    let mut socket = open(&server, "voice", json!({})).await;
    for (frame, code) in [
        (json!({"type": "dance"}), "invalid_command"),
        (json!({"type": "text", "text": " "}), "invalid_command"),
        (
            json!({"type": "text", "text": "x", "loud": true}),
            "invalid_command",
        ),
        (json!({"type": "played", "ms": -1}), "invalid_command"),
        (
            json!({"type": "decide", "call_id": "x", "approve": true}),
            "not_waiting",
        ),
        (json!([1]), "invalid_command"),
    ] {
        socket.send(frame).await;
        let frames = socket.until("error").await;
        assert_eq!(frames.last().unwrap()["code"], code);
        assert_eq!(frames.last().unwrap()["fatal"], false);
    }
    socket.send_audio(vec![0; 3]).await;
    let frames = socket.until("error").await;
    assert_eq!(frames.last().unwrap()["code"], "invalid_frame");
    socket.send_audio(vec![0; 70_000]).await;
    while !matches!(socket.next().await, Frame::Closed(_)) {}
}

#[tokio::test]
async fn audio_that_a_slow_client_cannot_take_is_dropped_counted_and_told() {
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hm.").leave_open());
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({})).await;
    socket.send(json!({"type": "text", "text": "Hello"})).await;
    socket.until("answer_started").await;
    // Nothing is read while much more than all buffers hold is said.
    let second = axum::body::Bytes::from(vec![0; 48_000]);
    for at in 0..2_000 {
        model.emit(RealtimeModelEvent::Audio(
            switchboard_realtime::model::RealtimeModelAudio {
                data: second.clone(),
                response_id: "resp_1".into(),
                part: switchboard_realtime::model::AudioPart::new("item_2", 0),
            },
        ));
        if at % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let frames = socket.until("dropped").await;
    let dropped = frames.last().unwrap();
    assert_eq!(dropped["direction"], "out");
    assert!(dropped["ms"].as_u64().unwrap() > 10_000, "{dropped}");
    let metrics = server.client.get("/metrics").await.text;
    assert!(
        metrics.contains("switchboard_realtime_dropped_audio_seconds_total{direction=\"out\"}"),
        "{metrics}"
    );
}
