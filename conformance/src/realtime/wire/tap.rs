//! A model that records what the model it wraps tells.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_realtime::model::{
    RealtimeConnection, RealtimeConnectionStatus, RealtimeModel, RealtimeModelCommand,
    RealtimeModelConfig, RealtimeModelDelta, RealtimeModelError, RealtimeModelEvent,
    RealtimeSender, RealtimeServerError, RealtimeTransport,
};
use switchboard_realtime::openai::OpenAiRealtimeModel;

use super::super::model_error_type;
use crate::lock::lock;

/// A model whose events are recorded; clones share the record.
#[derive(Clone)]
pub(super) struct Tap {
    model: OpenAiRealtimeModel,
    events: Record,
}

type Record = Arc<Mutex<Vec<Value>>>;

impl Tap {
    pub(super) fn new(model: OpenAiRealtimeModel) -> Self {
        Self {
            model,
            events: Record::default(),
        }
    }

    /// The events so far, as the corpus writes them.
    pub(super) fn events(&self) -> Vec<Value> {
        lock(&self.events).clone()
    }
}

impl RealtimeModel for Tap {
    async fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> Result<RealtimeConnection, RealtimeModelError> {
        let (sender, events) = self.model.connect(config).await?.split();
        let record = self.events.clone();
        let events = events.inspect(move |event| lock(&record).extend(render(event)));
        let record = self.events.clone();
        Ok(RealtimeConnection::new(Passed { sender, record }, events))
    }
}

/// The transport of the wrapped model.
struct Passed {
    sender: RealtimeSender,
    record: Record,
}

impl RealtimeTransport for Passed {
    async fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> Result<Vec<RealtimeModelEvent>, RealtimeModelError> {
        let events = self.sender.send(command).await?;
        let rendered = events.iter().filter_map(render);
        lock(&self.record).extend(rendered);
        Ok(events)
    }

    async fn close(&self) -> Result<(), RealtimeModelError> {
        self.sender.close().await
    }
}

/// An event as the corpus writes it; `None` for those that the reference does not have.
fn render(event: &RealtimeModelEvent) -> Option<Value> {
    let delta = |kind: &str, delta: &RealtimeModelDelta| {
        json!({
            "type": kind, "item_id": delta.item_id, "delta": delta.delta, "response_id": delta.response_id,
        })
    };
    Some(match event {
        RealtimeModelEvent::Error(RealtimeServerError::Reported(error)) => {
            json!({"type": "error", "error": error})
        }
        RealtimeModelEvent::Error(RealtimeServerError::Unreadable(error)) => {
            json!({"type": "error", "error": {"exception": model_error_type(error.kind())}})
        }
        RealtimeModelEvent::Exception { error, .. } => {
            json!({"type": "exception", "exception": model_error_type(error.kind())})
        }
        RealtimeModelEvent::ToolCall(call) => json!({
            "type": "function_call", "name": call.name, "call_id": call.call_id,
            "arguments": call.arguments, "id": call.id, "previous_item_id": call.previous_item_id,
        }),
        RealtimeModelEvent::Audio(audio) => json!({
            "type": "audio", "item_id": audio.part.item_id, "content_index": audio.part.content_index,
            "response_id": audio.response_id, "audio": STANDARD.encode(&audio.data),
        }),
        RealtimeModelEvent::AudioInterrupted(part) => json!({
            "type": "audio_interrupted", "item_id": part.item_id, "content_index": part.content_index,
        }),
        RealtimeModelEvent::AudioDone(part) => json!({
            "type": "audio_done", "item_id": part.item_id, "content_index": part.content_index,
        }),
        RealtimeModelEvent::InputAudioTranscriptionCompleted {
            item_id,
            transcript,
        } => json!({
            "type": "input_audio_transcription_completed", "item_id": item_id, "transcript": transcript,
        }),
        RealtimeModelEvent::InputAudioTimeoutTriggered {
            item_id,
            audio_start_ms,
            audio_end_ms,
        } => {
            json!({
                "type": "input_audio_timeout_triggered", "item_id": item_id,
                "audio_start_ms": audio_start_ms, "audio_end_ms": audio_end_ms,
            })
        }
        RealtimeModelEvent::TranscriptDelta(piece) => delta("transcript_delta", piece),
        RealtimeModelEvent::OutputTextDelta(piece) => delta("output_text_delta", piece),
        RealtimeModelEvent::ItemUpdated(item) => json!({"type": "item_updated", "item": item}),
        RealtimeModelEvent::ItemDeleted { item_id } => {
            json!({"type": "item_deleted", "item_id": item_id})
        }
        RealtimeModelEvent::ConnectionStatus(RealtimeConnectionStatus::Disconnected { .. }) => {
            json!({"type": "connection_status", "status": "disconnected"})
        }
        RealtimeModelEvent::EndOfStream => json!({"type": "end_of_stream"}),
        RealtimeModelEvent::TurnStarted { response_id } => {
            json!({"type": "turn_started", "response_id": response_id})
        }
        RealtimeModelEvent::TurnEnded(end) => {
            json!({"type": "turn_ended", "response_id": end.response_id})
        }
        RealtimeModelEvent::Usage(usage) => json!({
            "type": "usage",
            "input_tokens": usage.usage.input_tokens,
            "output_tokens": usage.usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "cached_tokens": usage.usage.cached_tokens,
        }),
        _ => return None,
    })
}
