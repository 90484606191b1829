//! The replies of a script.

pub(crate) mod content;

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::quirk::Quirk;
use crate::render;
use content::{AUDIO, Content, Cut, Ending, Endless};
pub use content::{ErrorForm, Usage};

/// One reply of a script.
///
/// A constructor sets the content, and methods change how it is sent:
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
    pub(crate) content: Content,
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
    fn new(content: Content) -> Self {
        Self {
            content,
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

    /// Replies with output items of the Responses API. The server converts them to the protocol of the
    /// request.
    pub fn items(items: impl IntoIterator<Item = Value>) -> Self {
        Self::ended(items, Ending::Completed)
    }

    fn ended(items: impl IntoIterator<Item = Value>, end: Ending) -> Self {
        Self::new(Content::Items {
            items: items.into_iter().collect(),
            end,
        })
    }

    /// Replies with a text message.
    pub fn text(text: &str) -> Self {
        Self::items([message(json!({
            "type": "output_text", "text": text, "annotations": [],
        }))])
    }

    /// Replies with a refusal.
    pub fn refusal(text: &str) -> Self {
        Self::items([message(json!({"type": "refusal", "refusal": text}))])
    }

    /// Replies with a tool call.
    pub fn call(call_id: &str, name: &str, arguments: &str) -> Self {
        Self::items([json!({
            "type": "function_call", "id": format!("fc_{call_id}"), "call_id": call_id,
            "name": name, "arguments": arguments, "status": "completed",
        })])
    }

    /// Fails after the response has started: `response.failed`; in Chat, an error in the stream or a 500.
    pub fn failed(code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::ended([], Ending::Failed { code, message })
    }

    /// Ends incomplete, with a reason like `max_output_tokens` or `content_filter`.
    pub fn incomplete(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::ended([], Ending::Incomplete { reason })
    }

    /// Ends with an `error` event, or replies with a 500 if the request is not streamed.
    pub fn error_event(form: ErrorForm, code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::ended(
            [],
            Ending::Error {
                form,
                code,
                message,
            },
        )
    }

    /// Sends these items first. For [`Reply::failed`], [`Reply::incomplete`] and
    /// [`Reply::error_event`].
    #[must_use]
    pub fn after(mut self, first: impl IntoIterator<Item = Value>) -> Self {
        if let Content::Items { items, .. } = &mut self.content {
            items.splice(0..0, first);
        }
        self
    }

    /// Replies with an HTTP status and a JSON body.
    pub fn status(status: u16, body: Value) -> Self {
        Self::new(Content::Raw {
            status,
            content_type: "application/json".to_owned(),
            bytes: body.to_string().into(),
        })
    }

    /// Replies with status 200 and these bytes.
    pub fn raw(bytes: impl Into<Bytes>, content_type: &str) -> Self {
        Self::new(Content::Raw {
            status: 200,
            content_type: content_type.to_owned(),
            bytes: bytes.into(),
        })
    }

    /// Changes the status of a reply of bytes or JSON.
    pub fn with_status(mut self, code: u16) -> Self {
        if let Content::Raw { status, .. } = &mut self.content {
            *status = code;
        }
        self
    }

    /// Replies to `/audio/speech` with these bytes, in frames of 4,800 bytes unless [`Reply::frames`] sets
    /// another size.
    pub fn audio(bytes: impl Into<Bytes>) -> Self {
        Self::raw(bytes, AUDIO).frames(4800)
    }

    /// Replies to `/audio/transcriptions` with this text.
    pub fn transcript(text: &str) -> Self {
        Self::status(200, json!({"text": text}))
    }

    /// Sends headers, then nothing, and never closes the connection.
    pub fn hang() -> Self {
        Self::items([]).hang_after(0)
    }

    /// Never stops sending: text deltas in a stream, otherwise an endless body.
    pub fn endless() -> Self {
        Self::new(Content::Endless(Endless::Events))
    }

    /// Never stops sending one line.
    pub fn endless_line() -> Self {
        Self::new(Content::Endless(Endless::Line))
    }

    /// Closes the connection without a response.
    pub fn disconnect() -> Self {
        Self::new(Content::Disconnect)
    }

    /// Sets the token usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the response.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits between frames.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Adds a quirk of a compatible server.
    #[must_use]
    pub fn quirk(mut self, quirk: Quirk) -> Self {
        self.quirks.push(quirk);
        self
    }

    /// Sets the number of characters in a text delta. The default is 5.
    #[must_use]
    pub fn pieces(mut self, characters: usize) -> Self {
        self.piece = characters.max(1);
        self
    }

    /// Sends the body in frames of this many bytes, which may split events and characters. By default
    /// each event is a frame.
    #[must_use]
    pub fn frames(mut self, bytes: usize) -> Self {
        self.frame = Some(bytes.max(1));
        self
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::Close));
        self
    }

    /// Ends the body after this many bytes, as if it were complete.
    #[must_use]
    pub fn end_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::End));
        self
    }

    /// Sends nothing after this many bytes of the body, and never closes the connection.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Cut::Hang));
        self
    }

    /// The reason why Chat Completions cannot carry this reply in a way that lets a client restore the
    /// items, or `None` if it can. If it cannot, the server replies with 501.
    pub fn chat_problem(&self) -> Option<String> {
        match &self.content {
            Content::Items { items, .. } => render::chat_problem(items),
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
