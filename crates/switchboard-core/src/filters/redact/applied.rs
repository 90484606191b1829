//! The redactions of a handoff: of what the next agent sees, and of what is added after them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Redaction;
use crate::filters::visible_items::VisibleItems;
use crate::handoff::{HandoffInputData, Orphans};
use crate::items::{Item, RunItem};

/// A redaction that a filter of the handoff has applied.
#[derive(Debug, Clone)]
pub(crate) struct AppliedRedaction {
    redaction: Arc<Redaction>,
    /// The items that it made, which are not searched again: a pattern may match a placeholder. They are
    /// kept, so that their addresses stay theirs.
    made: HashMap<usize, Item>,
    /// The payload that it left.
    payload: Option<Value>,
}

impl AppliedRedaction {
    fn item(&self, item: &Item) -> Option<Item> {
        if self.made.contains_key(&item.address()) {
            return None;
        }
        self.redaction.item(item)
    }

    fn payload(&self, payload: Option<&Value>) -> Option<Value> {
        if payload == self.payload.as_ref() {
            return None;
        }
        self.redaction.payload(payload?)
    }

    fn note_made(&mut self, item: &Item) {
        self.made.insert(item.address(), item.clone());
    }
}

/// Redacts what the next agent would see, and the payload.
pub(super) fn apply<C: 'static>(
    redaction: &Arc<Redaction>,
    mut data: HandoffInputData<C>,
) -> HandoffInputData<C> {
    data.redactions.push(AppliedRedaction {
        redaction: redaction.clone(),
        made: HashMap::new(),
        payload: None,
    });
    let last = data.redactions.len() - 1;
    redact(data, last)
}

/// Redacts what was added after the redactions of the handoff: by later filters, which may also have shown
/// items again, and by deliveries of the payload.
pub(crate) fn redact_added<C: 'static>(mut data: HandoffInputData<C>) -> HandoffInputData<C> {
    for at in 0..data.redactions.len() {
        let applied = &data.redactions[at];
        let shown = data.input_items().unwrap_or_else(|| data.new_items());
        let made = data.pre_handoff_items().iter().chain(shown);
        let history = data.history_items();
        let mut items = history.iter().chain(made.map(RunItem::item));
        let is_redacted = applied.payload(data.payload()).is_none()
            && items.all(|item| applied.item(item).is_none());
        if !is_redacted {
            data = redact(data.with_orphans(Orphans::Keep), at);
        }
    }
    if !data.redactions.is_empty() {
        data.parts.redacted_payload = data.payload().cloned();
    }
    data
}

/// Applies the redaction at `at`.
fn redact<C: 'static>(mut data: HandoffInputData<C>, at: usize) -> HandoffInputData<C> {
    let mut redactions = std::mem::take(&mut data.redactions);
    let mut replaced: HashMap<usize, Item> = HashMap::new();
    let visible = VisibleItems::of(&data).replace(|item| {
        let redacted = redactions[at].item(item)?;
        for applied in &mut redactions {
            if applied.made.contains_key(&item.address()) {
                applied.note_made(&redacted);
            }
        }
        redactions[at].note_made(&redacted);
        replaced.insert(item.address(), redacted.clone());
        Some(redacted)
    });
    data = visible.into_data(data);
    // The next handoff finds its notes by what they say now.
    for note in &mut data.parts.notes {
        let redacted = replaced.get(&note.address()).cloned();
        if let Some(redacted) = redacted.or_else(|| redactions[at].item(note)) {
            *note = redacted;
        }
    }
    let payload = redactions[at].payload(data.payload());
    if let Some(payload) = payload {
        for applied in &mut redactions {
            if applied.payload.as_ref() == data.payload() {
                applied.payload = Some(payload.clone());
            }
        }
        data = data.with_payload(Some(payload));
    }
    redactions[at].payload = data.payload().cloned();
    data.redactions = redactions;
    data
}
