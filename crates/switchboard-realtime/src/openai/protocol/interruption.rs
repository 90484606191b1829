//! Interrupting the model: stopping the playback, cutting messages to what was heard, cancelling responses.

use std::time::Duration;

use serde_json::json;

use super::{ProtocolOutput, RealtimeProtocol};
use crate::model::{
    AudioPart, RealtimeInterrupt, RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent,
};

impl RealtimeProtocol {
    /// Carries out an interruption that the application asks for.
    pub(super) fn interrupt(
        &mut self,
        interrupt: RealtimeInterrupt,
        now: Duration,
        out: &mut ProtocolOutput,
    ) -> Result<(), RealtimeModelError> {
        let invalid = |message| {
            Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Configuration,
                message,
            ))
        };
        if interrupt.playback_only
            && (interrupt.cancel_response_only || interrupt.force_response_cancel)
        {
            return invalid(
                "an interruption of the playback only cannot cancel the response as well",
            );
        }
        let response_id = interrupt.response_id.clone();
        if interrupt.cancel_response_only {
            if response_id.is_none() {
                return invalid("to cancel a response only, the interruption must name it");
            }
            self.cancel(response_id.as_deref(), out);
            return Ok(());
        }
        if let Some(response_id) = &response_id {
            self.audio.drop_rest_of(response_id);
        }
        self.interrupt_playback(&interrupt, now, out);
        if !interrupt.playback_only && (interrupt.force_response_cancel || !self.server_interrupts)
        {
            self.cancel(response_id.as_deref(), out);
        }
        Ok(())
    }

    /// Stops the playback and cuts the message that is played, when the server hears the user. The time
    /// in the message is that of the server, if it tells one.
    pub(super) fn speech_started(
        &mut self,
        server_ms: Option<f64>,
        now: Duration,
        out: &mut ProtocolOutput,
    ) {
        let Some(last) = self.audio.last().cloned() else {
            return;
        };
        let playing = self.playing(now);
        out.event(RealtimeModelEvent::AudioInterrupted(last));
        if let Some((part, elapsed_ms)) = playing {
            let server_ms = server_ms.filter(|ms| *ms > 0.0);
            let heard_ms = server_ms.unwrap_or(elapsed_ms).round_ties_even().max(0.0) as u64;
            let received_ms = self.audio.part(&part).map(|known| known.whole_ms());
            let is_complete =
                received_ms.is_some_and(|received| heard_ms >= received) && !self.is_growing(&part);
            if !is_complete {
                truncate(&part, heard_ms.min(received_ms.unwrap_or(heard_ms)), out);
            }
        }
        self.audio.interrupted();
        if let Some(playback) = &self.playback {
            playback.interrupted();
        }
        if !self.server_interrupts {
            self.cancel(None, out);
        }
    }

    fn interrupt_playback(
        &mut self,
        interrupt: &RealtimeInterrupt,
        now: Duration,
        out: &mut ProtocolOutput,
    ) {
        let playing = self.playing(now);
        let scope = interrupt.response_id.as_deref();
        let scoped_parts = scope.map(|id| self.audio.parts_of(id).to_vec());
        if let Some(parts) = &scoped_parts {
            if parts.is_empty() {
                return;
            }
            for part in parts {
                out.event(RealtimeModelEvent::AudioInterrupted(part.clone()));
            }
        }
        let is_in_scope = |part: &AudioPart| {
            let parts = scoped_parts.as_ref();
            parts.is_none_or(|parts| parts.contains(part))
        };
        let Some((part, elapsed_ms)) = playing.filter(|(part, _)| is_in_scope(part)) else {
            if let Some(id) = scope {
                self.audio.response_interrupted(id);
            }
            return;
        };
        if elapsed_ms >= 0.0 {
            if scope.is_none() {
                out.event(RealtimeModelEvent::AudioInterrupted(part.clone()));
            }
            let heard_ms = elapsed_ms as u64;
            let received_ms = self.audio.part(&part).map(|known| known.whole_ms());
            let may_grow = !interrupt.playback_only && self.is_growing(&part);
            if may_grow || received_ms.is_none_or(|received| heard_ms < received) {
                truncate(&part, heard_ms.min(received_ms.unwrap_or(heard_ms)), out);
            }
        }
        match scope {
            Some(id) => self.audio.response_interrupted(id),
            None => self.audio.interrupted(),
        }
        if let Some(playback) = &self.playback
            && playback
                .state()
                .is_none_or(|state| is_in_scope(&state.part))
        {
            playback.interrupted();
        }
    }

    /// Cancels the running response, or this one if it is the running one.
    fn cancel(&mut self, response_id: Option<&str>, out: &mut ProtocolOutput) {
        if self.responses.cancel(response_id) {
            out.json(&match response_id {
                None => json!({"type": "response.cancel"}),
                Some(id) => json!({"type": "response.cancel", "response_id": id}),
            });
        }
    }

    /// The part that is played, and how much of it was heard, in milliseconds: by the tracker, or by the
    /// time since its first sound.
    fn playing(&self, now: Duration) -> Option<(AudioPart, f64)> {
        if let Some(playback) = &self.playback {
            let state = playback.state()?;
            return Some((state.part, state.elapsed_ms));
        }
        let last = self.audio.last()?;
        let since = self.audio.part(last)?.since;
        let elapsed = now.saturating_sub(since);
        Some((last.clone(), elapsed.as_secs_f64() * 1_000.0))
    }

    /// Returns `true` if the running response may still add to the part.
    fn is_growing(&self, part: &AudioPart) -> bool {
        if !self.responses.is_running() {
            return false;
        }
        match (self.responses.running_id(), self.audio.part(part)) {
            (Some(running), Some(known)) => known.response_id == *running,
            _ => true,
        }
    }
}

fn truncate(part: &AudioPart, audio_end_ms: u64, out: &mut ProtocolOutput) {
    out.json(&json!({
        "type": "conversation.item.truncate",
        "item_id": part.item_id,
        "content_index": part.content_index,
        "audio_end_ms": audio_end_ms,
    }));
}
