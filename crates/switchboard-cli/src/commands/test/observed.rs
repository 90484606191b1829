//! The messages, tools, guardrails and turns of a conversation, read from its events.

use serde::Serialize;
use serde_json::Value;
use switchboard_core::EventKind;
use switchboard_core::guardrail::{GuardrailOutcome, GuardrailResult};
use switchboard_core::stream::HandoffStatus;

use crate::event_line::EventLine;

/// A summary of the events of a conversation.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Observed {
    /// The agents that had the conversation, in order.
    pub(super) path: Vec<String>,
    /// The payload of the last handoff.
    pub(super) payload: Option<Value>,
    /// The final outputs.
    pub(super) answers: Vec<String>,
    /// The tools that ran.
    pub(super) calls: Vec<Call>,
    /// The guardrails that stopped, refused or changed something.
    pub(super) guardrails: Vec<String>,
    pub(super) turns: u32,
    /// The runs that failed.
    pub(super) errors: Vec<RunError>,
    /// The messages of the user; `None` for one that is not in the events.
    pub(super) messages: Vec<Option<String>>,
    /// Set while a run waits: the next one goes on with it, and has no message.
    pub(super) is_waiting: bool,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// The failure of a run.
#[derive(Debug, PartialEq)]
pub(super) struct RunError {
    pub(super) message: String,
    /// The guardrail that stopped the run.
    pub(super) guardrail: Option<String>,
}

impl Observed {
    /// Reads the events of a conversation that begins with the agent `first`.
    pub(super) fn new(first: String, lines: &[EventLine]) -> Self {
        let mut observed = Self {
            path: vec![first],
            ..Self::default()
        };
        for line in lines {
            observed.add(&line.event.kind);
        }
        observed
    }

    fn add(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { input, .. } => {
                let goes_on = std::mem::take(&mut self.is_waiting) && input.is_none();
                self.messages.extend((!goes_on).then(|| input.clone()));
            }
            EventKind::RunInterrupted { .. } => self.is_waiting = true,
            EventKind::InputPassed { input, .. } => {
                if let Some(last) = self.messages.last_mut().filter(|last| last.is_none()) {
                    last.clone_from(input);
                }
            }
            EventKind::TurnStarted { .. } => self.turns += 1,
            EventKind::ToolStarted {
                tool, arguments, ..
            } => self.calls.push(Call {
                tool: tool.to_string(),
                arguments: arguments.clone(),
            }),
            EventKind::Handoff(handoff) if handoff.status == HandoffStatus::Taken => {
                self.path.push(handoff.to.to_string());
                self.payload = Some(handoff.payload.clone());
            }
            EventKind::Guardrail { result, .. } => self.guardrail(result),
            EventKind::RunFinished { output, .. } => self.answers.push(match output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            EventKind::RunFailed {
                message, guardrail, ..
            } => {
                if let Some(result) = guardrail {
                    self.guardrail(result);
                }
                self.errors.push(RunError {
                    message: message.clone(),
                    guardrail: guardrail
                        .as_ref()
                        .map(|result| result.guardrail.to_string()),
                });
            }
            _ => {}
        }
    }

    fn guardrail(&mut self, result: &GuardrailResult) {
        let name = &*result.guardrail;
        let is_known = self.guardrails.iter().any(|known| known == name);
        if result.outcome != GuardrailOutcome::Allowed && !is_known {
            self.guardrails.push(name.to_owned());
        }
    }
}
