//! Writes an answer in the protocol it was asked in.

mod chat;
mod chunks;
mod events;
mod items;
mod response;
mod sse;

use bytes::Bytes;
use serde_json::Value;

use crate::answer::{Answer, Cut, End, Endless};
use crate::check::Protocol;
use crate::error::error_body;
use crate::reply::Reply;

pub(crate) use chat::chat_problem;

/// What an answer is for.
pub(crate) struct Asked<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) body: &'a Value,
    /// The number of the answer; identifiers are made of it.
    pub(crate) number: usize,
}

impl Asked<'_> {
    fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }

    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("gpt-fake")
    }

    /// The identifier of the answer.
    pub(crate) fn id(&self) -> String {
        match self.protocol {
            Protocol::Responses => format!("resp_{}", self.number),
            Protocol::Chat => format!("chatcmpl-{}", self.number),
        }
    }
}

/// An answer as it goes over the wire.
#[derive(Clone)]
pub(crate) struct Rendered {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// How long the body says it is; a stream does not say.
    pub(crate) length: Option<usize>,
    pub(crate) frames: Vec<Bytes>,
    pub(crate) tail: Tail,
}

/// What follows the last frame.
#[derive(Clone)]
pub(crate) enum Tail {
    End,
    Close,
    Hang,
    Repeat(Bytes),
}

/// Writes `reply`. `None` where the connection is to be closed without an answer.
pub(crate) fn render(reply: &Reply, asked: &Asked<'_>) -> Option<Rendered> {
    let rendered = match &reply.answer {
        Answer::Disconnect => return None,
        Answer::Raw {
            status,
            content_type,
            bytes,
        } => Rendered {
            content_type: content_type.clone(),
            ..whole(*status, bytes.clone())
        },
        Answer::Endless(endless) => never_ending(*endless, asked),
        Answer::Items { items, end } => match written(reply, items, end, asked) {
            Ok(rendered) => rendered,
            Err(problem) => {
                let body = error_body("server_error", Some("not_in_chat"), None, &problem);
                whole(501, body.to_string().into())
            }
        },
    };
    Some(framed(cut(rendered, reply.cut), reply.frame))
}

fn written(
    reply: &Reply,
    items: &[Value],
    end: &End,
    asked: &Asked<'_>,
) -> Result<Rendered, String> {
    Ok(match (asked.protocol, asked.is_stream()) {
        (Protocol::Responses, true) => stream(events::events(reply, items, end, asked)),
        (Protocol::Responses, false) => match end {
            End::Error { code, message, .. } => failure(code, message),
            _ => whole(
                200,
                response::json(reply, items, end, asked).to_string().into(),
            ),
        },
        (Protocol::Chat, true) => stream(chunks::chunks(reply, items, end, asked)?),
        (Protocol::Chat, false) => match end {
            End::Error { code, message, .. } | End::Failed { code, message } => {
                failure(code, message)
            }
            _ => whole(
                200,
                chat::completion(reply, items, end, asked)?
                    .to_string()
                    .into(),
            ),
        },
    })
}

fn failure(code: &str, message: &str) -> Rendered {
    let body = error_body("server_error", Some(code), None, message);
    whole(500, body.to_string().into())
}

/// An answer that is a JSON body.
pub(crate) fn whole(status: u16, bytes: Bytes) -> Rendered {
    Rendered {
        status,
        content_type: "application/json".to_owned(),
        length: Some(bytes.len()),
        frames: vec![bytes],
        tail: Tail::End,
    }
}

fn stream(frames: Vec<Bytes>) -> Rendered {
    Rendered {
        status: 200,
        content_type: "text/event-stream; charset=utf-8".to_owned(),
        length: None,
        frames,
        tail: Tail::End,
    }
}

fn never_ending(endless: Endless, asked: &Asked<'_>) -> Rendered {
    let (first, again): (Vec<Bytes>, Bytes) = match (asked.is_stream(), endless) {
        (true, Endless::Events) => match asked.protocol {
            Protocol::Responses => events::endless(asked),
            Protocol::Chat => chunks::endless(asked),
        },
        (true, Endless::Line) => (vec!["data: {\"type\":\"".into()], "x".repeat(4096).into()),
        (false, _) => (vec!["{\"id\":\"".into()], "x".repeat(4096).into()),
    };
    let content_type = if asked.is_stream() {
        "text/event-stream"
    } else {
        "application/json"
    };
    Rendered {
        status: 200,
        content_type: content_type.to_owned(),
        length: None,
        frames: first,
        tail: Tail::Repeat(again),
    }
}

/// Keeps the first bytes of a body, and changes what follows them.
fn cut(mut rendered: Rendered, cut: Option<(usize, Cut)>) -> Rendered {
    let Some((mut left, cut)) = cut else {
        return rendered;
    };
    for frame in &mut rendered.frames {
        frame.truncate(left);
        left -= frame.len();
    }
    rendered.frames.retain(|frame| !frame.is_empty());
    rendered.tail = match cut {
        Cut::Close => Tail::Close,
        Cut::Hang => Tail::Hang,
        Cut::End => {
            let kept = rendered.frames.iter().map(Bytes::len).sum();
            rendered.length = rendered.length.map(|_| kept);
            Tail::End
        }
    };
    rendered
}

/// Cuts a body into frames of the same size.
fn framed(mut rendered: Rendered, size: Option<usize>) -> Rendered {
    if let Some(size) = size {
        let all = Bytes::from(rendered.frames.concat());
        let starts = (0..all.len()).step_by(size);
        rendered.frames = starts
            .map(|start| all.slice(start..all.len().min(start + size)))
            .collect();
    }
    rendered
}

/// A text in pieces of so many characters.
fn pieces(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(characters);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
