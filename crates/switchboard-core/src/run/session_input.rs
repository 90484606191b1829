//! Merging the history of a session with new input.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::items::{Item, Items};

type Merge<C> = dyn Fn(RunContext<C>, Items, Items) -> Outcome<Items> + Send + Sync;

/// Code that merges the history of a session with the new input of a run; see
/// [`Runner::session_input`](crate::Runner::session_input).
pub struct SessionInput<C>(Arc<Merge<C>>);

impl<C> SessionInput<C> {
    /// Creates one. `merge` gets the history and the new items, and returns what the run begins with.
    pub fn new<F, R, M>(merge: F) -> Self
    where
        F: Fn(RunContext<C>, Items, Items) -> R + Send + Sync + 'static,
        R: IntoOutcome<Items, M>,
    {
        Self(Arc::new(move |ctx, history, new| {
            merge(ctx, history, new).into_outcome()
        }))
    }

    pub(super) fn merge(&self, ctx: RunContext<C>, history: Items, new: Items) -> Outcome<Items> {
        (self.0)(ctx, history, new)
    }
}

impl_clone! { struct SessionInput<C> { 0 } }

impl_debug!(SessionInput<C>);

/// Returns for each merged item if it is from the history: the same item, or an equal one for each
/// that the history has. All others are new.
pub(super) fn from_history(history: &Items, new: &Items, merged: &Items) -> Vec<bool> {
    let addresses =
        |items: &Items| -> FxHashSet<usize> { items.iter().map(Item::address).collect() };
    let (is_old, is_new) = (addresses(history), addresses(new));
    let present = addresses(merged);
    let mut equal: FxHashMap<&str, usize> = FxHashMap::default();
    for item in history {
        if !present.contains(&item.address()) {
            *equal.entry(item.as_json()).or_default() += 1;
        }
    }
    let mut take_equal = |item: &Item| match equal.get_mut(item.as_json()) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let merged = merged.iter().map(|item| {
        let address = item.address();
        is_old.contains(&address) || (!is_new.contains(&address) && take_equal(item))
    });
    merged.collect()
}
