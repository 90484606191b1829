//! The messages that most of a conversation consists of: items whose parts can be taken as they stand.

use switchboard_core::__private::Fact;
use switchboard_core::{Item, ItemKind};

use crate::wire::history::is_assistants;
use crate::wire::lenient::has_halves;

/// What JSON is written to.
pub(super) trait Sink {
    fn put(&mut self, json: &str);
}

/// In place, so that what is always the same is written in a few large moves.
impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, json: &str) {
        self.extend_from_slice(json.as_bytes());
    }
}

/// Counts the bytes and forgets them.
pub(super) struct Length(pub(super) usize);

impl Sink for Length {
    #[inline]
    fn put(&mut self, json: &str) {
        self.0 += json.len();
    }
}

/// Writes the message that an item is; with a call the output too, which is the next item. How many
/// items these are, one message each, with a comma between them. None where there is more to them.
///
/// Nothing may be pending that an item could belong to.
#[inline]
pub(super) fn write(out: &mut impl Sink, item: &Item, next: Option<&Item>) -> usize {
    match item.kind() {
        ItemKind::FunctionCall => {
            let Some(answered) = Answered::of(item, next) else {
                return 0;
            };
            out.put(r#"{"role":"assistant","content":null"#);
            answered.write(out);
            2
        }
        ItemKind::Message => {
            let (beginning, text) = if item.is_of_user() {
                let text = item.content_json().filter(|text| text.starts_with('"'));
                (r#"{"role":"user","content":"#, text)
            } else if is_assistants(item) && next.is_none_or(begins_another) {
                (r#"{"role":"assistant","content":"#, item.only_text())
            } else {
                return 0;
            };
            let Some(text) = text.filter(|_| is_sound(item)) else {
                return 0;
            };
            out.put(beginning);
            out.put(text);
            out.put("}");
            1
        }
        _ => 0,
    }
}

/// [`write`] for bytes, as a payload takes it.
pub(super) fn write_bytes(out: &mut Vec<u8>, item: &Item, next: Option<&Item>) -> usize {
    write(out, item, next)
}

/// A call and the output right after it, both written as usual; parts are JSON.
pub(super) struct Answered<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
    output: &'a str,
}

impl<'a> Answered<'a> {
    #[inline]
    pub(super) fn of(call: &'a Item, next: Option<&'a Item>) -> Option<Self> {
        let [id, name, arguments] = call.usual_call()?;
        let next = next?;
        let [answered, output] = next.usual_output()?;
        (answered == id && is_sound(call) && is_sound(next)).then_some(Self {
            id,
            name,
            arguments,
            output,
        })
    }

    /// Writes the rest of a message that calls, and the message of what came of it.
    #[inline]
    pub(super) fn write(&self, out: &mut impl Sink) {
        out.put(r#","tool_calls":[{"id":"#);
        out.put(self.id);
        out.put(r#","type":"function","function":{"name":"#);
        out.put(self.name);
        out.put(r#","arguments":"#);
        out.put(self.arguments);
        out.put(r#"}}]},{"role":"tool","tool_call_id":"#);
        out.put(self.id);
        out.put(r#","content":"#);
        out.put(self.output);
        out.put("}");
    }
}

/// Whether no half of a character is in an item. Items mostly have none, and say so once.
#[inline]
pub(super) fn is_sound(item: &Item) -> bool {
    item.fact(Fact::IsSound, |item| !has_halves(item.as_json()))
}

/// Whether an item begins another message than the one before it, whoever speaks.
fn begins_another(item: &Item) -> bool {
    item.kind() == ItemKind::Message && !item.is_of_tool()
}
