//! Renders server-sent events.

use bytes::Bytes;
use serde_json::Value;

use crate::quirk::Quirk;
use crate::reply::Reply;

/// Writes events, each as the bytes of one frame.
pub(super) struct Sse<'a> {
    reply: &'a Reply,
    frames: Vec<Bytes>,
}

impl<'a> Sse<'a> {
    pub(super) fn new(reply: &'a Reply) -> Self {
        let mut frames = Vec::new();
        if reply.has(Quirk::ByteOrderMark) {
            frames.push(Bytes::from_static("\u{feff}".as_bytes()));
        }
        Self { reply, frames }
    }

    pub(super) fn event(&mut self, name: Option<&str>, data: &Value) {
        self.write(name, &data.to_string());
    }

    pub(super) fn done(&mut self) {
        self.write(None, "[DONE]");
    }

    fn write(&mut self, name: Option<&str>, data: &str) {
        let space = if self.reply.has(Quirk::NoSpace) {
            ""
        } else {
            " "
        };
        let mut text = String::with_capacity(data.len() + 64);
        if self.reply.has(Quirk::Comments) {
            text.push_str(": PROCESSING\n\n:\n\n");
        }
        if let Some(name) = name {
            text.extend(["event:", space, name, "\n"]);
        }
        text.extend(["data:", space, data, "\n\n"]);
        self.frames.push(self.with_line_ends(text).into());
    }

    fn with_line_ends(&self, text: String) -> String {
        if self.reply.has(Quirk::CrLf) {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        if self.reply.has(Quirk::NoLastBlank)
            && let Some(last) = self.frames.last_mut()
        {
            let text = last.trim_ascii_end().len();
            last.truncate(text);
        }
        self.frames
    }
}
