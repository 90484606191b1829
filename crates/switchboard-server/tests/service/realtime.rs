//! Realtime sessions over a WebSocket.

mod limits;
mod voice;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_core::{Agent, Team, tool};
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeModelSettings,
};
use switchboard_realtime::testing::{
    ScriptedRealtimeModel, ScriptedSpeechToText, ScriptedTextToSpeech,
};
use switchboard_server::{
    Keys, RecordingLimits, ServedTeam, ServiceBuilder, VoiceModels, make_key,
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
    voice_server_with(words, Conversations::in_memory()).await
}

/// Such a server with this store.
async fn voice_server_with(words: &[&str], store: Conversations) -> TestServer {
    let models = VoiceModels::new(
        ScriptedSpeechToText::new(words.iter().copied()),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(5)),
    );
    let served = ServedTeam::new("voice", team(&RuleModel::new()), ()).voice(models);
    let recorded = RecordingLimits::default();
    TestServer::with(|builder| builder.team(served).record(recorded).conversations(store)).await
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
    let metrics = server.client.get("/metrics").await.text;
    let open = "switchboard_realtime_sessions_open 1\n";
    assert!(metrics.contains(open), "{metrics}");
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
        "switchboard_realtime_sessions_open 0\n",
        "switchboard_realtime_session_seconds_count{team=\"spoken\"} 1",
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
async fn a_spoken_call_that_waits_is_listed_though_another_process_decided_an_earlier_one() {
    let store = Conversations::in_memory();
    let speaking = voice_server_with(&[], store.clone()).await;
    let deciding = voice_server_with(&[], store).await;
    let listed = async |server: &TestServer| {
        let waiting = server.client.get("/api/waiting").await.ok()["waiting"].clone();
        let waiting = waiting.as_array().unwrap().iter();
        let ids: Vec<String> = waiting
            .map(|one| one["conversation"].as_str().unwrap().to_owned())
            .collect();
        ids
    };
    for _ in 0..2 {
        let mut socket = open(&speaking, "voice", json!({"conversation": "v"})).await;
        let text = json!({"type": "text", "text": "refund my bill"});
        socket.send(text).await;
        let frames = socket.until("approval_required").await;
        let call = frames.last().unwrap()["waiting"][0]["call_id"].clone();
        socket.send(json!({"type": "close"})).await;
        socket.end().await;
        until(|| async { listed(&deciding).await == ["v"] }).await;
        let decision = json!({"decisions": [{"call_id": call, "approve": true}]});
        let path = "/api/conversations/v/decisions";
        let run = deciding.client.post(path, decision).await.ok();
        assert_eq!(run["status"], "completed");
        assert_eq!(listed(&deciding).await, [""; 0]);
    }
    // The process that has marked it knows of the decision once it reads the marks.
    assert_eq!(listed(&speaking).await, [""; 0]);
    let shown = speaking.client.get("/api/conversations").await.ok();
    assert_eq!(shown["conversations"][0]["is_waiting"], false);
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
