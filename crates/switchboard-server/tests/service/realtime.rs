//! Realtime sessions over a WebSocket.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::{Agent, Team, tool};
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeModelSettings,
};
use switchboard_realtime::testing::{
    ScriptedRealtimeModel, ScriptedSpeechToText, ScriptedTextToSpeech, speech,
};
use switchboard_server::{
    Keys, Limits, RecordingLimits, ServedTeam, ServiceBuilder, VoiceModels, make_key,
};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::support::{Client, PATIENCE, RuleModel, TestServer, team, until};

/// Desk hands off to Billing, which has a tool that needs approval.
fn spoken_team() -> Team {
    let refund = tool::<()>("refund")
        .needs_approval()
        .run_raw(&json!({"type": "object"}), |_ctx| "refunded");
    Team::new()
        .agent(
            Agent::new("Desk")
                .handoff("Billing")
                .model(RuleModel::new()),
        )
        .agent(Agent::new("Billing").tool(refund).model(RuleModel::new()))
        .build()
        .unwrap()
}

/// A server with a team that has a realtime model, as `spoken`.
async fn realtime_server(
    model: &ScriptedRealtimeModel,
    configure: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
) -> TestServer {
    let served = ServedTeam::new("spoken", spoken_team(), ())
        .realtime(model.clone(), RealtimeModelSettings::default())
        .unwrap();
    TestServer::with(|builder| configure(builder.team(served))).await
}

/// A server with a team that has a voice pipeline, as `voice`.
async fn voice_server(words: &[&str]) -> TestServer {
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(words.iter().copied()),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(5)),
    );
    let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
    let recorded = RecordingLimits::default();
    TestServer::with(|builder| builder.team(served).record(recorded)).await
}

/// A client of a session.
pub(crate) struct Socket(WebSocketStream<TcpStream>);

/// A frame of the service.
#[derive(Debug, PartialEq)]
enum Frame {
    Json(Value),
    Audio(usize),
    Closed(Option<u16>),
}

/// Opens a WebSocket with these subprotocols; an error is the status of the refusal.
async fn open_with(
    server: &TestServer,
    team: &str,
    protocols: &str,
    origin: Option<&str>,
) -> Result<Socket, u16> {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let url = format!("ws://{address}/api/teams/{team}/realtime");
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    let protocols = HeaderValue::from_str(protocols).unwrap();
    headers.insert("sec-websocket-protocol", protocols);
    if let Some(origin) = origin {
        headers.insert("origin", HeaderValue::from_str(origin).unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, response)) => {
            let chosen = &response.headers()["sec-websocket-protocol"];
            assert_eq!(chosen, "switchboard.realtime.v1");
            Ok(Socket(socket))
        }
        Err(SocketError::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn ticket(client: &Client, team: &str, body: Value) -> String {
    let path = format!("/api/teams/{team}/realtime/tickets");
    let answer = client.post(&path, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["ticket"].as_str().unwrap().to_owned()
}

pub(crate) async fn open(server: &TestServer, team: &str, body: Value) -> Socket {
    let ticket = ticket(&server.client, team, body).await;
    let protocols = format!("switchboard.realtime.v1, ticket.{ticket}");
    open_with(server, team, &protocols, Some(server.url()))
        .await
        .unwrap()
}

impl Socket {
    pub(crate) async fn send(&mut self, command: Value) {
        let message = Message::Text(command.to_string().into());
        self.0.send(message).await.unwrap();
    }

    async fn send_audio(&mut self, bytes: Vec<u8>) {
        self.0.send(Message::Binary(bytes.into())).await.unwrap();
    }

    async fn next(&mut self) -> Frame {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap();
            return match message {
                Some(Ok(Message::Text(text))) => Frame::Json(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Binary(bytes))) => Frame::Audio(bytes.len()),
                Some(Ok(Message::Close(frame))) => {
                    Frame::Closed(frame.map(|frame| frame.code.into()))
                }
                None | Some(Err(_)) => Frame::Closed(None),
                Some(Ok(_)) => continue,
            };
        }
    }

    /// Reads until a frame of this type, and returns what came, without audio.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Frame::Json(frame) => {
                    let is_last = frame["type"] == kind;
                    frames.push(frame);
                    if is_last {
                        return frames;
                    }
                }
                Frame::Audio(_) => {}
                Frame::Closed(code) => panic!("closed with {code:?} before {kind}: {frames:#?}"),
            }
        }
    }

    /// The reason and the code of the end.
    async fn end(&mut self) -> (String, Option<u16>) {
        let closed = self.until("closed").await;
        let reason = closed.last().unwrap()["reason"]
            .as_str()
            .unwrap()
            .to_owned();
        match self.next().await {
            Frame::Closed(code) => (reason, code),
            other => panic!("{other:?}"),
        }
    }
}

fn types(frames: &[Value]) -> Vec<&str> {
    let kinds = frames.iter().map(|frame| frame["type"].as_str().unwrap());
    kinds.collect()
}

/// The authors and texts of a stored conversation.
async fn stored(client: &Client, conversation: &str) -> Vec<String> {
    let path = format!("/api/conversations/{conversation}");
    let shown = client.get(&path).await;
    if shown.status == 404 {
        return Vec::new();
    }
    let shown = shown.ok();
    let items = shown["items"].as_array().unwrap().iter();
    let text = |content: &Value| match &content["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let messages = items.filter(|entry| entry["content"]["role"].is_string());
    messages
        .map(|entry| {
            let content = &entry["content"];
            format!("{}: {}", content["role"].as_str().unwrap(), text(content))
        })
        .collect()
}

#[tokio::test]
async fn a_spoken_conversation_is_handed_over_and_goes_on_as_text() {
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Which bill?"));
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({"conversation": "c"})).await;
    let Frame::Json(first) = socket.next().await else {
        panic!("the first frame is JSON");
    };
    let session = first["session"].clone();
    assert_eq!(
        first,
        json!({
            "type": "session", "version": 1, "session": session, "team": "spoken", "conversation": "c",
            "agent": "Desk", "mode": "realtime", "sample_rate": 24000, "turns": "detected",
            "playback": "clock",
        })
    );
    socket.send_audio(vec![1; 960]).await;
    socket
        .send(json!({"type": "text", "text": "My bill"}))
        .await;
    let frames = socket.until("handoff").await;
    assert_eq!(
        *frames.last().unwrap(),
        json!({"type": "handoff", "from": "Desk", "to": "Billing", "status": "taken"})
    );
    let user = json!({"type": "message", "role": "user", "text": "My bill"});
    assert!(frames.contains(&user), "{frames:#?}");
    let mut audio = 0;
    let said = loop {
        match socket.next().await {
            Frame::Audio(bytes) => audio += bytes,
            Frame::Json(frame) if frame["type"] == "message" => break frame,
            Frame::Json(_) => {}
            Frame::Closed(code) => panic!("closed with {code:?}"),
        }
    };
    assert_eq!(
        said,
        json!({"type": "message", "role": "assistant", "agent": "Billing", "text": "Which bill?"})
    );
    assert_eq!(audio, 480);
    let heard = model.sent().into_iter().find_map(|command| match command {
        RealtimeModelCommand::Audio { audio, .. } => Some(audio.len()),
        _ => None,
    });
    assert_eq!(heard, Some(960));
    socket.until("answer_ended").await;
    socket.send(json!({"type": "close"})).await;
    assert_eq!(socket.end().await, ("client".to_owned(), Some(1000)));
    assert!(model.is_closed());

    assert_eq!(
        stored(&server.client, "c").await,
        ["user: My bill", "assistant: Which bill?"]
    );
    let body = json!({"input": "two", "team": "spoken"});
    let run = server
        .client
        .post("/api/conversations/c/messages", body)
        .await
        .ok();
    assert_eq!(run["output"], "Billing: you said two");
    let metrics = server.client.get("/metrics").await.text;
    for line in [
        "switchboard_realtime_sessions_total{team=\"spoken\",reason=\"client\"} 1",
        "switchboard_realtime_sessions_open 0",
        "switchboard_handoffs_total{team=\"spoken\",from=\"Desk\",to=\"Billing\",status=\"taken\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn calls_that_wait_are_decided_over_the_socket() {
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("a", "refund", "{}"))
        .turn(|turn| turn.call_as("b", "refund", "{}"))
        .turn(|turn| turn.say("Done."));
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({"agent": "Billing"})).await;
    socket
        .send(json!({"type": "text", "text": "My money"}))
        .await;
    let frames = socket.until("approval_required").await;
    assert_eq!(
        frames.last().unwrap()["waiting"],
        json!([{"kind": "tool", "details": null, "agent": "Billing", "tool": "refund",
                "call_id": "a", "arguments": "{}"}])
    );
    socket
        .send(json!({"type": "decide", "call_id": "x", "approve": true}))
        .await;
    let frames = socket.until("error").await;
    assert_eq!(frames.last().unwrap()["code"], "not_waiting");
    let decide = json!({"type": "decide", "call_id": "a", "approve": false, "message": "No."});
    socket.send(decide).await;
    socket.until("approval_required").await;
    socket
        .send(json!({"type": "decide", "call_id": "b", "approve": true}))
        .await;
    let frames = socket.until("tool_ended").await;
    assert_eq!(frames.last().unwrap()["output"], "refunded");
    let frames = socket.until("message").await;
    assert_eq!(frames.last().unwrap()["text"], "Done.");
}

#[tokio::test]
async fn the_user_interrupts_an_answer_and_what_was_played_is_reported() {
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.say("A long answer").leave_open())
        .turn(|turn| turn.say("Yes?"));
    let server = realtime_server(&model, |builder| builder).await;
    let mut socket = open(&server, "spoken", json!({"playback": "reported"})).await;
    socket.send(json!({"type": "text", "text": "Hello"})).await;
    socket.until("answer_started").await;
    while !matches!(socket.next().await, Frame::Audio(_)) {}
    socket.send(json!({"type": "played", "ms": 4})).await;
    model.emit(RealtimeModelEvent::SpeechStarted {
        item_id: "item_9".into(),
        audio_start_ms: 0,
    });
    socket.until("speech_started").await;
    socket.send(json!({"type": "interrupt"})).await;
    socket.send(json!({"type": "text", "text": "Stop"})).await;
    let frames = socket.until("answer_ended").await;
    assert!(!types(&frames).contains(&"error"), "{frames:#?}");
    until(|| async { model.responses() == 2 }).await;
    let interrupted = model
        .sent()
        .iter()
        .any(|command| matches!(command, RealtimeModelCommand::Interrupt(_)));
    assert!(interrupted);
    let playback = model.configs()[0].playback.clone().unwrap();
    assert!(
        playback
            .state()
            .is_none_or(|state| state.elapsed_ms <= 10.0)
    );
}

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
async fn a_call_that_waits_in_a_spoken_conversation_is_listed_until_it_is_decided() {
    let server = voice_server(&[]).await;
    let client = &server.client;
    let mut changes = client.open(client.request("GET", "/api/events")).await;
    assert_eq!(changes.next().await.unwrap().name.as_deref(), Some("hello"));
    let mut socket = open(&server, "voice", json!({"conversation": "v"})).await;
    let text = json!({"type": "text", "text": "refund my bill"});
    socket.send(text).await;
    let frames = socket.until("approval_required").await;
    let call = frames.last().unwrap()["waiting"][0]["call_id"].clone();
    let change = loop {
        let change = changes.next().await.unwrap();
        if change.name.as_deref() == Some("waiting") {
            break change.json();
        }
    };
    assert_eq!(change, json!({"conversation": "v", "is_waiting": true}));
    let listed = async || client.get("/api/waiting").await.ok()["waiting"].clone();
    assert_eq!(listed().await[0]["conversation"], "v");
    socket
        .send(json!({"type": "decide", "call_id": call, "approve": true}))
        .await;
    socket.until("answer_ended").await;
    until(|| async {
        let shown = client.get("/api/conversations").await.ok();
        shown["conversations"][0]["is_waiting"] == false
    })
    .await;
    assert_eq!(listed().await, json!([]));
}

#[tokio::test]
async fn the_tokens_of_a_session_outlive_the_server() {
    let (key, mut entry) = make_key("acme").unwrap();
    entry.tokens_per_day = Some(10);
    let store = Conversations::in_memory();
    let start = async || {
        let keys = Keys::from_entries([entry.clone()]).unwrap();
        let models = VoiceModels::new(
            ScriptedSpeechToText::new([""]),
            ScriptedTextToSpeech::new().per_character(Duration::from_millis(1)),
        );
        let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
        let store = store.clone();
        TestServer::with(|builder| builder.team(served).keys(keys).conversations(store)).await
    };
    let server = start().await;
    let id = ticket(&server.client_with(&key), "voice", json!({})).await;
    let protocols = format!("switchboard.realtime.v1, ticket.{id}");
    let mut socket = open_with(&server, "voice", &protocols, None).await.unwrap();
    socket.send(json!({"type": "text", "text": "hello"})).await;
    assert_eq!(socket.end().await.0, "limit");
    server.running.shut_down().await;
    let server = start().await;
    let body = json!({"input": "hi", "team": "support"});
    let path = "/api/conversations/c/messages";
    let refused = server.client_with(&key).post(path, body).await;
    assert_eq!(refused.error_code(), (429, "rate_limited".to_owned()));
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
