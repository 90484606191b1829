//! Keeping halves of calls out of what a session is given.

use rustc_hash::FxHashSet;

use super::machine::answer_item;
use super::turn::Turn;
use crate::items::{Item, Pairing, RunItem};

/// Takes out of what a filter left for the session what it left without its other half. What the
/// turn itself made so stays: a tool of the provider's may be answered later.
pub(super) fn drop_halves(kept: &mut Vec<&RunItem>, turn: &Turn) {
    let items: Vec<&Item> = kept.iter().map(|made| made.item()).collect();
    let stays = whole(&items);
    if !stays.contains(&false) {
        return;
    }
    let own = unanswered(turn);
    let mut stays = stays.into_iter();
    kept.retain(|made| stays.next() == Some(true) || own.contains(&made.key()));
}

/// The items of the turn that lack their other half once its handoffs are answered.
fn unanswered(turn: &Turn) -> FxHashSet<usize> {
    let handoffs = turn.handoffs.iter();
    let answers: Vec<Item> = handoffs.map(|call| answer_item(&call.call, "")).collect();
    let items = turn.items.iter().map(RunItem::item);
    let items: Vec<&Item> = items.chain(&answers).collect();
    let stays = whole(&items).into_iter();
    let made = turn.items.iter().zip(stays);
    made.filter(|(_, stays)| !stays)
        .map(|(made, _)| made.key())
        .collect()
}

/// For each of the items, whether it has all that belongs to it.
fn whole(items: &[&Item]) -> Vec<bool> {
    let mut stays = vec![true; items.len()];
    Pairing::of(items).drop_orphans(&mut stays);
    stays
}
