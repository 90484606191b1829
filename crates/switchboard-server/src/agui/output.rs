//! The events of AG-UI, made from the events of a run.
//!
//! Each agent is a step, from when it gets the conversation to when it hands it on. Agents that a tool asks, and those
//! that answer side by side, are subagents. Whatever is open when the run ends (a message, a call, a step, a subagent)
//! is closed before the last event.

use std::sync::Arc;

use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, StreamEvent};

use super::event::{AguiEvent, Outcome, PROTOCOL_VERSION, Sent, TokenUsage};
use super::interrupt::describe_interrupt;
use super::producer::Producer;
use super::subagents::{End, Subagents};
use crate::team::ServedTeam;

/// The identifiers of a run, as the client has chosen them.
#[derive(Debug, Clone)]
pub(super) struct RunNames {
    pub(super) thread: Arc<str>,
    pub(super) run: Arc<str>,
    pub(super) parent: Option<Arc<str>>,
}

/// Makes the events of a run.
pub(super) struct OutputEvents {
    team: ServedTeam,
    names: RunNames,
    producer: Producer,
    subagents: Subagents,
    is_ended: bool,
}

impl OutputEvents {
    /// `key` is the service's identifier of the run, which no other run has.
    pub(super) fn new(team: ServedTeam, names: RunNames, key: &str) -> Self {
        let key = key.split_once('_').map_or(key, |(_, key)| key);
        let message_prefix: String = key.chars().take(16).collect();
        Self {
            team,
            names,
            producer: Producer::new(message_prefix.clone()),
            subagents: Subagents::new(message_prefix),
            is_ended: false,
        }
    }

    /// The first event.
    pub(super) fn begin(&self) -> Sent {
        Sent::of_run(AguiEvent::RunStarted {
            thread_id: self.names.thread.clone(),
            run_id: self.names.run.clone(),
            parent_run_id: self.names.parent.clone(),
            protocol_version: PROTOCOL_VERSION,
        })
    }

    /// Returns `true` once the last event was made.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Translates an event of the run.
    pub(super) fn translate(&mut self, event: &StreamEvent) -> Vec<Sent> {
        let mut sent = Vec::new();
        if self.is_ended {
            return sent;
        }
        let mut events = Vec::new();
        match &event.kind {
            EventKind::Inner { .. } => self.subagents.translate(event, &mut sent),
            EventKind::RunFinished { output, usage, .. } => {
                self.producer
                    .add_final_output(output, &event.agent, &mut events);
                self.subagents.end_all(&End::Unfinished, &mut sent);
                let outcome = Outcome::Success {
                    pending_tool_call_ids: Vec::new(),
                };
                self.finish(outcome, Some(output.clone()), usage, &mut events);
            }
            EventKind::RunInterrupted {
                interruptions,
                usage,
                ..
            } => {
                self.subagents.end_all(&End::Suspended(&[]), &mut sent);
                self.interrupt(interruptions, usage, &mut events);
            }
            EventKind::RunStopped { usage, .. } => {
                self.subagents.end_all(&End::Stopped, &mut sent);
                self.producer.cut_off(&mut events);
                self.finish(Outcome::Cancelled {}, None, usage, &mut events);
            }
            EventKind::RunFailed {
                error,
                message,
                usage,
                ..
            } => {
                self.subagents.end_all(&End::Unfinished, &mut sent);
                let code = serde_json::to_value(error).unwrap_or_default();
                let code = code.as_str().unwrap_or("internal");
                self.end_with_error(message, code, usage, &mut events);
            }
            kind => {
                if let EventKind::ToolEnded { call_id, .. } = kind {
                    self.subagents.end_call(call_id, &mut sent);
                }
                self.producer.translate(event, &mut events);
            }
        }
        sent.extend(events.into_iter().map(Sent::of_run));
        sent
    }

    /// The last events of a run whose own last event did not come.
    pub(super) fn fail(&mut self, message: &str, code: &str) -> Vec<Sent> {
        let mut sent = Vec::new();
        if !self.is_ended {
            self.subagents.end_all(&End::Unfinished, &mut sent);
            let mut events = Vec::new();
            self.end_with_error(message, code, &Usage::default(), &mut events);
            sent.extend(events.into_iter().map(Sent::of_run));
        }
        sent
    }

    /// Ends a run that waits: for tools of the client, or for people.
    fn interrupt(&mut self, waiting: &[Interruption], usage: &Usage, events: &mut Vec<AguiEvent>) {
        self.producer.close_text(events);
        self.producer.close_reasoning(events);
        let (calls, others): (Vec<&Interruption>, Vec<&Interruption>) = waiting
            .iter()
            .partition(|waiting| self.team.is_client_call(waiting));
        for call in &calls {
            self.producer.enter(&call.agent, events);
            self.producer
                .finish_call(&call.call_id, &call.tool, &call.arguments, events);
        }
        let outcome = if others.is_empty() {
            Outcome::Success {
                pending_tool_call_ids: calls.iter().map(|call| call.call_id.clone()).collect(),
            }
        } else {
            Outcome::Interrupt {
                interrupts: others.into_iter().map(describe_interrupt).collect(),
            }
        };
        self.finish(outcome, None, usage, events);
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        result: Option<Value>,
        usage: &Usage,
        events: &mut Vec<AguiEvent>,
    ) {
        self.producer.leave(events);
        self.is_ended = true;
        events.push(AguiEvent::RunFinished {
            thread_id: self.names.thread.clone(),
            run_id: self.names.run.clone(),
            result,
            outcome,
            usage: TokenUsage::entries(usage),
        });
    }

    fn end_with_error(
        &mut self,
        message: &str,
        code: &str,
        usage: &Usage,
        events: &mut Vec<AguiEvent>,
    ) {
        self.producer.leave(events);
        self.is_ended = true;
        events.push(AguiEvent::RunError {
            message: message.to_owned(),
            code: code.to_owned(),
            usage: TokenUsage::entries(usage),
        });
    }
}
