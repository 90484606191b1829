//! Adding a note to what the next agent sees.

use super::Filter;
use super::visible_items::VisibleItems;
use crate::handoff::HandoffInputData;
use crate::items::Item;

/// Puts a developer message in front of what the next agent sees. Trim first and then note: a filter
/// that drops the oldest items drops the note.
///
/// Notes of several handoffs, or of several filters in a chain, stand with the latest first. A note
/// that is already among them is moved to the front and not repeated, so that two agents that hand a
/// conversation back and forth do not pile up notes. Notes last for the run: a session does not store
/// them.
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
        let is_note = |item: &&Item| item.role().is_some_and(|role| role == "developer");
        let notes = visible.iter().take_while(is_note).count();
        visible
            .keep(|index, item| index >= notes || *item != note)
            .prepend(note)
            .into_data(data)
    })
}
