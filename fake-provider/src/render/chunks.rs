//! Renders a reply as the chunks of a chat completion.

use bytes::Bytes;
use serde_json::{Value, json};

use super::chat::{Call, Message, reasoning_field, usage};
use super::response::CREATED;
use super::sse::Sse;
use super::{RequestInfo, pieces};
use crate::error::error_body;
use crate::quirk::Quirk;
use crate::reply::Reply;
use crate::reply::content::Ending;

/// Renders all chunks of a reply.
pub(super) fn chunks(
    reply: &Reply,
    items: &[Value],
    end: &Ending,
    request: &RequestInfo<'_>,
) -> Result<Vec<Bytes>, String> {
    let message = Message::of(items)?;
    let mut deltas = deltas(&message, reply);
    let finish = if reply.has(Quirk::NoFinish) {
        Value::Null
    } else {
        json!(message.finish_reason(reply, end))
    };
    let mut sse = Sse::new(reply);
    let failed = match end {
        Ending::Failed { code, message } | Ending::Error { code, message, .. } => {
            Some(error_body("server_error", Some(code), None, message))
        }
        Ending::Completed | Ending::Incomplete { .. } => None,
    };
    let last = match (&failed, reply.has(Quirk::FinishWithLast)) {
        (Some(_), _) => None,
        (None, true) => deltas.pop(),
        (None, false) => Some(json!({})),
    };
    for delta in deltas {
        sse.event(None, &chunk(delta, Value::Null, reply, request));
    }
    if let Some(delta) = last {
        sse.event(None, &chunk(delta, finish, reply, request));
    }
    match failed {
        Some(error) => sse.event(None, &error),
        None if includes_usage(reply, request) => {
            let mut last = empty_chunk(request);
            last["usage"] = usage(reply.usage);
            sse.event(None, &last);
        }
        None => {}
    }
    if !reply.has(Quirk::NoDone) {
        sse.done();
    }
    Ok(sse.finish())
}

fn includes_usage(reply: &Reply, request: &RequestInfo<'_>) -> bool {
    request.body["stream_options"]["include_usage"] == true && !reply.has(Quirk::NoUsage)
}

/// The deltas of all chunks.
fn deltas(message: &Message<'_>, reply: &Reply) -> Vec<Value> {
    let mut deltas = Vec::new();
    if !reply.has(Quirk::NoRole) {
        deltas.push(json!({"role": "assistant", "content": "", "refusal": null}));
    }
    let texts = [
        (reasoning_field(reply), message.reasoning),
        ("content", message.content),
        ("refusal", message.refusal),
    ];
    for (field, text) in texts {
        let pieces = pieces(text.unwrap_or_default(), reply.piece);
        deltas.extend(pieces.map(|piece| json!({field: piece})));
    }
    for (index, call) in message.calls.iter().enumerate() {
        call_deltas(call, index, reply, &mut deltas);
    }
    if reply.has(Quirk::NullContent) {
        for delta in &mut deltas {
            if delta["content"].as_str().is_none_or(str::is_empty) {
                delta["content"] = Value::Null;
            }
        }
    }
    deltas
}

fn call_deltas(call: &Call<'_>, index: usize, reply: &Reply, deltas: &mut Vec<Value>) {
    let is_whole = reply.has(Quirk::WholeCalls) || reply.has(Quirk::ObjectArguments);
    let arguments = if is_whole {
        call.arguments_json(reply)
    } else {
        json!("")
    };
    let mut first = json!({"index": index, "id": call.id, "type": "function",
                           "function": {"name": call.name, "arguments": arguments}});
    if let (true, Some(fields)) = (reply.has(Quirk::NoCallId), first.as_object_mut()) {
        fields.shift_remove("id");
    }
    deltas.push(json!({"tool_calls": [with_index(first, reply)]}));
    if is_whole {
        return;
    }
    for piece in pieces(call.arguments, reply.piece) {
        let more = json!({"index": index, "function": {"arguments": piece}});
        deltas.push(json!({"tool_calls": [with_index(more, reply)]}));
    }
}

/// Changes the index of a call as the quirks say.
fn with_index(mut call: Value, reply: &Reply) -> Value {
    if reply.has(Quirk::ZeroToolIndex) {
        call["index"] = json!(0);
    }
    if let (true, Some(fields)) = (reply.has(Quirk::NoToolIndex), call.as_object_mut()) {
        fields.shift_remove("index");
    }
    call
}

fn chunk(delta: Value, finish: Value, reply: &Reply, request: &RequestInfo<'_>) -> Value {
    let mut chunk = empty_chunk(request);
    chunk["choices"] = json!([{
        "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish,
    }]);
    if includes_usage(reply, request) {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn empty_chunk(request: &RequestInfo<'_>) -> Value {
    json!({
        "id": request.id(),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": request.model(),
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
        "choices": [],
    })
}

/// The chunks that begin a message, and one to repeat.
pub(super) fn endless(request: &RequestInfo<'_>) -> (Vec<Bytes>, Bytes) {
    let reply = Reply::items([]);
    let mut sse = Sse::new(&reply);
    for delta in [
        json!({"role": "assistant", "content": ""}),
        json!({"content": "and on "}),
    ] {
        sse.event(None, &chunk(delta, Value::Null, &reply, request));
    }
    let mut first = sse.finish();
    let repeated = first.pop().unwrap_or_default();
    (first, repeated)
}
