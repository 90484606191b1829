//! Changing the user's input of a run.

use super::Run;
use crate::items::{Input, Item};

impl Run {
    /// Replaces the text of the user's last message among the new input, also in what the session
    /// gets. Returns `false` if no new message is the user's.
    #[must_use]
    pub(crate) fn replace_input(&mut self, text: &str) -> bool {
        let conversation = &mut self.conversation;
        let is_replaced = match &mut conversation.input {
            Input::Text(input) => {
                *input = text.into();
                true
            }
            Input::Items(items) => {
                let mut all: Vec<Item> = items.iter().cloned().collect();
                let stored = conversation.stored_input.min(all.len());
                let merged = &conversation.merged_from_session;
                let is_new = |at: usize| match merged.get(at) {
                    Some(is_stored) => !is_stored,
                    None => at >= stored,
                };
                let new = all.iter_mut().enumerate().filter(|(at, _)| is_new(*at));
                let is_replaced = replace_text(new.map(|(_, item)| item), text);
                *items = all.into();
                is_replaced
            }
        };
        conversation.model_input = None;
        // Before the first response, all unsaved items are new input.
        replace_text(self.session.unsaved.iter_mut(), text);
        is_replaced
    }

    /// Removes the identifiers of reasoning items from the input.
    pub(crate) fn omit_reasoning_ids(&mut self) {
        if let Input::Items(items) = &mut self.conversation.input {
            *items = items.iter().map(Item::without_reasoning_id).collect();
        }
        for item in &mut self.session.unsaved {
            *item = item.without_reasoning_id();
        }
    }
}

/// Replaces the text of the last message of the user. Returns `false` if there is none.
pub(crate) fn replace_text<'a>(items: impl Iterator<Item = &'a mut Item>, text: &str) -> bool {
    let messages = items.filter(|item| item.role().as_deref() == Some("user"));
    let Some(message) = messages.last() else {
        return false;
    };
    *message = message.with_text(text);
    true
}
