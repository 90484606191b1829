//! Renders replies in the protocol of the request.

mod chat;
mod chunks;
mod events;
mod items;
mod response;
mod sse;

use bytes::Bytes;
use serde_json::Value;

use crate::check::Protocol;
use crate::error::error_body;
use crate::reply::Reply;
use crate::reply::content::{AUDIO, Content, Cut, Ending, Endless};
use crate::route::Route;

pub(crate) use chat::chat_problem;

/// The parts of a request that a reply depends on.
pub(crate) struct RequestInfo<'a> {
    pub(crate) route: Route,
    pub(crate) body: &'a Value,
    /// The number of the request, which identifiers are made of.
    pub(crate) number: usize,
}

impl RequestInfo<'_> {
    fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }

    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("gpt-fake")
    }

    /// The identifier of the response.
    pub(crate) fn id(&self) -> String {
        match self.route {
            Route::Model(Protocol::Responses) => format!("resp_{}", self.number),
            Route::Model(Protocol::Chat) => format!("chatcmpl-{}", self.number),
            Route::Speech | Route::Transcriptions => format!("audio_{}", self.number),
        }
    }
}

/// A rendered reply.
#[derive(Clone)]
pub(crate) struct Rendered {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// The content length. A stream has none.
    pub(crate) length: Option<usize>,
    pub(crate) frames: Vec<Bytes>,
    pub(crate) tail: Tail,
}

/// The action after the last frame.
#[derive(Clone)]
pub(crate) enum Tail {
    End,
    Close,
    Hang,
    Repeat(Bytes),
}

/// Renders a reply. Returns `None` if the connection is to be closed without one.
pub(crate) fn render(reply: &Reply, request: &RequestInfo<'_>) -> Option<Rendered> {
    let rendered = match &reply.content {
        Content::Disconnect => return None,
        Content::Raw {
            status,
            content_type,
            bytes,
        } => Rendered {
            content_type: content_type.clone(),
            // OpenAI sends audio while it is made, so its length is not known.
            length: (content_type != AUDIO).then_some(bytes.len()),
            ..json_body(*status, bytes.clone())
        },
        Content::Endless(endless) => render_endless(*endless, request),
        Content::Items { items, end } => match render_items(reply, items, end, request) {
            Ok(rendered) => rendered,
            Err(problem) => {
                let body = error_body("server_error", Some("not_in_chat"), None, &problem);
                json_body(501, body.to_string().into())
            }
        },
    };
    Some(split_frames(cut(rendered, reply.cut), reply.frame))
}

fn render_items(
    reply: &Reply,
    items: &[Value],
    end: &Ending,
    request: &RequestInfo<'_>,
) -> Result<Rendered, String> {
    let Route::Model(protocol) = request.route else {
        return Err("an audio endpoint has no items".to_owned());
    };
    Ok(match (protocol, request.is_stream()) {
        (Protocol::Responses, true) => stream(events::events(reply, items, end, request)),
        (Protocol::Responses, false) => match end {
            Ending::Error { code, message, .. } => failure(code, message),
            _ => json_body(
                200,
                response::json(reply, items, end, request)
                    .to_string()
                    .into(),
            ),
        },
        (Protocol::Chat, true) => stream(chunks::chunks(reply, items, end, request)?),
        (Protocol::Chat, false) => match end {
            Ending::Error { code, message, .. } | Ending::Failed { code, message } => {
                failure(code, message)
            }
            _ => json_body(
                200,
                chat::completion(reply, items, end, request)?
                    .to_string()
                    .into(),
            ),
        },
    })
}

fn failure(code: &str, message: &str) -> Rendered {
    let body = error_body("server_error", Some(code), None, message);
    json_body(500, body.to_string().into())
}

/// A response with a JSON body.
pub(crate) fn json_body(status: u16, bytes: Bytes) -> Rendered {
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

fn render_endless(endless: Endless, request: &RequestInfo<'_>) -> Rendered {
    let (first, again): (Vec<Bytes>, Bytes) = match (request.is_stream(), endless) {
        _ if request.route == Route::Speech => (Vec::new(), vec![0; 4096].into()),
        (true, Endless::Events) => match request.route {
            Route::Model(Protocol::Chat) => chunks::endless(request),
            _ => events::endless(request),
        },
        (true, Endless::Line) => (vec!["data: {\"type\":\"".into()], "x".repeat(4096).into()),
        (false, _) => (vec!["{\"id\":\"".into()], "x".repeat(4096).into()),
    };
    let content_type = if request.route == Route::Speech {
        AUDIO
    } else if request.is_stream() {
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

/// Cuts a body off after some bytes, and sets the action that follows.
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
            let length = rendered.frames.iter().map(Bytes::len).sum();
            rendered.length = rendered.length.map(|_| length);
            Tail::End
        }
    };
    rendered
}

/// Splits a body into frames of the same size.
fn split_frames(mut rendered: Rendered, size: Option<usize>) -> Rendered {
    if let Some(size) = size {
        let all = Bytes::from(rendered.frames.concat());
        let starts = (0..all.len()).step_by(size);
        rendered.frames = starts
            .map(|start| all.slice(start..all.len().min(start + size)))
            .collect();
    }
    rendered
}

/// Splits a text into pieces of `characters` characters.
fn pieces(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(characters);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
