//! The order of responses: one request at a time, and none while a response runs.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ReportedError;

/// The requests for responses that wait, the one that was sent, and the response that runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ResponseQueue {
    running: Option<RunningResponse>,
    control: Control,
    /// The request that was sent last.
    sent: Option<Sent>,
    waiting: VecDeque<Request>,
    /// The number of event identifiers made up so far.
    counter: u64,
}

/// A response that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunningResponse {
    pub(super) id: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Control {
    #[default]
    Free,
    /// A request was sent, and no response has begun since.
    CreateRequested,
    /// The running response was cancelled, and has not ended yet.
    CancelRequested,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sent {
    event_id: Arc<str>,
    request: Request,
}

/// A request for a response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Request {
    /// Without content of its own. Those that wait side by side share one frame.
    Plain,
    /// With content of its own: the fields of its frame. It keeps its place.
    Own(Map<String, Value>),
}

impl ResponseQueue {
    pub(super) fn request(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    /// Returns `true` if a response was asked for that has not begun.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || self.control == Control::CreateRequested
    }

    /// Returns `true` if a request was sent that the server has not answered.
    pub(super) fn is_unanswered(&self) -> bool {
        self.control == Control::CreateRequested
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn running_id(&self) -> Option<&Arc<str>> {
        self.running.as_ref()?.id.as_ref()
    }

    /// The frame of the next request, if its turn has come.
    pub(super) fn next_frame(&mut self) -> Option<Map<String, Value>> {
        if self.running.is_some() || self.control != Control::Free {
            return None;
        }
        let request = self.waiting.pop_front()?;
        let mut fields = match &request {
            Request::Own(fields) => fields.clone(),
            Request::Plain => {
                while let Some(Request::Plain) = self.waiting.front() {
                    self.waiting.pop_front();
                }
                Map::new()
            }
        };
        let own_id = fields.get("event_id").and_then(Value::as_str);
        let event_id: Arc<str> = match own_id {
            Some(id) => id.into(),
            None => {
                self.counter += 1;
                format!("switchboard_response_{}", self.counter).into()
            }
        };
        fields.insert("type".into(), "response.create".into());
        fields.insert("event_id".into(), (*event_id).into());
        self.control = Control::CreateRequested;
        self.sent = Some(Sent { event_id, request });
        Some(fields)
    }

    pub(super) fn begun(&mut self, id: Option<Arc<str>>) {
        self.running = Some(RunningResponse { id });
        self.control = Control::Free;
    }

    /// Notes the end of a response. The end of another than the running one changes nothing.
    pub(super) fn ended(&mut self, id: Option<&str>) {
        if let (Some(id), Some(running)) = (id, self.running_id())
            && id != &**running
        {
            return;
        }
        self.running = None;
        self.control = Control::Free;
    }

    /// Cancels the running response, or this one if it is the running one. Returns `true` if that has to
    /// be sent.
    pub(super) fn cancel(&mut self, id: Option<&str>) -> bool {
        if self.running.is_none() || self.control == Control::CancelRequested {
            return false;
        }
        if let (Some(id), Some(running)) = (id, self.running_id())
            && id != &**running
        {
            return false;
        }
        self.control = Control::CancelRequested;
        true
    }

    /// Notes an error of the server. One that refuses the request that was sent frees the way; with
    /// `repeat`, a request that was refused because a response runs will be sent again.
    pub(super) fn failed(&mut self, error: &ReportedError, repeat: bool) {
        if repeat && self.repeat_after(error) {
            return;
        }
        if self.running.is_some() || self.control != Control::CreateRequested {
            return;
        }
        let is_refusal = match (&error.event_id, &self.sent) {
            (Some(id), Some(sent)) => **id == *sent.event_id,
            (Some(_), None) => false,
            (None, _) => {
                error.code.as_deref() == Some("bad_response_create")
                    || error.message.to_lowercase().contains("response.create")
            }
        };
        if is_refusal {
            self.control = Control::Free;
            self.sent = None;
        }
    }

    /// Puts the request that was sent last to the front again, if the error says that a response was
    /// running. Returns `true` if it does.
    fn repeat_after(&mut self, error: &ReportedError) -> bool {
        if error.code.as_deref() != Some("conversation_already_has_active_response") {
            return false;
        }
        let names_another = match (&error.event_id, &self.sent) {
            (Some(id), Some(sent)) => **id != *sent.event_id,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if names_another {
            return false;
        }
        if let Some(sent) = self.sent.take() {
            self.waiting.push_front(sent.request);
        }
        if self.control == Control::CreateRequested {
            // The server's own response may be announced later. Its end frees the way.
            self.control = Control::Free;
            self.running.get_or_insert(RunningResponse { id: None });
        }
        true
    }

    /// Notes that the connection is lost. A response that was running, or that was asked for, is asked
    /// for once more, if `resume` is set. Returns the response that was cut off.
    pub(super) fn disconnected(&mut self, resume: bool) -> Option<RunningResponse> {
        let running = self.running.take();
        let unanswered = match (self.control, self.sent.take()) {
            (Control::CreateRequested, Some(sent)) => Some(sent.request),
            _ => None,
        };
        self.control = Control::Free;
        if let Some(request) = unanswered {
            self.waiting.push_front(request);
        } else if running.is_some() && resume && self.waiting.is_empty() {
            self.waiting.push_back(Request::Plain);
        }
        running
    }
}
