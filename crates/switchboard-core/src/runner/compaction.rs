//! Shortening what models are shown of a long conversation.

use std::time::Duration;

use crate::handle::IntoHandle;
use crate::items::{Items, Pairing};
use crate::model::ModelHandle;

/// The number of latest items that stay as they are, unless set.
const KEEP_LAST: usize = 20;

/// The number of bytes of JSON that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The time in which a summary must be written, unless set.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Replaces the older part of what a model is shown of a stored conversation by a summary that a model
/// writes; see [`Runner::compact`](crate::Runner::compact).
///
/// The originals stay in the conversation's record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of tokens from which on the conversation is shortened. They are estimated from the
    /// length of the items.
    pub token_budget: usize,
    /// The number of latest items that stay as they are, and a few more where a call would be separated
    /// from its output.
    pub keep_last: usize,
    /// The model that writes the summary; `None` is that of the agent.
    pub model: Option<ModelHandle>,
    /// The time in which the summary must be written. The message waits for it, and then goes on without
    /// one.
    pub timeout: Duration,
}

impl Compaction {
    /// Shortens conversations that are longer than this many tokens. The last 20 items stay, and a summary
    /// must be written within a minute.
    pub fn new(token_budget: usize) -> Self {
        Self {
            token_budget,
            keep_last: KEEP_LAST,
            model: None,
            timeout: TIMEOUT,
        }
    }

    /// Sets the number of latest items that stay as they are.
    #[must_use]
    pub fn keep_last(mut self, items: usize) -> Self {
        self.keep_last = items;
        self
    }

    /// Sets the model that writes the summary, instead of that of the agent.
    #[must_use]
    pub fn model<M>(mut self, model: impl IntoHandle<ModelHandle, M>) -> Self {
        self.model = Some(model.into_handle());
        self
    }

    /// Sets the time in which the summary must be written.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The number of leading items to summarise; 0 if the conversation is short enough.
    pub(crate) fn cut(&self, view: &Items) -> usize {
        let bytes: usize = view.iter().map(|item| item.as_json().len()).sum();
        if bytes / BYTES_PER_TOKEN <= self.token_budget {
            return 0;
        }
        let items: Vec<_> = view.iter().collect();
        let cut = items.len().saturating_sub(self.keep_last);
        let cut = Pairing::of(&items).before_all(cut);
        // A short part is not worth a summary, least of all if it is one.
        let older = items.iter().take(cut).map(|item| item.as_json().len());
        let is_worth_it = older.sum::<usize>() / BYTES_PER_TOKEN >= self.token_budget / 2;
        if cut > 1 && is_worth_it { cut } else { 0 }
    }
}
