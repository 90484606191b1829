//! The events of the server: what they change, and what is told of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::server_event::{self, FrameError, ServerEvent, ServerSession};
use super::{ProtocolOutput, RealtimeProtocol, session_config};
use crate::items::{RealtimeItem, RealtimeItemStatus, RealtimeToolCallItem};
use crate::model::{
    RealtimeModelAudio, RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent,
    RealtimeServerError, RealtimeToolCall, ReportedError,
};

impl RealtimeProtocol {
    /// Reads a frame of the server. Whatever it holds, this neither fails nor panics.
    pub fn frame(&mut self, text: &str, now: Duration) -> ProtocolOutput {
        let mut out = ProtocolOutput::default();
        self.has_heard = true;
        if self.raw_events {
            out.event(RealtimeModelEvent::RawServerEvent(text.into()));
        }
        match server_event::read(text, !self.policy.lenient_server_events) {
            Ok(event) => self.server_event(event, now, &mut out),
            Err(error) => out.event(self.unreadable(error)),
        }
        self.request_responses(&mut out);
        out
    }

    fn unreadable(&self, error: FrameError) -> RealtimeModelEvent {
        match error {
            FrameError::Shape(problem) => {
                let message = format!("an event of the server cannot be read: {problem}");
                let error = RealtimeModelError::new(RealtimeModelErrorKind::Validation, message);
                RealtimeModelEvent::Error(RealtimeServerError::Unreadable(error))
            }
            FrameError::NotJson(error) => {
                let message = format!("a frame of the server is not JSON: {error}");
                let error = RealtimeModelError::new(RealtimeModelErrorKind::Parse, message);
                if self.policy.lenient_server_events {
                    RealtimeModelEvent::Error(RealtimeServerError::Unreadable(error))
                } else {
                    RealtimeModelEvent::Exception {
                        error,
                        context: Some("reading a frame of the server".into()),
                    }
                }
            }
        }
    }

    fn server_event(&mut self, event: ServerEvent, now: Duration, out: &mut ProtocolOutput) {
        match event {
            ServerEvent::Audio(audio) => self.received_audio(audio, now, out),
            ServerEvent::AudioDone(part) => out.event(RealtimeModelEvent::AudioDone(part)),
            ServerEvent::TranscriptDelta(delta) => {
                self.conversation.add_text(&delta.item_id, &delta.delta);
                out.event(RealtimeModelEvent::TranscriptDelta(delta));
            }
            ServerEvent::TextDelta(delta) => {
                self.conversation.add_text(&delta.item_id, &delta.delta);
                out.event(RealtimeModelEvent::OutputTextDelta(delta));
            }
            ServerEvent::ResponseCreated { id } => {
                self.latest_response.clone_from(&id);
                self.responses.begun(id.clone());
                out.event(RealtimeModelEvent::TurnStarted { response_id: id });
            }
            ServerEvent::ResponseDone { end, usage } => {
                if let Some(id) = &end.response_id {
                    self.audio.response_ended(id);
                }
                self.responses.ended(end.response_id.as_deref());
                if let Some(usage) = usage {
                    out.event(RealtimeModelEvent::Usage(usage));
                }
                out.event(RealtimeModelEvent::TurnEnded(end));
            }
            ServerEvent::SessionCreated(session) => {
                self.send_tracing(out);
                self.note_session(session);
            }
            ServerEvent::SessionUpdated(session) => {
                let instructions = session
                    .as_ref()
                    .and_then(|session| session.instructions.clone());
                self.note_session(session);
                for update in self.updates.taken(instructions.as_deref()) {
                    for update_id in named(update.update_ids) {
                        out.event(RealtimeModelEvent::SessionUpdated { update_id });
                    }
                }
            }
            ServerEvent::Error(error) => self.reported(error, out),
            ServerEvent::ToolCall(call) => self.tool_call(call, out),
            ServerEvent::OutputMessage(item) => {
                self.conversation.update(&item, None);
                out.event(RealtimeModelEvent::ItemUpdated(item));
            }
            ServerEvent::Item {
                item,
                previous_item_id,
                is_created,
            } => {
                self.conversation_item(item, previous_item_id, is_created, out);
            }
            ServerEvent::ItemDone(item) => {
                if let Some(item) = item {
                    self.conversation.update(&item, None);
                }
            }
            ServerEvent::ItemDeleted { item_id } => {
                self.conversation.delete(&item_id);
                out.event(RealtimeModelEvent::ItemDeleted { item_id });
            }
            ServerEvent::ItemTruncated { part, audio_end_ms } => {
                let length_ms = self.audio.part(&part).map_or(0.0, |known| known.length_ms);
                self.conversation
                    .truncate(&part.item_id, audio_end_ms as f64, length_ms);
                self.retrieve_current_item(out);
                out.event(RealtimeModelEvent::ItemTruncated {
                    item_id: part.item_id,
                    content_index: part.content_index,
                    audio_end_ms,
                });
            }
            ServerEvent::Transcribed {
                item_id,
                transcript,
            } => {
                self.conversation.set_transcript(&item_id, &transcript);
                self.retrieve_current_item(out);
                out.event(RealtimeModelEvent::InputAudioTranscriptionCompleted {
                    item_id,
                    transcript,
                });
            }
            ServerEvent::TranscriptionFailed { item_id, error } => {
                out.event(RealtimeModelEvent::InputAudioTranscriptionFailed { item_id, error });
            }
            ServerEvent::SpeechStarted {
                item_id,
                audio_start_ms,
                audio_end_ms,
            } => {
                self.speech_started(audio_end_ms, now, out);
                out.event(RealtimeModelEvent::SpeechStarted {
                    item_id,
                    audio_start_ms,
                });
            }
            ServerEvent::SpeechStopped {
                item_id,
                audio_end_ms,
            } => {
                out.event(RealtimeModelEvent::SpeechStopped {
                    item_id,
                    audio_end_ms,
                });
            }
            ServerEvent::Timeout {
                item_id,
                audio_start_ms,
                audio_end_ms,
            } => {
                out.event(RealtimeModelEvent::InputAudioTimeoutTriggered {
                    item_id,
                    audio_start_ms,
                    audio_end_ms,
                });
            }
            ServerEvent::Unknown(event) => out.event(RealtimeModelEvent::Other(event)),
            ServerEvent::Ignored => {}
        }
    }

    fn received_audio(
        &mut self,
        audio: RealtimeModelAudio,
        now: Duration,
        out: &mut ProtocolOutput,
    ) {
        if self.audio.is_dropped(&audio.response_id) {
            return;
        }
        if self.current_item.as_ref() != Some(&audio.part.item_id) {
            self.current_item = Some(audio.part.item_id.clone());
        }
        let bytes = audio.data.len();
        self.audio
            .received(&audio.part, &audio.response_id, bytes, now);
        out.event(RealtimeModelEvent::Audio(audio));
    }

    fn send_tracing(&mut self, out: &mut ProtocolOutput) {
        if let Some(tracing) = &self.tracing {
            let session = session_config::tracing_config(tracing, &self.model);
            let event_id = self.updates.sent(None, None, None);
            out.json(&json!({"type": "session.update", "event_id": event_id, "session": session}));
        }
    }

    fn note_session(&mut self, session: Option<ServerSession>) {
        let Some(session) = session else {
            return;
        };
        self.server_interrupts = session.interrupts;
        if let Some(format) = session.output_format {
            self.audio.set_format(format);
            if let Some(playback) = &self.playback {
                playback.set_format(format);
            }
        }
    }

    fn reported(&mut self, error: ReportedError, out: &mut ProtocolOutput) {
        self.responses
            .failed(&error, self.policy.repeat_refused_responses);
        let refused = self.updates.refused(&error);
        let error = RealtimeServerError::Reported(error);
        out.event(RealtimeModelEvent::Error(error.clone()));
        let Some(refused) = refused else {
            return;
        };
        if let Some(before) = refused.before {
            // A new connection must not begin with what the server has refused.
            self.settings = *before;
            if refused.is_first
                && let Err(error) = self.open_session(out)
            {
                tracing::error!(%error, "the settings of a realtime session cannot be sent");
            }
        }
        for update_id in named(refused.update_ids) {
            let error = error.clone();
            out.event(RealtimeModelEvent::SessionUpdateRefused { update_id, error });
        }
    }

    fn tool_call(&mut self, call: RealtimeToolCall, out: &mut ProtocolOutput) {
        let is_repeated =
            self.calls.contains(&call.call_id) || self.conversation.has_call(&call.call_id);
        if is_repeated && self.policy.ignore_repeated_calls {
            tracing::warn!(
                call_id = &*call.call_id,
                "the server repeated a tool call; it is not run again"
            );
            return;
        }
        if self.calls.len() >= Self::KEPT_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(call.call_id.clone());
        let item = RealtimeItem::ToolCall(RealtimeToolCallItem {
            item_id: call.id.clone().unwrap_or_default(),
            previous_item_id: None,
            call_id: Some(call.call_id.clone()),
            // The item is complete when the call has its output.
            status: RealtimeItemStatus::InProgress,
            arguments: call.arguments.clone(),
            name: call.name.clone(),
            output: None,
        });
        self.conversation.update(&item, None);
        out.event(RealtimeModelEvent::ItemUpdated(item));
        out.event(RealtimeModelEvent::ToolCall(call));
    }

    fn conversation_item(
        &mut self,
        item: Option<RealtimeItem>,
        previous_item_id: Option<Arc<str>>,
        is_created: bool,
        out: &mut ProtocolOutput,
    ) {
        let Some(mut item) = item else {
            return;
        };
        if let Some(position) = self.replayed.iter().position(|id| id == item.item_id()) {
            // The session has it, with more than was replayed of it.
            self.replayed.remove(position);
            return;
        }
        self.conversation.update(&item, previous_item_id.as_deref());
        if let RealtimeItem::Message(message) = &mut item {
            message.previous_item_id = match (self.policy.keep_previous_item_ids, is_created) {
                (false, false) => None,
                _ => previous_item_id,
            };
        }
        out.event(RealtimeModelEvent::ItemUpdated(item));
    }

    /// Asks for the message whose audio came last: the server may have changed its transcript.
    fn retrieve_current_item(&mut self, out: &mut ProtocolOutput) {
        if let Some(item_id) = &self.current_item {
            out.json(&json!({"type": "conversation.item.retrieve", "item_id": item_id}));
        }
    }
}

/// The identifiers of an update's commands; `None` for an update that none asked for.
fn named(update_ids: Vec<Arc<str>>) -> Vec<Option<Arc<str>>> {
    if update_ids.is_empty() {
        return vec![None];
    }
    update_ids.into_iter().map(Some).collect()
}
