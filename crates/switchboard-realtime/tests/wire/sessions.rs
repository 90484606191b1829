//! Whole sessions on a WebSocket that breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fake_provider::{RealtimeConnection, RealtimeServer};
use serde_json::{Value, json};
use switchboard_core::tool;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner, RealtimeSession};
use tokio::sync::Notify;

use crate::support::{
    audio, call_done, model, response_created, response_done, session_created, settings, within,
};

async fn connect(agent: &RealtimeAgent) -> (RealtimeServer, RealtimeConnection, RealtimeSession) {
    let server = RealtimeServer::start().await.unwrap();
    let model = model(&server).connection(settings());
    let session = RealtimeRunner::new(agent)
        .model(model)
        .connect()
        .await
        .unwrap();
    let peer = server.connection().await;
    (server, peer, session)
}

async fn event_where<T>(
    session: &mut RealtimeSession,
    wanted: impl Fn(RealtimeEvent) -> Option<T>,
) -> T {
    loop {
        let event = within(session.next())
            .await
            .expect("the events go on")
            .unwrap();
        if let Some(found) = wanted(event) {
            return found;
        }
    }
}

/// Answers every session update that has come, as a server does.
async fn take_updates(peer: &RealtimeConnection) {
    for frame in peer.frames() {
        if frame["type"] == "session.update" {
            let instructions = frame["session"]["instructions"].clone();
            let session = json!({"type": "realtime", "instructions": instructions});
            peer.send(&json!({"type": "session.updated", "event_id": "e", "session": session}));
        }
    }
    peer.ping().await;
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}

#[tokio::test]
async fn a_handoff_that_is_cut_off_ends_with_both_sides_at_the_same_agent() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You are Billing.");
    let desk = RealtimeAgent::new("Desk")
        .instructions("You are Desk.")
        .handoff(&billing);
    let (server, peer, mut session) = connect(&desk).await;
    take_updates(&peer).await;
    peer.send(&response_created("r1"));
    peer.send(&call_done("r1", "call_1", "transfer_to_billing"));
    // The update of the handoff is on its way, and never answered.
    within(async {
        while of_type(&peer.frames(), "session.update").len() < 2 {
            peer.ping().await;
        }
    })
    .await;
    peer.break_off();
    let peer = within(server.connection()).await;
    within(peer.next_frame()).await.unwrap();
    take_updates(&peer).await;
    let (from, to) = event_where(&mut session, |event| match event {
        RealtimeEvent::Handoff { from, to } => Some((from.to_string(), to.to_string())),
        _ => None,
    })
    .await;
    assert_eq!((from, to), ("Desk".to_owned(), "Billing".to_owned()));
    within(peer.next_frame_of("response.create")).await.unwrap();
    peer.send(&response_created("r2"));
    peer.send(&response_done("r2"));
    event_where(&mut session, |event| match event {
        RealtimeEvent::AgentEnd { agent } if *agent == *"Billing" => Some(()),
        _ => None,
    })
    .await;
    let frames = peer.frames();
    assert_eq!(frames[0]["session"]["instructions"], "You are Billing.");
    assert_eq!(of_type(&frames, "response.create").len(), 1);
    let outputs = of_type(&frames, "conversation.item.create");
    let outputs = outputs
        .iter()
        .filter(|frame| frame["item"]["call_id"] == "call_1");
    let kinds: Vec<_> = outputs
        .map(|frame| frame["item"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["function_call", "function_call_output"]);
    assert_eq!(&*session.agent(), "Billing");
    server.assert_valid();
}

#[tokio::test]
async fn a_connection_that_is_lost_after_the_update_answers_the_handoff_on_the_next_one() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You are Billing.");
    let desk = RealtimeAgent::new("Desk")
        .instructions("You are Desk.")
        .handoff(&billing);
    let (server, peer, mut session) = connect(&desk).await;
    take_updates(&peer).await;
    peer.send(&response_created("r1"));
    peer.send(&call_done("r1", "call_1", "transfer_to_billing"));
    peer.send(&response_done("r1"));
    within(peer.next_frame_of("session.update")).await.unwrap();
    let update = within(peer.next_frame_of("session.update")).await.unwrap();
    // The server takes the update, and hears nothing of what follows.
    peer.pause_reading(true);
    let instructions = update["session"]["instructions"].clone();
    let taken = json!({"type": "realtime", "instructions": instructions});
    peer.send(&json!({"type": "session.updated", "event_id": "e", "session": taken}));
    event_where(&mut session, |event| match event {
        RealtimeEvent::Handoff { .. } => Some(()),
        _ => None,
    })
    .await;
    peer.break_off();
    let peer = within(server.connection()).await;
    within(peer.next_frame_of("response.create")).await.unwrap();
    assert!(peer.ping().await);
    let frames = peer.frames();
    assert_eq!(frames[0]["session"]["instructions"], "You are Billing.");
    let items = of_type(&frames, "conversation.item.create");
    let kinds: Vec<_> = items
        .iter()
        .map(|frame| frame["item"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["function_call", "function_call_output"]);
    assert_eq!(of_type(&frames, "response.create").len(), 1);
    assert_eq!(&*session.agent(), "Billing");
    server.assert_valid();
}

#[tokio::test]
async fn a_caller_who_speaks_during_a_handoff_is_handed_over_once() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You are Billing.");
    let desk = RealtimeAgent::new("Desk")
        .instructions("You are Desk.")
        .handoff(&billing);
    let (server, peer, mut session) = connect(&desk).await;
    let vad = json!({"type": "semantic_vad", "interrupt_response": true});
    peer.send(&session_created(&vad));
    take_updates(&peer).await;
    peer.send(&response_created("r1"));
    // A tenth of a second of audio.
    peer.send(&audio("r1", "a1", &"A".repeat(6_400)));
    peer.send(&call_done("r1", "call_1", "transfer_to_billing"));
    peer.send(&json!({
        "type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "u1", "audio_start_ms": 50,
    }));
    peer.send(&json!({"type": "response.done", "event_id": "e", "response": {"id": "r1", "status": "cancelled"}}));
    event_where(&mut session, |event| match event {
        RealtimeEvent::AudioInterrupted(_) => Some(()),
        _ => None,
    })
    .await;
    within(async {
        let is_of_handoff = |frame: &&Value| frame["session"]["instructions"] == "You are Billing.";
        while !of_type(&peer.frames(), "session.update")
            .iter()
            .any(is_of_handoff)
        {
            peer.ping().await;
        }
    })
    .await;
    let taken = json!({"type": "realtime", "instructions": "You are Billing."});
    peer.send(&json!({"type": "session.updated", "event_id": "e", "session": taken}));
    event_where(&mut session, |event| match event {
        RealtimeEvent::Handoff { .. } => Some(()),
        _ => None,
    })
    .await;
    within(peer.next_frame_of("response.create")).await.unwrap();
    for _ in 0..3 {
        assert!(peer.ping().await);
    }
    let frames = peer.frames();
    assert_eq!(of_type(&frames, "response.create").len(), 1);
    let outputs = of_type(&frames, "conversation.item.create");
    assert_eq!(outputs.len(), 1);
    assert_eq!(outputs[0]["item"]["call_id"], "call_1");
    assert_eq!(of_type(&frames, "conversation.item.truncate").len(), 1);
    assert!(
        of_type(&frames, "response.cancel").is_empty(),
        "the server cancels itself"
    );
    server.assert_valid();
}

#[tokio::test]
async fn a_handoff_that_the_server_has_refused_does_not_come_back_with_a_new_connection() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You are Billing.");
    let desk = RealtimeAgent::new("Desk")
        .instructions("You are Desk.")
        .handoff(&billing);
    for is_cut_off_first in [false, true] {
        let (server, mut peer, mut session) = connect(&desk).await;
        take_updates(&peer).await;
        peer.send(&response_created("r1"));
        peer.send(&call_done("r1", "call_1", "transfer_to_billing"));
        within(peer.next_frame_of("session.update")).await.unwrap();
        let mut update = within(peer.next_frame_of("session.update")).await.unwrap();
        if is_cut_off_first {
            peer.break_off();
            peer = within(server.connection()).await;
            update = within(peer.next_frame_of("session.update")).await.unwrap();
        }
        assert_eq!(update["session"]["instructions"], "You are Billing.");
        peer.send(&json!({"type": "error", "event_id": "e", "error": {
            "type": "invalid_request_error", "message": "No such tool.", "event_id": update["event_id"],
        }}));
        event_where(&mut session, |event| match event {
            RealtimeEvent::HandoffFailed { .. } => Some(()),
            _ => None,
        })
        .await;
        if is_cut_off_first {
            // The new session has no settings yet.
            let update = within(peer.next_frame_of("session.update")).await.unwrap();
            assert_eq!(update["session"]["instructions"], "You are Desk.");
        }
        peer.close(1001, "too long");
        let told = event_where(&mut session, |event| match event {
            RealtimeEvent::Reconnecting { close, .. } => Some(close),
            _ => None,
        })
        .await;
        assert_eq!(told.map(|close| close.code), Some(1001));
        let peer = within(server.connection()).await;
        let opening = within(peer.next_frame()).await.unwrap();
        assert_eq!(opening["session"]["instructions"], "You are Desk.");
        assert_eq!(&*session.agent(), "Desk");
        server.assert_valid();
    }
}

#[tokio::test]
async fn a_tool_that_outlives_its_connection_runs_once_and_its_output_arrives() {
    let runs = Arc::new(AtomicU32::new(0));
    let gate = Arc::new(Notify::new());
    let (count, wait) = (runs.clone(), gate.clone());
    let slow = tool("slow").run_raw(&json!({"type": "object", "properties": {}}), move |_ctx| {
        count.fetch_add(1, Ordering::SeqCst);
        let wait = wait.clone();
        async move {
            wait.notified().await;
            "done"
        }
    });
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(slow);
    let (server, peer, mut session) = connect(&desk).await;
    take_updates(&peer).await;
    peer.send(&response_created("r1"));
    peer.send(&call_done("r1", "call_1", "slow"));
    event_where(&mut session, |event| match event {
        RealtimeEvent::ToolStart(_) => Some(()),
        _ => None,
    })
    .await;
    peer.break_off();
    event_where(&mut session, |event| match event {
        RealtimeEvent::Reconnected { .. } => Some(()),
        _ => None,
    })
    .await;
    let peer = server.connection().await;
    take_updates(&peer).await;
    gate.notify_one();
    within(peer.next_frame_of("response.create")).await.unwrap();
    let frames = peer.frames();
    let items = of_type(&frames, "conversation.item.create");
    let kinds: Vec<_> = items
        .iter()
        .map(|frame| frame["item"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["function_call", "function_call_output"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    server.assert_valid();
}

#[tokio::test]
async fn closing_stops_a_tool_and_says_goodbye() {
    let gate = Arc::new(Notify::new());
    let wait = gate.clone();
    let slow = tool("slow").run_raw(&json!({"type": "object", "properties": {}}), move |_ctx| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            "done"
        }
    });
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(slow);
    let (_server, peer, mut session) = connect(&desk).await;
    peer.send(&call_done("r1", "call_1", "slow"));
    event_where(&mut session, |event| match event {
        RealtimeEvent::ToolStart(_) => Some(()),
        _ => None,
    })
    .await;
    within(session.close()).await.unwrap();
    assert_eq!(within(peer.ended()).await, 1000);
    assert!(of_type(&peer.frames(), "conversation.item.create").is_empty());
    // Only this test still waits at the gate.
    assert_eq!(Arc::strong_count(&gate), 2);
}
