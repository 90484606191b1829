//! Filters that drop items.

use super::{Filter, visible_items};
use crate::handoff::HandoffInputData;
use crate::items::{Input, Item, ItemKind};

/// Drops everything that belongs to the use of tools: calls and outputs, the provider's own
/// tools, reasoning, and handoffs.
///
/// Like the reference's, and unlike the other filters here, it drops them from the new items as
/// well, so that a session does not store them.
pub fn remove_all_tools<C: 'static>() -> Filter<C> {
    Filter::new(|mut data: HandoffInputData<C>| {
        let was_empty = data.shows_nothing();
        let parts = &mut data.parts;
        if let Input::Items(items) = &mut parts.input_history {
            let kept = items.iter().filter(|item| !item.kind().is_tool_use());
            *items = kept.cloned().collect();
        }
        let items = [&mut parts.pre_handoff_items, &mut parts.new_items];
        for items in items.into_iter().chain(&mut parts.input_items) {
            let kept = items.iter().filter(|made| !made.kind().is_tool_use());
            *items = kept.cloned().collect();
        }
        data.left_by_library(was_empty)
    })
    .named("remove_all_tools")
}

/// Keeps the last `count` items, this turn's included. A call without its output and an output
/// without its call are dropped as well; reasoning that led to the first item kept is kept with it,
/// beyond the count. [`Filter::allow_orphans`] cuts exactly.
///
/// Only the next agent's view changes: a session stores everything.
pub fn keep_last<C: 'static>(count: usize) -> Filter<C> {
    keep_first_and_last(0, count).named(format!("keep_last({count})"))
}

/// Keeps the first `first` items and the last `last`: how the conversation began, and its current
/// state. Orphaned calls, outputs and reasoning are treated as by [`keep_last`].
pub fn keep_first_and_last<C: 'static>(first: usize, last: usize) -> Filter<C> {
    visible_items::filter(move |visible| {
        let cut = visible.len().saturating_sub(last);
        let cut = visible.pairing().before_reasoning(cut);
        visible.keep(|index, _| index < first || index >= cut)
    })
    .named(format!("keep_first_and_last({first}, {last})"))
}

/// Drops reasoning. Providers reject the reasoning of another provider, and reasoning without the
/// item that followed it.
pub fn drop_reasoning<C: 'static>() -> Filter<C> {
    visible_items::filter(|visible| visible.keep(|_, item| item.kind() != ItemKind::Reasoning))
        .named("drop_reasoning")
}

/// Keeps as many of the last items as fit into `tokens`, by the estimate of [`estimated_tokens`].
/// Orphaned calls and outputs are dropped as by [`keep_last`], and so is an item whose reasoning
/// does not fit.
pub fn token_budget<C: 'static>(tokens: usize) -> Filter<C> {
    token_budget_by(tokens, estimated_tokens)
}

/// Like [`token_budget`], with a counter of your own, such as a provider's tokenizer.
///
/// ```
/// use switchboard_core::filters::{self, Filter};
///
/// let ten_words: Filter = filters::token_budget_by(10, |item| {
///     item.text().map_or(0, |text| text.split_whitespace().count())
/// });
/// ```
pub fn token_budget_by<C: 'static>(
    tokens: usize,
    count: impl Fn(&Item) -> usize + Send + Sync + 'static,
) -> Filter<C> {
    visible_items::filter(move |visible| {
        let mut left = tokens;
        let fitting = visible.iter().rev().map_while(|item| {
            left = left.checked_sub(count(item))?;
            Some(())
        });
        let cut = visible.len() - fitting.count();
        let cut = visible.pairing().after_reasoned(cut);
        visible.keep(|index, _| index >= cut)
    })
    .named(format!("token_budget({tokens})"))
}

/// Estimates the tokens of an item, on the high side: one for every four bytes of ASCII, and one for
/// every other character.
pub fn estimated_tokens(item: &Item) -> usize {
    text_tokens(item.as_json())
}

/// Estimates the tokens of a text as [`estimated_tokens`] does those of an item.
pub(crate) fn text_tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(4) + others
}
