//! What comes back piece by piece.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use switchboard_core::ModelEvent;

use super::ChatModel;
use super::answer::{Call, Said, add, arguments, failed, failure, text, usage};
use super::completion::Completion;
use crate::wire::BROKE_OFF;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::lenient::{no_object, raw, value};
use crate::wire::stream_reader::Reader;

/// An answer under way.
pub(super) struct Answering {
    model: ChatModel,
    said: Said<'static>,
    /// What chunks of words look like here.
    words: Option<Words>,
}

impl Answering {
    pub(super) fn new(model: ChatModel) -> Self {
        Self {
            model,
            said: Said::default(),
            words: None,
        }
    }
}

/// A chunk that says some words and nothing else. Most chunks after it differ from it in their words
/// alone, and need not be read: such a chunk takes 700 instructions instead of 5,200.
struct Words {
    chunk: Arc<str>,
    /// Where the words are, with their quotes.
    place: Range<usize>,
}

impl Words {
    /// A chunk and the words in it.
    fn of(chunk: &Arc<str>, words: &str) -> Self {
        let start = words.as_ptr() as usize - chunk.as_ptr() as usize;
        Self {
            chunk: chunk.clone(),
            place: start - 1..start + words.len() + 1,
        }
    }

    /// The words of another chunk, if that is all that is different there.
    fn in_other<'c>(&self, chunk: &'c str) -> Option<Cow<'c, str>> {
        let before = self.chunk.get(..self.place.start)?;
        let after = self.chunk.get(self.place.end..)?;
        let json = chunk.strip_prefix(before)?.strip_suffix(after)?;
        let inside = json.strip_prefix('"')?.strip_suffix('"')?;
        let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
        if inside.bytes().all(is_plain) {
            Some(Cow::Borrowed(inside))
        } else {
            serde_json::from_str(json).ok().map(Cow::Owned)
        }
    }
}

impl Reader for Answering {
    fn take(
        &mut self,
        data: Arc<str>,
        _head: &Head,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        let before = self.said.text.len();
        let words = self.words.as_ref().and_then(|words| words.in_other(&data));
        if let Some(words) = words {
            add(&mut self.said.text, &words);
        } else if let Some(chunk) = Completion::of(&data) {
            if let Some(words) = chunk.only_words() {
                self.words = Some(Words::of(&data, words));
            }
            self.said.add_chunk(chunk);
        } else if let Some(chunk) = value(&data).filter(Value::is_object) {
            self.add_odd(&chunk)?;
        } else {
            return no_object(&data);
        }
        if self.said.text.len() > before {
            let more = self.said.text[before..].to_owned();
            ready.push_back(ModelEvent::text_delta("message", more));
        }
        ready.push_back(ModelEvent::Raw(raw(data)?));
        Ok(())
    }

    /// The answer has ended, if the server said why it stopped.
    fn end(
        &mut self,
        is_done: bool,
        head: &Head,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        let said = std::mem::take(&mut self.said);
        if said.finish.is_none() && (!is_done || said.is_nothing()) {
            return Err(ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF));
        }
        let answer = said.settle(&self.model, head)?;
        ready.push_back(ModelEvent::Completed(answer));
        Ok(())
    }

    fn failed(&self, said: &Value) -> ModelError {
        failure(&self.model, said)
    }

    /// All that can still come is what the answer cost.
    fn is_all_there(&self) -> bool {
        self.said.finish.is_some()
    }
}

impl Answering {
    /// Takes a chunk that is not of the usual form.
    fn add_odd(&mut self, chunk: &Value) -> Result<(), ModelError> {
        failed(&self.model, chunk)?;
        if self.said.id.is_empty() {
            self.said.id = text(&chunk["id"]).to_owned().into();
        }
        if chunk["usage"].is_object() {
            self.said.usage = Some(usage(&chunk["usage"]));
        }
        let choices = chunk["choices"].as_array().into_iter().flatten();
        // One answer was asked for; servers that number it otherwise are not understood.
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or_default() == 0) {
            failed(&self.model, choice)?;
            let delta = &choice["delta"];
            self.said.add(delta);
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                self.said.add_odd_call(call);
            }
            // How the protocol did it before there were several calls.
            if delta["tool_calls"].is_null() && delta["function_call"].is_object() {
                let call = json!({"index": 0, "function": delta["function_call"]});
                self.said.add_odd_call(&call);
            }
            let finish = text(&choice["finish_reason"]);
            if !finish.is_empty() {
                self.said.finish = Some(finish.to_owned().into());
            }
        }
        Ok(())
    }
}

impl Said<'static> {
    fn add_chunk(&mut self, chunk: Completion<'_>) {
        if self.id.is_empty() {
            add(&mut self.id, chunk.id.as_deref().unwrap_or_default());
        }
        self.usage = chunk.usage.or(self.usage);
        let Some(choice) = chunk.choice() else {
            return;
        };
        let delta = choice.delta.unwrap_or_default();
        let reasoning = delta.reasoning_content.as_deref();
        let reasoning = reasoning.or(delta.reasoning.as_deref());
        for (said, more) in [
            (&mut self.text, delta.content.as_deref()),
            (&mut self.refusal, delta.refusal.as_deref()),
            (&mut self.reasoning, reasoning),
        ] {
            add(said, more.unwrap_or_default());
        }
        for call in delta.tool_calls.iter().flatten() {
            self.add_call(call.index, call.id(), call.name(), call.arguments());
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish.into_owned().into());
        }
    }

    fn is_nothing(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    fn add_odd_call(&mut self, piece: &Value) {
        let function = &piece["function"];
        let (id, name) = (text(&piece["id"]), text(&function["name"]));
        let more = arguments(&function["arguments"]);
        self.add_call(piece["index"].as_u64(), id, name, &more);
    }

    /// Takes a piece of a call. Servers number calls from 0, or all with 0, or not at all.
    fn add_call(&mut self, index: Option<u64>, id: &str, name: &str, more: &str) {
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None => self.calls.len().checked_sub(1),
        };
        let is_numbered = index.is_some() || !id.is_empty();
        let at = match known {
            Some(at) if !self.calls[at].is_over(id, name, more, is_numbered) => at,
            _ => {
                self.calls.push(Call {
                    index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            add(&mut call.id, id);
        }
        // Some servers repeat the name, others tell it in pieces.
        if call.name != name && call.arguments.is_empty() {
            add(&mut call.name, name);
        }
        add(&mut call.arguments, more);
    }
}

impl Call<'_> {
    /// Whether a piece is not of this call but of another.
    fn is_over(&self, id: &str, name: &str, more: &str, is_numbered: bool) -> bool {
        if !id.is_empty() && !self.id.is_empty() {
            return self.id != id;
        }
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        let is_other = self.name != name;
        match is_numbered {
            // Nothing but another call can follow whole arguments.
            true => is_object(&self.arguments) && (is_other || !more.is_empty()),
            // A name after arguments begins another call, and so does another name.
            false => is_other || !self.arguments.is_empty(),
        }
    }
}

fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(json).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn calls(pieces: &[Value]) -> Vec<(String, String)> {
        let mut said = Said::default();
        for piece in pieces {
            said.add_odd_call(piece);
        }
        let calls = said.calls.into_iter();
        let owned = |call: Call<'_>| (call.name.into_owned(), call.arguments.into_owned());
        calls.map(owned).collect()
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn calls_are_told_apart_however_they_are_numbered() {
        let two = [("t", "{\"x\":1}"), ("u", "{}")].map(|(n, a)| (n.to_owned(), a.to_owned()));
        for (index, ids) in [
            (Some(0), ["", ""]),
            (Some(0), ["a", "b"]),
            (None, ["a", "b"]),
            (None, ["", ""]),
        ] {
            let pieces = [
                piece(index, ids[0], "t", "{\"x\":"),
                piece(index, ids[0], "", "1}"),
                piece(index, ids[1], "u", "{}"),
            ];
            assert_eq!(calls(&pieces), two, "{index:?} {ids:?}");
        }
        let same = [piece(Some(0), "", "t", "{}"), piece(Some(0), "", "t", "{}")];
        assert_eq!(calls(&same).len(), 2);
        let bare = [piece(None, "", "t", ""), piece(None, "", "u", "")];
        assert_eq!(calls(&bare).len(), 2);
    }

    #[test]
    fn a_name_comes_in_pieces_or_again_and_again() {
        let expected = [("get_weather".to_owned(), "{\"x\":1}".to_owned())];
        let parts = [
            piece(Some(0), "a", "get_", ""),
            piece(Some(0), "", "weather", "{\"x\":"),
            piece(Some(0), "", "", "1}"),
        ];
        assert_eq!(calls(&parts), expected);
        let again = [
            piece(Some(0), "a", "get_weather", ""),
            piece(Some(0), "a", "get_weather", "{\"x\":"),
            piece(Some(0), "a", "get_weather", "1}"),
            piece(Some(0), "a", "get_weather", ""),
        ];
        assert_eq!(calls(&again), expected);
    }

    /// What is told of some chunks, and the answer they come to.
    fn told(chunks: &[String]) -> Vec<Result<String, String>> {
        static MODEL: LazyLock<ChatModel> = LazyLock::new(|| {
            let client = Endpoint::at("http://localhost:1/v1").connect().unwrap();
            ChatModel::new(&client, "m")
        });
        // Calls without an identifier of their own get the same ones each time.
        fastrand::seed(7);
        let (mut answering, mut ready) = (Answering::new(MODEL.clone()), VecDeque::new());
        let mut all = Vec::new();
        for chunk in chunks {
            let taken = answering.take(chunk.as_str().into(), &Head::default(), &mut ready);
            all.extend(taken.err().map(|error| Err(error.to_string())));
        }
        let ended = answering.end(true, &Head::default(), &mut ready);
        all.extend(ended.err().map(|error| Err(error.to_string())));
        all.extend(ready.iter().map(|event| match event {
            ModelEvent::Raw(_) => Ok("raw".to_owned()),
            event => Ok(format!("{event:?}")),
        }));
        all
    }

    #[test]
    fn chunks_that_differ_in_their_words_alone_are_known() {
        let chunk =
            |words: &str| format!(r#"{{"id":"c","choices":[{{"delta":{{"content":{words}}}}}]}}"#);
        let first: Arc<str> = chunk(r#""a""#).into();
        let words = Words::of(
            &first,
            Completion::of(&first).unwrap().only_words().unwrap(),
        );
        let other = |json: &str| words.in_other(&chunk(json)).map(Cow::into_owned);
        assert_eq!(other(r#""""#).as_deref(), Some(""));
        assert_eq!(other(r#""é\n\"\\ b""#).as_deref(), Some("é\n\"\\ b"));
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
            assert_eq!(other(json), None, "{json}");
        }
        assert_eq!(words.in_other(&first[..first.len() - 1]), None);
        for more in [
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{}}"#,
        ] {
            assert_eq!(Completion::of(more).unwrap().only_words(), None, "{more}");
        }
    }

    proptest! {
        /// Chunks of two shapes, whose words may look like anything.
        #[test]
        fn known_chunks_mean_what_they_mean_to_the_lenient_reader(
            shapes in proptest::collection::vec(
                (
                    "(\"[cd]?\"|null)",
                    "(|\"role\":\"assistant\",|\"content\":null,|\"content\":\"c\",)",
                    "(|,\"content\":null|,\"refusal\":(\"no\"|null))",
                    "(null|null|null|\"stop\"|\"\")",
                    "(|,\"usage\":null|,\"error\":(false|null)| |,\"usage\":\\{\"prompt_tokens\":7\\})",
                ),
                2,
            ),
            chunks in proptest::collection::vec(
                (
                    0usize..2,
                    prop_oneof![
                        6 => "\"(|a|b c|\u{e9}|\\\\n|\\\\\\\\|\\\\\"|\\\\u00e9|\\\\ud83d\\\\ude00)\"",
                        1 => "null|7|\"\\\\ud800\"|\"a\" |\"a\",\"(content|refusal|reasoning)\":\"b\"|\"\"\\},\"error\":\\{\"message\":\"no\"",
                        1 => "\"a\",\"tool_calls\":\\[\\{\"index\":0,\"function\":\\{\"name\":\"n\",\"arguments\":\"1\"\\}\\}\\],\"x\":\"\"",
                        1 => "\"a\"\\},\"finish_reason\":\"length\",\"x\":\\{\"content\":\"b\"|\"a\\\\\"|\"a",
                    ],
                ),
                0..9,
            ),
        ) {
            let chunks = |first: &str| -> Vec<String> {
                let chunk = |(shape, words): &(usize, String)| {
                    let (id, before, after, finish, last) = &shapes[*shape];
                    format!(
                        r#"{{{first}"id":{id},"choices":[{{"index":0,"delta":{{{before}"content":{words}{after}}},"finish_reason":{finish}}}]{last}}}"#
                    )
                };
                chunks.iter().map(chunk).collect()
            };
            prop_assert_eq!(told(&chunks("")), told(&chunks(r#""id":0,"#)));
        }

        /// A field that is there twice is not usual; the rest of a chunk is the same.
        #[test]
        fn usual_chunks_mean_what_they_mean_to_the_lenient_reader(
            chunks in proptest::collection::vec(
                (
                    "(0|1|null)",
                    "(|\"content\":(null|\"\"|\"b c\"|\"a\\\\n\"|\"\\\\ud800\"|7),|\"refusal\":\"no\",|\"reasoning\":\"hm\",)",
                    "(null|\\[\\{\"index\":(0|1),\"id\":\"(i|j)\",\"function\":\\{\"name\":\"n\",\"arguments\":(\"\\{\\}\"|\\{\\})\\}\\}\\])",
                    "(null|\"stop\"|\"\")",
                    "(null|\\{\"prompt_tokens\":(7|\"7\")\\}|7)",
                ),
                0..6,
            ),
        ) {
            let chunks = |first: &str| -> Vec<String> {
                let chunk = |(index, words, calls, finish, usage): &(String, String, String, String, String)| {
                    format!(
                        r#"{{{first}"id":"c","choices":[{{"index":{index},"delta":{{{words}"tool_calls":{calls}}},"finish_reason":{finish}}}],"usage":{usage}}}"#
                    )
                };
                chunks.iter().map(chunk).collect()
            };
            prop_assert_eq!(told(&chunks("")), told(&chunks(r#""id":0,"#)));
        }
    }
}
