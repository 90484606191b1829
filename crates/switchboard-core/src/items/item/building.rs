//! Making an item.

use super::{Inner, Item};
use crate::items::head::{Field, Head, Place, is_plain};
use crate::json;

/// An item under way. The head is made along the way: reading back what was just written would be
/// half the cost of a handoff. Not part of the public API.
#[derive(Debug)]
pub struct Building {
    raw: String,
    head: Head,
    /// The only text, where it is known already.
    only_text: Place,
}

impl Building {
    pub(super) fn of(size: usize) -> Self {
        Self {
            raw: String::with_capacity(size + 2),
            head: Head::new(),
            only_text: Place::default(),
        }
    }

    /// Adds a field that is a text.
    ///
    /// The name is written in line, where it is known when this is compiled: half of the cost.
    #[inline(always)]
    pub fn text(&mut self, name: &str, value: &str) {
        self.begin(name);
        self.quoted(Field::named(name.as_bytes()), value);
    }

    /// Adds a field whose value `write` writes, which must be JSON and no null.
    #[inline]
    pub fn json(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.begin(name);
        let start = self.raw.len();
        write(&mut self.raw);
        self.written(Field::named(name.as_bytes()), start);
    }

    /// Writes the name of a field.
    #[inline(always)]
    fn begin(&mut self, name: &str) {
        let raw = &mut self.raw;
        raw.push_str(if raw.is_empty() { "{\"" } else { ",\"" });
        raw.push_str(name);
        raw.push_str("\":");
    }

    fn quoted(&mut self, field: Field, value: &str) {
        let start = self.raw.len();
        json::quote_into(&mut self.raw, value);
        let place = start..self.raw.len();
        // What is written as it is meant is as long, but for the quotes.
        let is_plain = place.len() == value.len() + 2;
        self.head.note(field, Place::at(place), is_plain);
    }

    fn written(&mut self, field: Field, start: usize) {
        let place = Place::at(start..self.raw.len());
        let is_plain = !field.is_name() || place.token(&self.raw).is_none_or(is_plain);
        self.head.note(field, place, is_plain);
    }

    /// Adds the content of a model's message that is this text and nothing else.
    pub fn output_text(&mut self, text: &str) {
        let mut place = 0..0;
        self.json("content", |raw| {
            raw.push_str(r#"[{"type":"output_text","text":"#);
            let start = raw.len();
            json::quote_into(raw, text);
            place = start..raw.len();
            raw.push_str(r#","annotations":[]}]"#);
        });
        // An empty one counts as none.
        if !text.is_empty() {
            self.only_text = Place::at(place);
        }
    }

    pub(super) fn add(&mut self, name: &str, write: impl FnOnce(&mut json::Quoted<'_>)) {
        self.json(name, |raw| json::Quoted::write(raw, write));
    }

    pub(super) fn built(self) -> Item {
        let Self {
            mut raw,
            mut head,
            only_text,
        } = self;
        raw.push('}');
        head.find_identity(&raw);
        let inner = Inner::new(raw, head);
        if !only_text.is_absent() {
            inner.notes.only_text(|| Some(only_text.ends()));
        }
        Item(inner)
    }
}
