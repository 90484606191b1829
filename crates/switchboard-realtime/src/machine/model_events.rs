//! The events of the model.

use std::sync::Arc;

use super::io::Task;
use super::{ActiveResponse, Commands, MachineCommand, Pending, RealtimeMachine};
use crate::event::{RealtimeEvent, SessionProblem};
use crate::model::{
    RealtimeConnectionStatus, RealtimeModelAudio, RealtimeModelDelta, RealtimeModelEvent,
    RealtimeResponseStatus, RealtimeTurnEnd,
};

/// The number of messages whose audio is measured.
const MAX_AUDIO_ITEMS: usize = 64;

impl RealtimeMachine {
    pub(super) fn on_model(&mut self, out: &mut Commands, event: RealtimeModelEvent) {
        if self.settings.raw_events {
            self.emit(out, RealtimeEvent::Raw(Box::new(event.clone())));
        }
        let reports = self.policy().report_all;
        match event {
            RealtimeModelEvent::Error(error) => self.report(out, SessionProblem::Server(error)),
            RealtimeModelEvent::Exception { error, .. } => self.fail(out, error.into()),
            RealtimeModelEvent::ToolCall(call) => self.on_call(out, call),
            RealtimeModelEvent::Audio(audio) => self.on_audio(out, audio),
            RealtimeModelEvent::AudioInterrupted(part) => {
                self.emit(out, RealtimeEvent::AudioInterrupted(part));
            }
            RealtimeModelEvent::AudioDone(part) => self.emit(out, RealtimeEvent::AudioEnd(part)),
            RealtimeModelEvent::InputAudioTranscriptionCompleted {
                item_id,
                transcript,
            } => {
                let added = self.history.set_heard(&item_id, transcript);
                self.report_history(out, added);
            }
            RealtimeModelEvent::InputAudioTranscriptionFailed { error, .. } if reports => {
                let message = format!("the user's audio could not be transcribed: {error}");
                self.report(out, SessionProblem::Session(message));
            }
            RealtimeModelEvent::SpeechStarted { .. } if reports => {
                self.emit(out, RealtimeEvent::SpeechStarted);
            }
            RealtimeModelEvent::SpeechStopped { .. } if reports => {
                self.emit(out, RealtimeEvent::SpeechStopped);
            }
            RealtimeModelEvent::InputAudioTimeoutTriggered { .. } => {
                self.emit(out, RealtimeEvent::InputAudioTimeoutTriggered);
            }
            RealtimeModelEvent::TranscriptDelta(delta) => {
                self.on_delta(out, &delta, true);
                if let Some(item) = self.spoken.get(&delta.item_id)
                    && !self.cut.contains(&delta.item_id)
                {
                    self.history.set_spoken(&delta.item_id, &item.text);
                }
                self.report_delta(out, delta);
            }
            RealtimeModelEvent::OutputTextDelta(delta) => {
                self.on_delta(out, &delta, false);
                self.report_delta(out, delta);
            }
            // The rest of its words was not heard.
            RealtimeModelEvent::ItemUpdated(item)
                if self.cut.contains(item.item_id()) && self.history.is_shorter(&item) => {}
            RealtimeModelEvent::ItemUpdated(item) => {
                let is_cut = self.cut.contains(item.item_id());
                let spoken = self.spoken.get(item.item_id()).filter(|_| !is_cut);
                let spoken = spoken.map(|item| item.text.clone());
                let added = self.history.update(item, spoken.as_deref());
                self.report_history(out, added);
            }
            RealtimeModelEvent::ItemDeleted { item_id } => {
                self.history.delete(&item_id);
                self.report_history(out, None);
            }
            RealtimeModelEvent::ItemTruncated {
                item_id,
                content_index,
                audio_end_ms,
            } => self.on_truncated(out, &item_id, content_index, audio_end_ms),
            RealtimeModelEvent::ConnectionStatus(status) if reports => {
                self.on_connection(out, status);
            }
            RealtimeModelEvent::EndOfStream => {
                out.push(MachineCommand::EndEvents(None));
                if reports {
                    self.close(out);
                }
            }
            RealtimeModelEvent::TurnStarted { response_id } => {
                self.on_turn_started(out, response_id);
            }
            RealtimeModelEvent::Usage(usage) => {
                self.usage += usage.usage;
                out.push(MachineCommand::CountUsage(usage.usage));
            }
            RealtimeModelEvent::TurnEnded(end) => self.on_turn_ended(out, end),
            RealtimeModelEvent::SessionUpdated { update_id } => {
                self.on_settings_taken(out, update_id.as_ref());
            }
            RealtimeModelEvent::SessionUpdateRefused { update_id, error } => {
                self.on_settings_refused(out, update_id.as_ref(), &error);
            }
            _ => {}
        }
    }

    fn report_history(&self, out: &mut Commands, added: Option<Arc<crate::items::RealtimeItem>>) {
        let event = match added {
            Some(item) => RealtimeEvent::HistoryAdded(item),
            None => RealtimeEvent::HistoryUpdated(self.history.clone()),
        };
        self.emit(out, event);
    }

    fn report_delta(&mut self, out: &mut Commands, delta: RealtimeModelDelta) {
        if self.policy().call_hooks
            && let Some(active) = &mut self.response
        {
            active.text.push_str(&delta.delta);
        }
        if self.policy().report_all && !self.interrupted.contains(&delta.response_id) {
            let RealtimeModelDelta { item_id, delta, .. } = delta;
            self.emit(out, RealtimeEvent::TranscriptDelta { item_id, delta });
        }
    }

    fn on_audio(&mut self, out: &mut Commands, audio: RealtimeModelAudio) {
        self.has_spoken = true;
        if self.interrupted.contains(&audio.response_id) {
            return;
        }
        if self.policy().truncate_history {
            *self.audio.entry(audio.part.item_id.clone()).or_default() += audio.data.len() as u64;
        }
        let RealtimeModelAudio {
            data,
            response_id,
            part,
        } = audio;
        self.emit(
            out,
            RealtimeEvent::Audio {
                data,
                response_id,
                part,
            },
        );
    }

    /// Cuts a message to what was heard.
    fn on_truncated(
        &mut self,
        out: &mut Commands,
        item_id: &Arc<str>,
        content_index: u32,
        audio_end_ms: u64,
    ) {
        if !self.policy().truncate_history {
            return;
        }
        let format = self
            .current
            .settings
            .output_audio_format
            .unwrap_or_default();
        let bytes = self.audio.get(item_id).copied().unwrap_or_default();
        let total = format.length_ms(bytes);
        // Lengths of audio are far below 2^52.
        let heard = audio_end_ms as f64;
        let share = if total > 0.0 { heard / total } else { 0.0 };
        if self
            .history
            .truncate(item_id, content_index as usize, share)
        {
            self.cut.insert(item_id.clone());
            self.report_history(out, None);
        }
    }

    fn on_connection(&mut self, out: &mut Commands, status: RealtimeConnectionStatus) {
        match status {
            RealtimeConnectionStatus::Reconnecting { attempt, close } => {
                self.emit(out, RealtimeEvent::Reconnecting { attempt, close });
            }
            RealtimeConnectionStatus::Disconnected { close } => {
                self.emit(out, RealtimeEvent::Disconnected { close });
            }
            RealtimeConnectionStatus::Reconnected { dropped_audio_ms } => {
                self.emit(out, RealtimeEvent::Reconnected { dropped_audio_ms });
            }
            RealtimeConnectionStatus::Connecting | RealtimeConnectionStatus::Connected => {}
        }
    }

    fn on_turn_started(&mut self, out: &mut Commands, response_id: Option<Arc<str>>) {
        let active = self.response.as_ref();
        let is_known =
            response_id.is_some() && active.is_some_and(|active| active.id == response_id);
        if !is_known {
            // Only what was said last can still be cut.
            if self.audio.len() > MAX_AUDIO_ITEMS {
                self.audio.clear();
            }
            self.responses += 1;
            self.response = Some(ActiveResponse {
                id: response_id,
                number: self.responses,
                agent: self.current.agent.clone(),
                text: String::new(),
            });
        }
        let agent = self.current.agent.clone();
        self.call_hooks(out, &agent, None);
        self.emit(out, RealtimeEvent::AgentStart { agent });
    }

    fn call_hooks(&mut self, out: &mut Commands, agent: &Arc<str>, output: Option<String>) {
        if self.policy().call_hooks {
            let agent = agent.clone();
            self.begin(out, Pending::Hooks, Task::CallHooks { agent, output });
        }
    }

    fn on_turn_ended(&mut self, out: &mut Commands, end: RealtimeTurnEnd) {
        let active = self.response.clone();
        let active_id = active.as_ref().and_then(|active| active.id.clone());
        let response_id = end.response_id.clone().or_else(|| active_id.clone());
        let is_active = end.response_id.is_none() || end.response_id == active_id;
        if is_active {
            if let Some(active) = &active {
                self.check_rest(out, active);
            }
            self.response = None;
            self.spoken.clear();
        }
        if let Some(response_id) = &response_id {
            self.forget_response(response_id);
        }
        self.report_status(out, &end);
        if is_active {
            let (agent, text) = match active {
                Some(active) => (active.agent, active.text),
                None => (self.current.agent.clone(), String::new()),
            };
            self.call_hooks(out, &agent, Some(text));
            self.emit(out, RealtimeEvent::AgentEnd { agent });
        }
    }

    /// Reports a response that is not complete.
    fn report_status(&self, out: &mut Commands, end: &RealtimeTurnEnd) {
        let is_complete = matches!(
            end.status,
            RealtimeResponseStatus::Completed | RealtimeResponseStatus::Cancelled
        );
        if self.policy().report_all && !is_complete {
            self.emit(
                out,
                RealtimeEvent::ResponseFailed {
                    response_id: end.response_id.clone(),
                    status: end.status,
                    details: end.details.clone(),
                },
            );
        }
    }
}
