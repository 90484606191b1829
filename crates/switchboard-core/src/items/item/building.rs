//! Making an item.

use super::{Inner, Item};
use crate::items::head::Head;
use crate::json;

/// An item of string fields under way. The head is made along the way: reading back what was just
/// written would be half the cost of a handoff.
pub(super) struct Building {
    raw: String,
    head: Head,
}

impl Building {
    pub(super) fn of(size: usize) -> Self {
        Self {
            raw: String::with_capacity(size + 2),
            head: Head::default(),
        }
    }

    pub(super) fn add(&mut self, name: &str, write: impl FnOnce(&mut json::Quoted<'_>)) {
        let raw = &mut self.raw;
        raw.push_str(if raw.is_empty() { "{\"" } else { ",\"" });
        raw.push_str(name);
        raw.push_str("\":");
        let start = raw.len();
        json::Quoted::write(raw, write);
        self.head.note(name, start..raw.len());
    }

    pub(super) fn built(self) -> Item {
        let Self { mut raw, mut head } = self;
        raw.push('}');
        head.find_identity(&raw);
        Item(Inner::new(raw, head))
    }
}
