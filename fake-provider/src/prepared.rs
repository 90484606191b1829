//! Prepared replies for benches: requests are neither parsed nor checked nor recorded.

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::json;

use crate::check::Protocol;
use crate::error::Problem;
use crate::render::{Rendered, RequestInfo, render};
use crate::reply::Reply;
use crate::route::Route;

/// Replies that are selected by a text in the request body.
pub(crate) struct PreparedReplies {
    replies: Vec<PreparedReply>,
    stream_fields: [Finder<'static>; 2],
}

/// A reply, rendered in both protocols.
struct PreparedReply {
    text: Finder<'static>,
    responses: Forms,
    chat: Forms,
}

/// A reply, rendered with and without streaming.
struct Forms {
    whole: Option<Rendered>,
    streamed: Option<Rendered>,
}

impl PreparedReplies {
    pub(crate) fn new<'a>(replies: impl IntoIterator<Item = (&'a str, Reply)>) -> Self {
        let prepare = |(text, reply): (&str, Reply)| PreparedReply {
            text: Finder::new(text).into_owned(),
            responses: Forms::of(&reply, Protocol::Responses),
            chat: Forms::of(&reply, Protocol::Chat),
        };
        // Clients write JSON with and without spaces.
        let stream_fields = ["\"stream\":true", "\"stream\": true"];
        Self {
            replies: replies.into_iter().map(prepare).collect(),
            stream_fields: stream_fields.map(|text| Finder::new(text).into_owned()),
        }
    }

    /// The first reply whose text is in the body.
    pub(crate) fn find(&self, protocol: Protocol, body: &Bytes) -> Result<Rendered, Problem> {
        let none = || Problem::new("no_reply", None, "no reply matches this request").status(404);
        let reply = self
            .replies
            .iter()
            .find(|reply| reply.text.find(body).is_some())
            .ok_or_else(none)?;
        let forms = match protocol {
            Protocol::Responses => &reply.responses,
            Protocol::Chat => &reply.chat,
        };
        let mut stream_fields = self.stream_fields.iter();
        let form = if stream_fields.any(|field| field.find(body).is_some()) {
            &forms.streamed
        } else {
            &forms.whole
        };
        form.clone().ok_or_else(none)
    }
}

impl Forms {
    fn of(reply: &Reply, protocol: Protocol) -> Self {
        let form = |stream: bool| {
            let body = json!({"model": "m", "stream": stream});
            let request = RequestInfo {
                route: Route::Model(protocol),
                body: &body,
                number: 0,
            };
            render(reply, &request)
        };
        Self {
            whole: form(false),
            streamed: form(true),
        }
    }
}
