//! Reads the chunks of a streamed completion.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::Value;
use switchboard_core::ModelResponse;
use switchboard_core::model::ModelEvent;

use super::answer::Reply;
use super::chunk_template::ChunkTemplate;
use super::completion_fields::{Call, Completion};
use crate::wire::answer_stream::EventReader;
use crate::wire::lenient_json::{field, no_object, non_empty, parse, raw, raw_usage, text};
use crate::wire::model_error::ModelError;
use crate::wire::server_errors::{broke_off, check_error};

/// Builds an answer from its chunks.
pub(in crate::wire) struct ChunkReader {
    /// The model's name.
    model: Arc<str>,
    answer: Reply<'static>,
    template: Option<ChunkTemplate>,
    /// The names that deltas give the message and the reasoning.
    message: Arc<str>,
    reasoning: Arc<str>,
    /// Set if the answer keeps the usage as the server sent it.
    keeps_raw_usage: bool,
    raw_usage: Option<Box<Value>>,
}

impl EventReader for ChunkReader {
    fn read(
        &mut self,
        data: Arc<str>,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError> {
        let (reasoning_start, text_start) = (self.answer.reasoning.len(), self.answer.text.len());
        let mut calls = Vec::new();
        let template = self.template.as_ref();
        if let Some(text) = template.and_then(|template| template.match_text(&data)) {
            add(&mut self.answer.text, &text);
        } else if let Some(chunk) = parse(&data) {
            self.add_chunk(&data, chunk, &mut calls)?;
        } else {
            return no_object(&data).map(|()| None);
        }
        let reasoning = &self.answer.reasoning[reasoning_start..];
        if !reasoning.is_empty() {
            ready.push_back(ModelEvent::ReasoningDelta {
                item: self.reasoning.clone(),
                text: reasoning.to_owned(),
            });
        }
        let text = &self.answer.text[text_start..];
        if !text.is_empty() {
            ready.push_back(ModelEvent::text_delta(self.message.clone(), text));
        }
        ready.extend(calls);
        ready.push_back(ModelEvent::Raw(raw(data)?));
        Ok(None)
    }

    fn finish(&mut self, is_done: bool) -> Result<ModelResponse, ModelError> {
        let answer = std::mem::take(&mut self.answer);
        let is_empty =
            answer.text.is_empty() && answer.refusal.is_empty() && answer.calls.is_empty();
        if answer.finish_reason.is_none() && (!is_done || is_empty) {
            return Err(broke_off());
        }
        let mut answer = answer.into_response(&self.model)?;
        answer.raw_usage = self.raw_usage.take();
        Ok(answer)
    }

    fn is_complete(&self) -> bool {
        self.answer.finish_reason.is_some()
    }
}

impl ChunkReader {
    pub(super) fn new(model: Arc<str>, keeps_raw_usage: bool) -> Self {
        Self {
            model,
            answer: Reply::default(),
            template: None,
            message: "message".into(),
            reasoning: "reasoning".into(),
            keeps_raw_usage,
            raw_usage: None,
        }
    }

    fn add_chunk(
        &mut self,
        data: &Arc<str>,
        chunk: Completion<'_>,
        calls: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        check_error(chunk.error)?;
        if self.answer.id.is_empty() {
            add(&mut self.answer.id, &text(chunk.id));
        }
        self.answer.usage = chunk.usage().unwrap_or(self.answer.usage);
        if self.keeps_raw_usage {
            self.raw_usage = raw_usage(field(data, "usage")).or(self.raw_usage.take());
        }
        let has_others = chunk.usage.is_some() || chunk.error.is_some();
        let choices = chunk.into_choices();
        let is_only_choice = choices.len() == 1 && !has_others;
        // One choice was requested, which has the index 0.
        for choice in choices.filter(|choice| choice.index() == 0) {
            check_error(choice.error)?;
            if let Some(reason) = non_empty(choice.finish_reason) {
                self.answer.finish_reason = Some(reason.into_owned().into());
            }
            let delta = choice.delta.unwrap_or_default();
            let is_only_delta = choice.finish_reason.is_none() && choice.error.is_none();
            if is_only_choice
                && is_only_delta
                && let Some(text) = delta.only_text()
            {
                self.template = Some(ChunkTemplate::new(data, text));
            }
            add(&mut self.answer.text, &delta.text());
            add(&mut self.answer.refusal, &text(delta.refusal));
            add(&mut self.answer.reasoning, &delta.reasoning());
            for call in delta.into_calls() {
                calls.extend(self.add_call(&call));
            }
        }
        Ok(())
    }

    /// Adds a piece of a call and returns the delta of its arguments. Servers number calls from 0,
    /// number all of them 0, or do not number them.
    fn add_call(&mut self, part: &Call<'_>) -> Option<ModelEvent> {
        let (index, id, name, more) = (part.index, &*part.id, &*part.name, &*part.arguments);
        let calls = &mut self.answer.calls;
        let known = match index {
            Some(_) => calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => calls.iter().rposition(|call| call.id == id),
            None => calls.len().checked_sub(1),
        };
        let is_numbered = index.is_some() || !id.is_empty();
        let known = known.filter(|at| !starts_new_call(&calls[*at], id, name, more, is_numbered));
        let at = known.unwrap_or_else(|| {
            calls.push(Call {
                index,
                ..Call::default()
            });
            calls.len() - 1
        });
        let call = &mut calls[at];
        if call.id.is_empty() {
            add(&mut call.id, id);
        }
        // Some servers repeat the name, others send it in pieces.
        if call.name != name && call.arguments.is_empty() {
            add(&mut call.name, name);
        }
        add(&mut call.arguments, more);
        (!more.is_empty()).then(|| ModelEvent::ArgumentsDelta {
            item: format!("call_{at}").into(),
            call_id: (*call.id).into(),
            tool: (*call.name).into(),
            text: more.to_owned(),
        })
    }
}

/// Appends a piece to a text.
fn add(text: &mut Cow<'static, str>, more: &str) {
    if !more.is_empty() {
        text.to_mut().push_str(more);
    }
}

/// Returns `true` if a piece belongs to a new call and not to `call`, the last one it could belong to.
fn starts_new_call(call: &Call<'_>, id: &str, name: &str, more: &str, is_numbered: bool) -> bool {
    if !id.is_empty() && !call.id.is_empty() {
        return call.id != id;
    }
    if name.is_empty() || call.name.is_empty() {
        return false;
    }
    let is_other = call.name != name;
    if is_numbered {
        // Only another call can follow complete arguments.
        is_object(&call.arguments) && (is_other || !more.is_empty())
    } else {
        // A name after arguments begins another call, and so does another name.
        is_other || !call.arguments.is_empty()
    }
}

fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(json).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The names and arguments of the calls that these pieces form.
    fn calls(pieces: &[Call<'static>]) -> Vec<(String, String)> {
        let mut reader = ChunkReader::new("m".into(), false);
        for piece in pieces {
            reader.add_call(piece);
        }
        let calls = reader.answer.calls.into_iter();
        let owned = |call: Call<'_>| (call.name.into_owned(), call.arguments.into_owned());
        calls.map(owned).collect()
    }

    fn piece(
        index: Option<u64>,
        id: &'static str,
        name: &'static str,
        arguments: &'static str,
    ) -> Call<'static> {
        Call {
            index,
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn calls_are_separated_however_they_are_numbered() {
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
    fn a_name_comes_in_pieces_or_repeatedly() {
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

    /// The events of these chunks and of the answer they form.
    fn events(chunks: &[String]) -> Vec<Result<String, String>> {
        // The same identifiers each time for calls that have none.
        fastrand::seed(7);
        let (mut reader, mut ready) = (ChunkReader::new("m".into(), false), VecDeque::new());
        let mut events = Vec::new();
        for chunk in chunks {
            let read = reader.read(chunk.as_str().into(), &mut ready);
            events.extend(read.err().map(|error| Err(error.to_string())));
        }
        let answer = reader.finish(true);
        events.extend(ready.iter().map(|event| match event {
            ModelEvent::Raw(_) => Ok("raw".to_owned()),
            event => Ok(format!("{event:?}")),
        }));
        events.push(
            answer
                .map(|answer| format!("{answer:?}"))
                .map_err(|error| error.to_string()),
        );
        events
    }

    proptest! {
        /// Chunks of two shapes with arbitrary texts; a duplicate field forces the lenient reader.
        #[test]
        fn matching_a_template_is_the_same_as_parsing(
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
                let chunk = |(shape, text): &(usize, String)| {
                    let (id, before, after, finish, last) = &shapes[*shape];
                    format!(
                        r#"{{{first}"id":{id},"choices":[{{"index":0,"delta":{{{before}"content":{text}{after}}},"finish_reason":{finish}}}]{last}}}"#
                    )
                };
                chunks.iter().map(chunk).collect()
            };
            prop_assert_eq!(events(&chunks("")), events(&chunks(r#""id":0,"#)));
        }

        /// A duplicate field forces the lenient reader.
        #[test]
        fn both_readers_agree_on_chunks(
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
            prop_assert_eq!(events(&chunks("")), events(&chunks(r#""id":0,"#)));
        }
    }
}
