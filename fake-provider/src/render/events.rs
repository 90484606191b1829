//! Renders a reply as the events of a response.

use bytes::Bytes;
use serde_json::{Value, json};

use super::response::{self, in_progress};
use super::sse::Sse;
use super::{RequestInfo, items};
use crate::quirk::Quirk;
use crate::reply::Reply;
use crate::reply::content::{Ending, ErrorForm};

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

    fn begin(&mut self, request: &RequestInfo<'_>) {
        self.push(
            "response.created",
            json!({"response": in_progress(request)}),
        );
        self.push(
            "response.in_progress",
            json!({"response": in_progress(request)}),
        );
    }
}

/// Renders all events of a reply.
pub(super) fn events(
    reply: &Reply,
    list: &[Value],
    end: &Ending,
    request: &RequestInfo<'_>,
) -> Vec<Bytes> {
    let mut events = Events::new(reply);
    events.begin(request);
    for (index, item) in list.iter().enumerate() {
        items::item(&mut events, index, item);
    }
    let mut whole = response::json(reply, list, end, request);
    if reply.has(Quirk::EmptyFinalOutput) {
        whole["output"] = json!([]);
    }
    match end {
        Ending::Completed => events.push("response.completed", json!({"response": whole})),
        Ending::Incomplete { .. } => events.push("response.incomplete", json!({"response": whole})),
        Ending::Failed { .. } => events.push("response.failed", json!({"response": whole})),
        Ending::Error {
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

/// The events that begin a message, and one to repeat.
pub(super) fn endless(request: &RequestInfo<'_>) -> (Vec<Bytes>, Bytes) {
    let reply = Reply::items([]).quirk(Quirk::NoSequenceNumbers);
    let mut events = Events::new(&reply);
    events.begin(request);
    items::begin_text(&mut events);
    let mut first = events.sse.finish();
    let repeated = first.pop().unwrap_or_default();
    (first, repeated)
}
