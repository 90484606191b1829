//! The outputs of calls: sending them, and asking for responses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calls::{Origin, Stage};
use super::{Commands, Pending, RealtimeMachine};
use crate::event::{RealtimeEvent, SessionProblem};
use crate::model::{
    RealtimeModelCommand, RealtimeModelError, RealtimeModelSettings, RealtimeResponseRequest,
    RealtimeToolOutput,
};
use crate::policy::Responses;

/// The output of a call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) text: Arc<str>,
    /// Asks for a response with it.
    pub(super) start_response: bool,
    /// Set if it may share the response with other outputs.
    pub(super) joins: bool,
    /// New settings of the session, which are sent first.
    pub(super) update: Option<Box<RealtimeModelSettings>>,
    /// Instructions of a response that is asked for afterwards.
    pub(super) first_words: Option<Arc<str>>,
    pub(super) after: AfterSent,
}

/// The event that follows when the output is sent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) enum AfterSent {
    #[default]
    Nothing,
    ToolEnd(Value),
    Problem(String),
}

impl Output {
    /// An output that asks for a response.
    pub(super) fn new(text: Arc<str>) -> Self {
        Self {
            text,
            start_response: true,
            joins: true,
            ..Self::default()
        }
    }

    /// An output that asks for none.
    pub(super) fn quiet(text: &str) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl RealtimeMachine {
    /// Sends the output of a call.
    pub(super) fn answer(&mut self, out: &mut Commands, call_id: &Arc<str>, mut output: Output) {
        let Some(response) = self.calls.get(call_id).map(|call| call.response.clone()) else {
            return;
        };
        if self.policy().responses == Responses::Joined && output.joins {
            let others = self.calls.iter().filter(|(id, _)| *id != call_id);
            let mut others = others.map(|(_, call)| call);
            if others.any(|call| call.response == response && call.is_unfinished()) {
                output.start_response = false;
                self.owed.insert(response);
            } else {
                self.owed.remove(&response);
            }
        } else if output.start_response || output.first_words.is_some() {
            self.owed.remove(&response);
        }
        self.send_output(out, call_id, output);
    }

    /// Asks for the response that outputs have left to a call that now waits for a person.
    pub(super) fn settle_response(&mut self, out: &mut Commands, response: &Arc<str>) {
        let mut calls = self.calls.values();
        if calls.any(|call| call.response == *response && call.is_unfinished()) {
            return;
        }
        if self.owed.remove(response) {
            let command = RealtimeModelCommand::CreateResponse(RealtimeResponseRequest::default());
            self.send(out, Pending::Nobody, command);
        }
    }

    fn send_output(&mut self, out: &mut Commands, call_id: &Arc<str>, output: Output) {
        let Some(call) = self.calls.get_mut(call_id) else {
            return;
        };
        let command = match &output.update {
            Some(settings) => RealtimeModelCommand::UpdateSession {
                settings: settings.clone(),
                update_id: None,
            },
            None => RealtimeModelCommand::ToolOutput(RealtimeToolOutput {
                tool_call: call.call.clone(),
                output: output.text.clone(),
                start_response: output.start_response,
            }),
        };
        call.stage = Stage::Sending(Box::new(output));
        self.send(out, Pending::Call(call_id.clone()), command);
    }

    /// Sends the output of a call again that could not be sent. Other calls that come again are ignored.
    pub(super) fn send_again(&mut self, out: &mut Commands, call_id: &Arc<str>, origin: Origin) {
        let Some(call) = self.calls.get_mut(call_id) else {
            return;
        };
        if let Stage::Unsent(output) = &call.stage {
            let output = Output::clone(output);
            call.origin = origin;
            self.send_output(out, call_id, output);
        }
    }

    /// Takes the outcome of sending an output, or the settings before it.
    pub(super) fn on_output_sent(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        error: Option<RealtimeModelError>,
    ) {
        let Some(call) = self.calls.get_mut(call_id) else {
            return;
        };
        let Stage::Sending(output) = &mut call.stage else {
            return;
        };
        if let Some(error) = error {
            let origin = call.origin;
            let output = std::mem::take(output);
            call.stage = Stage::Unsent(output);
            if origin == Origin::Background {
                let message = "Tool output send failed; cached output will be retried".to_owned();
                self.report(out, SessionProblem::Session(message));
            } else {
                self.end_call_with(out, origin, error.into());
            }
            return self.run_next(out);
        }
        if output.update.take().is_some() {
            let output = Output::clone(output);
            return self.send_output(out, call_id, output);
        }
        let output = std::mem::take(output);
        let (event, request, is_handoff) = (call.to_event(), call.request(), call.is_handoff());
        self.finish_call(call_id);
        match output.after {
            AfterSent::Nothing => {}
            AfterSent::ToolEnd(output) => {
                self.emit(
                    out,
                    RealtimeEvent::ToolEnd {
                        call: event,
                        output,
                    },
                );
            }
            AfterSent::Problem(message) => self.report(out, SessionProblem::Session(message)),
        }
        if let Some(instructions) = output.first_words {
            let request = RealtimeResponseRequest {
                instructions: Some(instructions),
            };
            let command = RealtimeModelCommand::CreateResponse(request);
            self.send(out, Pending::Nobody, command);
        }
        if let Some(request) = request {
            self.reply(out, request, Ok(()));
        }
        if !is_handoff {
            self.refresh(out);
        }
        self.run_next(out);
    }
}
