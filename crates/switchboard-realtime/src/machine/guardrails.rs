//! Output guardrails: when they are asked, and what follows when they trip.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::guardrail::GuardrailResult;

use super::io::{Task, Ticket};
use super::{ActiveResponse, Commands, Pending, RealtimeMachine};
use crate::event::RealtimeEvent;
use crate::model::{
    RealtimeInterrupt, RealtimeModelCommand, RealtimeModelDelta, RealtimeUserInput,
};

/// The text of a message of the current response.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CheckedItem {
    pub(super) text: String,
    chars: usize,
    /// The number of times that guardrails were asked.
    checks: usize,
    /// The characters that they have seen.
    checked: usize,
    is_audio: bool,
}

/// A text that guardrails look at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OutputCheck {
    text: Arc<str>,
    response_id: Arc<str>,
    /// The number of the response.
    number: u64,
    is_audio: bool,
}

impl RealtimeMachine {
    /// Takes a piece of what the model says.
    pub(super) fn on_delta(
        &mut self,
        out: &mut Commands,
        delta: &RealtimeModelDelta,
        is_audio: bool,
    ) {
        let (number, agent) = self.reconcile_response(&delta.response_id);
        let length = self.settings.debounce_text_length;
        let item = self.spoken.entry(delta.item_id.clone()).or_default();
        item.text.push_str(&delta.delta);
        item.chars += delta.delta.chars().count();
        item.is_audio = is_audio;
        if item.chars < (item.checks + 1) * length {
            return;
        }
        let crossed = item.chars.checked_div(length).unwrap_or(1);
        item.checks = crossed.max(item.checks + 1);
        item.checked = item.chars;
        if self.interrupted.contains(&delta.response_id) {
            return;
        }
        let check = OutputCheck {
            text: item.text.as_str().into(),
            response_id: delta.response_id.clone(),
            number,
            is_audio,
        };
        self.check_output(out, agent, check);
    }

    /// Notes the response that a piece belongs to, if its beginning was not told. Returns its number and
    /// its agent.
    fn reconcile_response(&mut self, response_id: &Arc<str>) -> (u64, Arc<str>) {
        let agent = self.current.agent.clone();
        let responses = &mut self.responses;
        let active = self.response.get_or_insert_with(|| {
            *responses += 1;
            ActiveResponse {
                id: Some(response_id.clone()),
                number: *responses,
                agent,
                text: String::new(),
            }
        });
        active.id.get_or_insert_with(|| response_id.clone());
        (active.number, active.agent.clone())
    }

    fn check_output(&mut self, out: &mut Commands, agent: Arc<str>, check: OutputCheck) {
        let text = check.text.clone();
        let work = Task::CheckOutput { agent, text };
        let task = self.begin(out, Pending::OutputCheck, work);
        self.checks.insert(task, check);
    }

    /// Checks the ends of texts that no guardrail has seen, when their response ends.
    pub(super) fn check_rest(&mut self, out: &mut Commands, active: &ActiveResponse) {
        let Some(response_id) = active.id.clone() else {
            return;
        };
        if !self.policy().check_short_answers || self.interrupted.contains(&response_id) {
            return;
        }
        let rest = self
            .spoken
            .values()
            .filter(|item| item.checked < item.chars);
        let rest = rest.map(|item| OutputCheck {
            text: item.text.as_str().into(),
            response_id: response_id.clone(),
            number: active.number,
            is_audio: item.is_audio,
        });
        for check in rest.collect::<Vec<_>>() {
            self.check_output(out, active.agent.clone(), check);
        }
    }

    /// Takes the verdict on a text: those that tripped.
    pub(super) fn on_output_checked(
        &mut self,
        out: &mut Commands,
        task: Ticket,
        tripped: Vec<GuardrailResult>,
    ) {
        let Some(check) = self.checks.remove(&task) else {
            return;
        };
        if !tripped.is_empty() && !self.interrupted.contains(&check.response_id) {
            self.trip(out, &check, tripped);
        }
        self.forget_response(&check.response_id);
    }

    fn trip(&mut self, out: &mut Commands, check: &OutputCheck, results: Vec<GuardrailResult>) {
        let id = &check.response_id;
        self.interrupted.insert(id.clone());
        let names: Vec<&str> = results.iter().map(|result| &*result.guardrail).collect();
        let feedback = format!("guardrail triggered: {}", names.join(", "));
        self.emit(
            out,
            RealtimeEvent::GuardrailTripped {
                results,
                message: check.text.clone(),
            },
        );
        let is_active = self.response.as_ref().map(|active| active.number) == Some(check.number);
        let is_latest = self.responses == check.number;
        let interrupt = RealtimeInterrupt {
            response_id: Some(id.clone()),
            ..RealtimeInterrupt::default()
        };
        if is_active {
            let interrupt = RealtimeInterrupt {
                force_response_cancel: true,
                cancel_response_only: !check.is_audio,
                ..interrupt
            };
            self.send(
                out,
                Pending::Nobody,
                RealtimeModelCommand::Interrupt(interrupt),
            );
        } else if check.is_audio {
            let interrupt = RealtimeInterrupt {
                playback_only: true,
                ..interrupt
            };
            self.send(
                out,
                Pending::Nobody,
                RealtimeModelCommand::Interrupt(interrupt),
            );
        }
        if is_latest {
            let command = RealtimeModelCommand::UserInputAfter {
                input: RealtimeUserInput::Text(feedback),
                response_id: id.clone(),
            };
            self.send(out, Pending::Nobody, command);
        }
    }

    /// Forgets the interruption of a response that has ended, once no guardrail looks at it any more.
    pub(super) fn forget_response(&mut self, response_id: &Arc<str>) {
        let is_active =
            self.response.as_ref().and_then(|active| active.id.as_ref()) == Some(response_id);
        let mut checks = self.checks.values();
        if !is_active && !checks.any(|check| check.response_id == *response_id) {
            self.interrupted.remove(response_id);
        }
    }
}
