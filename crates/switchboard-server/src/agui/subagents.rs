//! The agents that run inside a call of the run, which waits for them: those that tools ask, and those that answer side
//! by side after several handoffs.
//!
//! Each is a subagent of AG-UI, from its first event to its last. Its identifier is that of the call, after those of the
//! calls around it, so that the same call has the same one after an interrupt.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::stream::{EventKind, StreamEvent};

use super::event::{AguiEvent, Sent, SubagentOutcome};
use super::interrupt::interrupt_id;
use super::producer::Producer;

/// The subagents of a run.
pub(super) struct Subagents {
    message_prefix: String,
    /// Those that are active, the outer ones before those inside them.
    active: Vec<Subagent>,
    /// The number of times that each identifier was begun: within a run none is used again.
    begun: HashMap<String, usize>,
    count: usize,
}

struct Subagent {
    /// The calls that it runs in, the outermost first.
    path: Vec<Arc<str>>,
    id: Arc<str>,
    producer: Producer,
}

/// The end of a subagent.
pub(super) enum End<'a> {
    Finished(&'a Value),
    /// It waits for what is decided, with these interrupts.
    Suspended(&'a [Interruption]),
    Failed {
        message: &'a str,
        code: String,
    },
    Stopped,
    /// Its last event did not come, as when its tool took too long.
    Unfinished,
}

impl Subagents {
    pub(super) fn new(message_prefix: String) -> Self {
        Self {
            message_prefix,
            active: Vec::new(),
            begun: HashMap::new(),
            count: 0,
        }
    }

    /// Translates an event of a run inside a call.
    pub(super) fn translate(&mut self, event: &StreamEvent, sent: &mut Vec<Sent>) {
        let (mut path, mut event) = (Vec::new(), event);
        while let EventKind::Inner {
            call_id,
            event: inner,
            ..
        } = &event.kind
        {
            path.push(call_id.clone());
            event = inner;
        }
        match &event.kind {
            EventKind::RunFinished { output, .. } => {
                self.end(&path, &End::Finished(output), sent);
            }
            EventKind::RunInterrupted { interruptions, .. } => {
                self.end(&path, &End::Suspended(interruptions), sent);
            }
            EventKind::RunStopped { .. } => self.end(&path, &End::Stopped, sent),
            EventKind::RunFailed { error, message, .. } => {
                let code = serde_json::to_value(error).unwrap_or_default();
                let code = code.as_str().unwrap_or("internal").to_owned();
                self.end(&path, &End::Failed { message, code }, sent);
            }
            kind => {
                if let EventKind::ToolEnded { call_id, .. } = kind {
                    let inside = [&*path, std::slice::from_ref(call_id)].concat();
                    self.end(&inside, &End::Unfinished, sent);
                }
                let subagent = self.active_at(&path, &event.agent, sent);
                subagent.produce(sent, |producer, events| producer.translate(event, events));
            }
        }
    }

    /// The subagent in these calls, which begins now if it is not active.
    fn active_at(
        &mut self,
        path: &[Arc<str>],
        agent: &Arc<str>,
        sent: &mut Vec<Sent>,
    ) -> &mut Subagent {
        let at = self.active.iter().position(|active| active.path == path);
        let at = at.unwrap_or_else(|| {
            self.begin(path, agent, sent);
            self.active.len() - 1
        });
        &mut self.active[at]
    }

    fn begin(&mut self, path: &[Arc<str>], agent: &Arc<str>, sent: &mut Vec<Sent>) {
        let calls = path.join("/");
        let times = self.begun.entry(calls.clone()).or_default();
        *times += 1;
        let id: Arc<str> = match *times {
            1 => calls.into(),
            times => format!("{calls}#{times}").into(),
        };
        self.count += 1;
        let message_prefix = format!("{}_{}", self.message_prefix, self.count);
        let (call, outer) = match path.split_last() {
            Some((call, outer)) => (Some(call.clone()), outer),
            None => (None, path),
        };
        let parent = self.active.iter().find(|active| active.path == outer);
        sent.push(Sent::of_run(AguiEvent::SubagentStarted {
            subagent_run_id: id.clone(),
            name: agent.clone(),
            parent_subagent_run_id: parent.map(|parent| parent.id.clone()),
            parent_tool_call_id: call,
        }));
        self.active.push(Subagent {
            path: path.to_vec(),
            id,
            producer: Producer::new(message_prefix),
        });
    }

    /// Ends the subagents of a call of the run that has ended without them.
    pub(super) fn end_call(&mut self, call_id: &Arc<str>, sent: &mut Vec<Sent>) {
        self.end(std::slice::from_ref(call_id), &End::Unfinished, sent);
    }

    /// Ends all subagents.
    pub(super) fn end_all(&mut self, end: &End<'_>, sent: &mut Vec<Sent>) {
        self.end(&[], end, sent);
    }

    /// Ends the subagent in these calls, and before it those inside.
    fn end(&mut self, path: &[Arc<str>], end: &End<'_>, sent: &mut Vec<Sent>) {
        let is_meant = |active: &mut Subagent| active.path.starts_with(path);
        let ended: Vec<Subagent> = self.active.extract_if(.., is_meant).collect();
        for subagent in ended.into_iter().rev() {
            subagent.end(end, sent);
        }
    }
}

impl Subagent {
    /// Adds events of the subagent.
    fn produce(
        &mut self,
        sent: &mut Vec<Sent>,
        produce: impl FnOnce(&mut Producer, &mut Vec<AguiEvent>),
    ) {
        let mut events = Vec::new();
        produce(&mut self.producer, &mut events);
        let id = &self.id;
        sent.extend(events.into_iter().map(|event| Sent::of_subagent(id, event)));
    }

    fn end(mut self, end: &End<'_>, sent: &mut Vec<Sent>) {
        self.produce(sent, |producer, events| producer.leave(events));
        let subagent_run_id = self.id;
        let error = |message: &str, code: &str| AguiEvent::SubagentError {
            subagent_run_id: subagent_run_id.clone(),
            message: message.to_owned(),
            code: code.to_owned(),
        };
        let event = match end {
            End::Finished(output) => AguiEvent::SubagentFinished {
                subagent_run_id,
                result: Some((*output).clone()).filter(|output| !output.is_null()),
                outcome: SubagentOutcome::Success {},
            },
            End::Suspended(waiting) => AguiEvent::SubagentFinished {
                subagent_run_id,
                result: None,
                outcome: SubagentOutcome::Suspended {
                    interrupt_ids: waiting.iter().map(interrupt_id).collect(),
                },
            },
            End::Failed { message, code } => error(message, code),
            End::Stopped => error("The run was stopped.", "stopped"),
            End::Unfinished => error("The call ended before the agent in it did.", "unfinished"),
        };
        sent.push(Sent::of_run(event));
    }
}
