//! Carrying less over: the last items, the first and the last, what fits a budget, no reasoning.

use std::sync::Arc;

use super::Filter;
use super::carried::Carried;
use crate::handoff::HandoffInputData;
use crate::items::{Item, ItemKind};

/// The next agent sees the last `count` items, this turn's included. Items whose other half falls
/// away (a call without its output, an output without its call) fall away as well; reasoning that
/// led to the first item kept is kept with it, beyond the count. [`Filter::allow_orphans`] cuts exactly.
///
/// The record is left whole: a session keeps everything.
pub fn keep_last<C: 'static>(count: usize) -> Filter<C> {
    keep_first_and_last(0, count)
}

/// The next agent sees the first `first` items and the last `last`: how it began, and how it
/// stands. Halves of calls and reasoning are dealt with as by [`keep_last`].
pub fn keep_first_and_last<C: 'static>(first: usize, last: usize) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| {
        let carried = Carried::of(&data);
        let cut = carried.entries().len().saturating_sub(last);
        let cut = carried.ties().before_reasoning(cut);
        carried
            .keep(|at, _| at < first || at >= cut)
            .into_data(data)
    })
}

/// The next agent does not see reasoning. Providers refuse the reasoning of another provider, and
/// reasoning without the item that followed it.
pub fn drop_reasoning<C: 'static>() -> Filter<C> {
    Filter::new(|data: HandoffInputData<C>| {
        let carried = Carried::of(&data);
        let carried = carried.keep(|_, entry| entry.item().kind() != ItemKind::Reasoning);
        carried.into_data(data)
    })
}

/// The next agent sees as many of the last items as fit into `tokens`, by the estimate of
/// [`estimated_tokens`]. Halves of calls fall away as with [`keep_last`], and so does an item whose
/// reasoning does not fit.
pub fn token_budget<C: 'static>(tokens: usize) -> Filter<C> {
    token_budget_by(tokens, estimated_tokens)
}

/// The same with a counter of your own, such as a provider's tokenizer.
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
    let count = Arc::new(count);
    Filter::new(move |data: HandoffInputData<C>| {
        let carried = Carried::of(&data);
        let mut left = tokens;
        let mut first_kept = carried.entries().len();
        for (at, entry) in carried.entries().iter().enumerate().rev() {
            match left.checked_sub(count(entry.item())) {
                Some(rest) => left = rest,
                None => break,
            }
            first_kept = at;
        }
        let first_kept = carried.ties().after_reasoned(first_kept);
        carried.keep(|at, _| at >= first_kept).into_data(data)
    })
}

/// A rough count of an item's tokens, on the high side: four bytes of ASCII a token, and every
/// other character a token.
pub fn estimated_tokens(item: &Item) -> usize {
    let json = item.as_json();
    let ascii = json.bytes().filter(u8::is_ascii).count();
    let others = json.chars().count() - ascii;
    ascii.div_ceil(4) + others
}
