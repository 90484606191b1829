//! The parts of an item that models over the wire send, as they stand. Hidden: nobody else needs them.

use super::content::only_text;
use super::{Item, ItemKind, Place, Speaker};
use crate::items::item_cache::Fact;

impl Item {
    /// The JSON string that is all a message says: its content, or the text of its only part that
    /// has one. `None` where there is more, less, or a refusal. Found once per item.
    #[doc(hidden)]
    #[inline]
    pub fn only_text(&self) -> Option<&str> {
        let (content, raw) = (self.0.head.content, &*self.0.raw);
        if content.is_string(raw) {
            return content.token(raw);
        }
        let found = self.0.notes.only_text(|| self.find_only_text());
        Place::between(found?).token(raw)
    }

    fn find_only_text(&self) -> Option<(u32, u32)> {
        let content = self.0.head.content.token(&self.0.raw)?;
        let place = Place::of(only_text(content)?, &self.0.raw);
        (!place.is_absent()).then_some(place.ends())
    }

    /// The JSON of the content, the output and the arguments: what requests are mostly made of.
    #[doc(hidden)]
    #[inline]
    pub fn content_json(&self) -> Option<&str> {
        self.0.head.content.token(&self.0.raw)
    }

    #[doc(hidden)]
    #[inline]
    pub fn output_json(&self) -> Option<&str> {
        self.0.head.output.token(&self.0.raw)
    }

    #[doc(hidden)]
    #[inline]
    pub fn arguments_json(&self) -> Option<&str> {
        self.0.head.arguments.token(&self.0.raw)
    }

    /// The identifier, the name and the arguments of a function call as they are written, where all
    /// are texts, not empty, and the names written as they are meant.
    #[doc(hidden)]
    #[inline]
    pub fn usual_call(&self) -> Option<[&str; 3]> {
        let (head, raw) = (&self.0.head, &*self.0.raw);
        if !head.is_plain || head.kind != Some(ItemKind::FunctionCall) {
            return None;
        }
        Some([
            head.call_id.text(raw)?,
            head.name.text(raw)?,
            head.arguments.text(raw)?,
        ])
    }

    /// The identifier and the words of a function's output, likewise.
    #[doc(hidden)]
    #[inline]
    pub fn usual_output(&self) -> Option<[&str; 2]> {
        let (head, raw) = (&self.0.head, &*self.0.raw);
        if !head.is_plain || head.kind != Some(ItemKind::FunctionCallOutput) {
            return None;
        }
        Some([head.call_id.text(raw)?, head.output.text(raw)?])
    }

    /// How long the JSON is of what a message says, where that is one string.
    #[doc(hidden)]
    #[inline]
    pub fn only_text_len(&self) -> usize {
        let content = self.0.head.content;
        if content.is_string(&self.0.raw) {
            return content.len();
        }
        let found = self.0.notes.only_text(|| self.find_only_text());
        found.map_or(0, |place| Place::between(place).len())
    }

    /// How long the parts of a usual call are.
    #[doc(hidden)]
    #[inline]
    pub fn usual_call_lens(&self) -> [usize; 3] {
        let head = &self.0.head;
        [head.call_id, head.name, head.arguments].map(Place::len)
    }

    /// How long the words of a usual output are, where it answers a call.
    #[doc(hidden)]
    #[inline]
    pub fn answer_len(&self, call: &Self) -> Option<usize> {
        let ids = [call, self].map(|item| item.0.head.call_id.token(&item.0.raw));
        (ids[0] == ids[1]).then(|| self.0.head.output.len())
    }

    /// Whether an assistant speaks.
    #[doc(hidden)]
    pub fn is_of_assistant(&self) -> bool {
        self.0.head.speaker == Speaker::Assistant
    }

    /// Whether a user speaks.
    #[doc(hidden)]
    pub fn is_of_user(&self) -> bool {
        self.0.head.speaker == Speaker::User
    }

    /// Whether a tool speaks, as some people write it.
    #[doc(hidden)]
    pub fn is_of_tool(&self) -> bool {
        self.0.head.speaker == Speaker::Tool
    }

    /// Whether there is a status that is null.
    #[doc(hidden)]
    pub fn has_null_status(&self) -> bool {
        self.0.head.has_null_status
    }

    /// Whether there is a status, also a null.
    #[doc(hidden)]
    pub fn has_status(&self) -> bool {
        self.0.head.has_status
    }

    /// Whether a fact about this item holds, which `find` finds out the first time.
    #[doc(hidden)]
    pub fn fact(&self, fact: Fact, find: impl FnOnce(&Self) -> bool) -> bool {
        self.0.notes.fact(fact, || find(self))
    }
}
