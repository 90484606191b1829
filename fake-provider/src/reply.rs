//! What the provider answers.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{Answer, Cut, End, Endless, ErrorForm, Usage};
use crate::quirk::Quirk;
use crate::render;

/// One answer of a script.
///
/// A constructor says what is answered, and methods change how:
///
/// ```
/// use fake_provider::{Quirk, Reply, Usage};
/// use serde_json::json;
///
/// let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1",
///                   "name": "look", "arguments": "{}"});
/// let reply = Reply::items([call])
///     .usage(Usage { input: 12, output: 3, ..Usage::default() })
///     .quirk(Quirk::ZeroToolIndex)
///     .frames(7);
/// assert_eq!(reply.chat_problem(), None);
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) answer: Answer,
    pub(crate) usage: Usage,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) pace: Option<Duration>,
    pub(crate) quirks: Vec<Quirk>,
    pub(crate) piece: usize,
    pub(crate) frame: Option<usize>,
    pub(crate) cut: Option<(usize, Cut)>,
}

impl Reply {
    fn new(answer: Answer) -> Self {
        Self {
            answer,
            usage: Usage::default(),
            headers: Vec::new(),
            delay: Duration::ZERO,
            pace: None,
            quirks: Vec::new(),
            piece: 5,
            frame: None,
            cut: None,
        }
    }

    /// Answers with these output items, in the form of the Responses API; the server writes them in
    /// the protocol it is asked in.
    pub fn items(items: impl IntoIterator<Item = Value>) -> Self {
        Self::ended(items, End::Completed)
    }

    fn ended(items: impl IntoIterator<Item = Value>, end: End) -> Self {
        Self::new(Answer::Items {
            items: items.into_iter().collect(),
            end,
        })
    }

    /// Says this.
    pub fn text(text: &str) -> Self {
        Self::items([message(json!({
            "type": "output_text", "text": text, "annotations": [],
        }))])
    }

    /// Refuses with these words.
    pub fn refusal(text: &str) -> Self {
        Self::items([message(json!({"type": "refusal", "refusal": text}))])
    }

    /// Calls a tool.
    pub fn call(call_id: &str, name: &str, arguments: &str) -> Self {
        Self::items([json!({
            "type": "function_call", "id": format!("fc_{call_id}"), "call_id": call_id,
            "name": name, "arguments": arguments, "status": "completed",
        })])
    }

    /// Fails after it has begun: `response.failed`; in Chat, an error in the stream or a 500.
    pub fn failed(code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::ended([], End::Failed { code, message })
    }

    /// Stops early, for a reason like `max_output_tokens` or `content_filter`.
    pub fn incomplete(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::ended([], End::Incomplete { reason })
    }

    /// Breaks off with an `error` event; where no stream was asked for, with a 500.
    pub fn error_event(form: ErrorForm, code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::ended(
            [],
            End::Error {
                form,
                code,
                message,
            },
        )
    }

    /// The same, after these items. For [`Reply::failed`], [`Reply::incomplete`] and
    /// [`Reply::error_event`].
    #[must_use]
    pub fn after(mut self, first: impl IntoIterator<Item = Value>) -> Self {
        if let Answer::Items { items, .. } = &mut self.answer {
            items.splice(0..0, first);
        }
        self
    }

    /// Answers with an HTTP status and a JSON body.
    pub fn status(status: u16, body: Value) -> Self {
        Self::new(Answer::Raw {
            status,
            content_type: "application/json".to_owned(),
            bytes: body.to_string().into(),
        })
    }

    /// Answers with 200 and these bytes.
    pub fn raw(bytes: impl Into<Bytes>, content_type: &str) -> Self {
        Self::new(Answer::Raw {
            status: 200,
            content_type: content_type.to_owned(),
            bytes: bytes.into(),
        })
    }

    /// Sends headers, then nothing, and never closes.
    pub fn hang() -> Self {
        Self::items([]).hang_after(0)
    }

    /// Never stops sending: pieces of text in a stream, else a body without an end.
    pub fn endless() -> Self {
        Self::new(Answer::Endless(Endless::Events))
    }

    /// Never stops sending, and never ends the line.
    pub fn endless_line() -> Self {
        Self::new(Answer::Endless(Endless::Line))
    }

    /// Closes the connection without an answer.
    pub fn disconnect() -> Self {
        Self::new(Answer::Disconnect)
    }

    /// The same, with its cost.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same, with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, after a time.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same, with a time between the pieces.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// The same, with a quirk of some server.
    #[must_use]
    pub fn quirk(mut self, quirk: Quirk) -> Self {
        self.quirks.push(quirk);
        self
    }

    /// The same, with this many characters in a piece of text (5 otherwise).
    #[must_use]
    pub fn pieces(mut self, characters: usize) -> Self {
        self.piece = characters.max(1);
        self
    }

    /// The same, sent this many bytes at a time, wherever that cuts: also within a character or an
    /// event. Otherwise each event is sent by itself.
    #[must_use]
    pub fn frames(mut self, bytes: usize) -> Self {
        self.frame = Some(bytes.max(1));
        self
    }

    /// The same, but the connection is closed after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::Close));
        self
    }

    /// The same, but the body ends after this many bytes, as if that were all.
    #[must_use]
    pub fn end_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::End));
        self
    }

    /// The same, but nothing follows this many bytes of the body, and it is never closed.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::Hang));
        self
    }

    /// Why Chat Completions cannot carry this answer, or not so that a client could tell the items
    /// apart again. `None` where it can. Asked for it nevertheless, the server answers with 501.
    pub fn chat_problem(&self) -> Option<String> {
        match &self.answer {
            Answer::Items { items, .. } => render::chat_problem(items),
            _ => None,
        }
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

fn message(part: Value) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
           "content": [part]})
}
