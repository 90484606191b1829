//! The cache that requests keep with each chunk of a conversation.

use std::sync::{Mutex, PoisonError};

use switchboard_core::Item;
use switchboard_core::items::Chunk;

use super::responses::UnchangedItems;

/// The results that requests of each protocol have computed for a chunk.
#[derive(Default)]
pub(super) struct RequestCache {
    pub(super) responses: Mutex<UnchangedItems>,
    pub(super) chat: Mutex<Prefix>,
}

/// The first items of a chunk whose messages are copied from the items, whatever comes before and after
/// the chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) items: usize,
    /// The serialized length of their messages, with a comma between them.
    pub(super) length: usize,
}

/// Runs `use_cache` with a part of the chunk's cache, or with an empty one if another crate keeps a cache
/// there.
pub(super) fn with_cache<C: Default + 'static, T>(
    chunk: &Chunk<'_, Item>,
    part: impl FnOnce(&RequestCache) -> &Mutex<C>,
    use_cache: impl FnOnce(&mut C) -> T,
) -> T {
    match chunk.cache() {
        Some(cache) => use_cache(&mut part(cache).lock().unwrap_or_else(PoisonError::into_inner)),
        None => use_cache(&mut C::default()),
    }
}
