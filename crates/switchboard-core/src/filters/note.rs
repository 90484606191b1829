//! Adding a note to what the next agent sees.

use super::Filter;
use super::visible_items::VisibleItems;
use crate::handoff::HandoffInputData;
use crate::items::Item;

/// Puts a developer message in front of what the next agent sees. Trim first and then note: a filter
/// that drops the oldest items drops the note.
///
/// A note takes the place of the notes of earlier handoffs, so that they do not pile up in a cascade.
/// The notes of several filters in one chain stand with the latest first. A stored conversation keeps
/// the note while the next agent has it; it is no part of the record.
///
/// ```
/// use switchboard_core::handoff::HandoffInputData;
/// use switchboard_core::filters;
///
/// struct App { tier: &'static str }
///
/// let filter = filters::note(|data: &HandoffInputData<App>| {
///     format!("The customer's tier is {}.", data.run_context().tier)
/// });
/// ```
pub fn note<C: 'static, R: Into<String>>(
    write: impl Fn(&HandoffInputData<C>) -> R + Send + Sync + 'static,
) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| {
        let note = Item::developer(write(&data).into());
        let visible = VisibleItems::of(&data);
        visible
            .keep(|_index, item| *item != note && !data.earlier_notes().contains(item))
            .prepend(note.clone())
            .into_data(data.add_note(note))
    })
}
