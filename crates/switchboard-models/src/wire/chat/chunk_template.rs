//! A fast path for chunks that differ from an earlier chunk in their text alone.
//!
//! Matching such a chunk instead of parsing it saves a quarter of the CPU time of a streamed run:
//! `chat_streamed_20_x1` takes 1.44 times that of the bare client, and 1.92 times without it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A chunk whose only content is text.
pub(super) struct ChunkTemplate {
    chunk: Arc<str>,
    /// The position of the text, with its quotes.
    text: Range<usize>,
}

impl ChunkTemplate {
    /// A template from a chunk and its text, which must be a slice of the chunk.
    pub(super) fn new(chunk: &Arc<str>, text: &str) -> Self {
        let start = text.as_ptr() as usize - chunk.as_ptr() as usize;
        Self {
            chunk: chunk.clone(),
            text: start - 1..start + text.len() + 1,
        }
    }

    /// The text of another chunk, if the chunks do not differ otherwise.
    pub(super) fn match_text<'c>(&self, chunk: &'c str) -> Option<Cow<'c, str>> {
        let json = chunk
            .strip_prefix(&self.chunk[..self.text.start])?
            .strip_suffix(&self.chunk[self.text.end..])?;
        let inside = json.strip_prefix('"')?.strip_suffix('"')?;
        let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
        if inside.bytes().all(is_plain) {
            Some(Cow::Borrowed(inside))
        } else {
            serde_json::from_str(json).ok().map(Cow::Owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chunks_that_differ_in_their_text_match() {
        let chunk =
            |text: &str| format!(r#"{{"id":"c","choices":[{{"delta":{{"content":{text}}}}}]}}"#);
        let first: Arc<str> = chunk(r#""a""#).into();
        let start = first.find(r#""a""#).unwrap() + 1;
        let template = ChunkTemplate::new(&first, &first[start..=start]);
        let matched = |json: &str| template.match_text(&chunk(json)).map(Cow::into_owned);
        assert_eq!(matched(r#""""#).as_deref(), Some(""));
        assert_eq!(matched(r#""é\n\"\\ b""#).as_deref(), Some("é\n\"\\ b"));
        for json in [
            "null",
            "7",
            "\"",
            r#""\""#,
            r#""\ud800""#,
            "\"\n\"",
            r#""a","refusal":"no""#,
            r#""a","content":"b""#,
            r#" "a""#,
        ] {
            assert_eq!(matched(json), None, "{json}");
        }
        assert_eq!(template.match_text(&first[..first.len() - 1]), None);
    }
}
