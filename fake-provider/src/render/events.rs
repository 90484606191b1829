//! A response of the Responses API, as its events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::response::{self, begun};
use super::sse::Sse;
use super::{Asked, items};
use crate::answer::{End, ErrorForm};
use crate::quirk::Quirk;
use crate::reply::Reply;

/// Writes events and numbers them.
pub(super) struct Events<'a> {
    pub(super) reply: &'a Reply,
    sse: Sse<'a>,
    next: u64,
}

impl<'a> Events<'a> {
    fn new(reply: &'a Reply) -> Self {
        let sse = Sse::new(reply);
        Self {
            reply,
            sse,
            next: 0,
        }
    }

    /// Writes an event; `fields` must be an object.
    pub(super) fn push(&mut self, kind: &str, fields: Value) {
        if self.reply.has(Quirk::UnknownEvents) {
            self.write("keepalive", json!({"whatever": [1]}));
        }
        self.write(kind, fields);
    }

    fn write(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind});
        if !self.reply.has(Quirk::NoSequenceNumbers) {
            event["sequence_number"] = self.next.into();
            self.next += 1;
        }
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        let name = (!self.reply.has(Quirk::NoEventNames)).then_some(kind);
        self.sse.event(name, &event);
    }

    fn begin(&mut self, asked: &Asked<'_>) {
        self.push("response.created", json!({"response": begun(asked)}));
        self.push("response.in_progress", json!({"response": begun(asked)}));
    }
}

/// The events of a whole answer.
pub(super) fn events(reply: &Reply, list: &[Value], end: &End, asked: &Asked<'_>) -> Vec<Bytes> {
    let mut events = Events::new(reply);
    events.begin(asked);
    for (index, item) in list.iter().enumerate() {
        items::item(&mut events, index, item);
    }
    let mut whole = response::json(reply, list, end, asked);
    if reply.has(Quirk::EmptyFinalOutput) {
        whole["output"] = json!([]);
    }
    match end {
        End::Completed => events.push("response.completed", json!({"response": whole})),
        End::Incomplete { .. } => events.push("response.incomplete", json!({"response": whole})),
        End::Failed { .. } => events.push("response.failed", json!({"response": whole})),
        End::Error {
            form,
            code,
            message,
        } => events.push("error", error(*form, code, message)),
    }
    if reply.has(Quirk::Done) {
        events.sse.done();
    }
    events.sse.finish()
}

fn error(form: ErrorForm, code: &str, message: &str) -> Value {
    match form {
        ErrorForm::Flat => json!({"code": code, "message": message, "param": null}),
        ErrorForm::Nested => json!({"error": {
            "type": code, "code": code, "message": message, "param": null,
        }}),
    }
}

/// The events that begin a message, and one that can follow without end.
pub(super) fn endless(asked: &Asked<'_>) -> (Vec<Bytes>, Bytes) {
    let reply = Reply::items([]).quirk(Quirk::NoSequenceNumbers);
    let mut events = Events::new(&reply);
    events.begin(asked);
    items::begin_text(&mut events);
    let mut first = events.sse.finish();
    let again = first.pop().unwrap_or_default();
    (first, again)
}
