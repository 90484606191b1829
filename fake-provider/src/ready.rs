//! Answers that are made beforehand, for benches: a request is neither parsed nor checked nor kept.

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::json;

use crate::check::Protocol;
use crate::error::Problem;
use crate::render::{Asked, Rendered, render};
use crate::reply::Reply;

/// Replies by what the body of a request holds.
pub(crate) struct Ready {
    answers: Vec<Prepared>,
    streamed: [Finder<'static>; 2],
}

/// A reply in all the forms it can be asked for in.
struct Prepared {
    holds: Finder<'static>,
    responses: Forms,
    chat: Forms,
}

struct Forms {
    whole: Option<Rendered>,
    streamed: Option<Rendered>,
}

impl Ready {
    pub(crate) fn new<'a>(answers: impl IntoIterator<Item = (&'a str, Reply)>) -> Self {
        let prepared = |(holds, reply): (&str, Reply)| Prepared {
            holds: Finder::new(holds).into_owned(),
            responses: Forms::of(&reply, Protocol::Responses),
            chat: Forms::of(&reply, Protocol::Chat),
        };
        // Clients write JSON with and without spaces.
        let streamed = ["\"stream\":true", "\"stream\": true"];
        Self {
            answers: answers.into_iter().map(prepared).collect(),
            streamed: streamed.map(|text| Finder::new(text).into_owned()),
        }
    }

    /// The first answer whose text is in the body.
    pub(crate) fn answer(&self, protocol: Protocol, body: &Bytes) -> Result<Rendered, Problem> {
        let mut answers = self.answers.iter();
        let none = || Problem::new("no_answer", None, "no answer fits this request").status(404);
        let answer = answers
            .find(|answer| answer.holds.find(body).is_some())
            .ok_or_else(none)?;
        let forms = match protocol {
            Protocol::Responses => &answer.responses,
            Protocol::Chat => &answer.chat,
        };
        let streamed = self.streamed.iter().any(|text| text.find(body).is_some());
        let form = if streamed {
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
            let asked = Asked {
                protocol,
                body: &body,
                number: 0,
            };
            render(reply, &asked)
        };
        Self {
            whole: form(false),
            streamed: form(true),
        }
    }
}
