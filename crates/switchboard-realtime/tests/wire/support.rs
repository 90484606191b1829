//! A model connected to a scripted server.

use std::time::Duration;

use fake_provider::{RealtimeConnection, RealtimeServer};
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_realtime::model::{
    RealtimeModel as _, RealtimeModelConfig, RealtimeModelEvent, RealtimeModelPolicy,
    RealtimeSender,
};
use switchboard_realtime::openai::{ConnectionSettings, OpenAiRealtimeModel, Reconnection};

/// A connection, seen from both sides.
pub(crate) struct Line {
    pub(crate) server: RealtimeServer,
    pub(crate) peer: RealtimeConnection,
    pub(crate) sender: RealtimeSender,
    pub(crate) events: BoxStream<'static, RealtimeModelEvent>,
}

impl Line {
    /// A connection whose session is open.
    pub(crate) async fn open() -> Self {
        Self::with(RealtimeModelConfig::default(), settings()).await
    }

    pub(crate) async fn with_policy(policy: RealtimeModelPolicy) -> Self {
        let mut config = RealtimeModelConfig::default();
        config.policy = policy;
        Self::with(config, settings()).await
    }

    pub(crate) async fn with(config: RealtimeModelConfig, settings: ConnectionSettings) -> Self {
        let server = RealtimeServer::start().await.unwrap();
        let model = model(&server).connection(settings);
        let (sender, events) = model.connect(config).await.unwrap().split();
        let peer = server.connection().await;
        let first = peer.next_frame().await.unwrap();
        assert_eq!(first["type"], "session.update");
        Self {
            server,
            peer,
            sender,
            events,
        }
    }

    /// The next event, without those of the connection's state.
    pub(crate) async fn event(&mut self) -> RealtimeModelEvent {
        within(self.events.next()).await.expect("the events go on")
    }

    /// The next event that `wanted` makes something of.
    pub(crate) async fn event_where<T>(
        &mut self,
        wanted: impl Fn(RealtimeModelEvent) -> Option<T>,
    ) -> T {
        loop {
            if let Some(found) = wanted(self.event().await) {
                return found;
            }
        }
    }

    /// Waits until the client has read everything, and has sent what follows from it.
    pub(crate) async fn settle(&self) {
        for _ in 0..3 {
            assert!(self.peer.ping().await, "the client reads");
        }
    }

    /// The types of the frames so far, without the first.
    pub(crate) fn frame_types(&self) -> Vec<String> {
        let frames = self.peer.frames();
        frames[1..]
            .iter()
            .map(|frame| frame["type"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// The model of a server.
pub(crate) fn model(server: &RealtimeServer) -> OpenAiRealtimeModel {
    OpenAiRealtimeModel::new()
        .api_key("sk-test-1234567890")
        .base_url(server.url())
}

/// Settings with times for tests.
pub(crate) fn settings() -> ConnectionSettings {
    let mut settings = ConnectionSettings::default();
    settings.handshake_timeout = Duration::from_secs(5);
    settings.close_timeout = Duration::from_secs(1);
    let mut reconnection = Reconnection::default();
    reconnection.first_delay = Duration::from_millis(1);
    reconnection.max_delay = Duration::from_millis(5);
    settings.reconnection = Some(reconnection);
    settings
}

/// Awaits something that must happen soon.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(Duration::from_secs(20), future).await;
    result.expect("it happens in time")
}

pub(crate) fn response_created(id: &str) -> Value {
    json!({"type": "response.created", "event_id": "e", "response": {"id": id, "status": "in_progress"}})
}

pub(crate) fn response_done(id: &str) -> Value {
    json!({"type": "response.done", "event_id": "e", "response": {"id": id, "status": "completed"}})
}

pub(crate) fn call_done(response: &str, call: &str, name: &str) -> Value {
    json!({
        "type": "response.output_item.done", "event_id": "e", "response_id": response, "output_index": 0,
        "item": {
            "type": "function_call", "id": format!("item_{call}"), "status": "completed", "name": name,
            "call_id": call, "arguments": "{}",
        },
    })
}

pub(crate) fn audio(response: &str, item: &str, base64: &str) -> Value {
    json!({
        "type": "response.output_audio.delta", "event_id": "e", "response_id": response, "item_id": item,
        "output_index": 0, "content_index": 0, "delta": base64,
    })
}

pub(crate) fn session_created(turn_detection: &Value) -> Value {
    json!({
        "type": "session.created", "event_id": "e", "session": {
            "type": "realtime",
            "audio": {
                "input": {"turn_detection": turn_detection},
                "output": {"format": {"type": "audio/pcm", "rate": 24_000}},
            },
        },
    })
}
