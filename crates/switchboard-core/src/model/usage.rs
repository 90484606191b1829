//! The usage of models.

use std::ops::{Add, AddAssign};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::CacheGroup;
use crate::lock::lock;

/// Requests and tokens used.
///
/// ```
/// use switchboard_core::model::Usage;
///
/// let one = Usage { requests: 1, input_tokens: 10, output_tokens: 5, ..Usage::default() };
/// assert_eq!((one + one).total_tokens(), 30);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Requests to a provider.
    pub requests: u64,
    /// Tokens of the input.
    pub input_tokens: u64,
    /// Of those, tokens the provider had cached.
    pub cached_tokens: u64,
    /// Of those, tokens the provider has written to its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// Of those, tokens of reasoning.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Input and output together.
    pub const fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The usage since an earlier time.
    pub(crate) fn since(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }

    /// Combines each count with that of `other`.
    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            requests: combine(self.requests, other.requests),
            input_tokens: combine(self.input_tokens, other.input_tokens),
            cached_tokens: combine(self.cached_tokens, other.cached_tokens),
            cache_write_tokens: combine(self.cache_write_tokens, other.cache_write_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            reasoning_tokens: combine(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// The usage of one model response of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequestUsage {
    /// The agent that asked; `None` for usage that user code has added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The agent that it had the conversation from, where it got it by a handoff in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// The model's name; `None` for usage that user code has added, and for a response that was cut
    /// off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The requests and tokens. Attempts that failed before the response are further requests.
    pub usage: Usage,
}

/// Usage that the run has not counted yet, of its models and of models that user code called. It is
/// kept however a step ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddedUsage(Arc<Added>);

#[derive(Debug, Default)]
struct Added {
    used: Mutex<Used>,
    /// The usage of the run around this one.
    outer: Option<AddedUsage>,
    /// The conversation of the run, for the provider's prompt cache.
    cache_group: Option<CacheGroup>,
}

/// The usage since it was last taken.
#[derive(Debug, Default)]
struct Used {
    sum: Usage,
    /// Mostly the only one: it is taken after each step.
    first: Option<RequestUsage>,
    more: Vec<RequestUsage>,
}

impl AddedUsage {
    /// For a run, which may lie inside that of `outer`.
    pub(crate) fn of_run(cache_group: CacheGroup, outer: Option<Self>) -> Self {
        Self(Arc::new(Added {
            used: Mutex::default(),
            outer,
            cache_group: Some(cache_group),
        }))
    }

    /// For a part of the run of `outer`.
    pub(crate) fn within(outer: Self) -> Self {
        Self(Arc::new(Added {
            outer: Some(outer),
            ..Added::default()
        }))
    }

    /// The conversation of the run.
    pub(crate) fn cache_group(&self) -> Option<&CacheGroup> {
        let outer = || self.0.outer.as_ref()?.cache_group();
        self.0.cache_group.as_ref().or_else(outer)
    }

    /// Adds usage of a model that user code called.
    pub(crate) fn add(&self, usage: Usage) {
        if usage != Usage::default() {
            self.add_request(RequestUsage {
                usage,
                ..RequestUsage::default()
            });
        }
    }

    pub(crate) fn add_request(&self, request: RequestUsage) {
        if let Some(outer) = &self.0.outer {
            outer.add_request(request.clone());
        }
        let mut used = lock(&self.0.used);
        used.sum += request.usage;
        match &mut used.first {
            first @ None => *first = Some(request),
            Some(_) => used.more.push(request),
        }
    }

    pub(crate) fn get(&self) -> Usage {
        lock(&self.0.used).sum
    }

    /// The requests that are not moved yet.
    pub(crate) fn pending(&self) -> Vec<RequestUsage> {
        let used = lock(&self.0.used);
        used.first.iter().chain(&used.more).cloned().collect()
    }

    /// Moves the usage into the sum and the list of a run.
    pub(crate) fn move_into(&self, sum: &mut Usage, requests: &mut Vec<RequestUsage>) {
        let mut used = lock(&self.0.used);
        *sum += std::mem::take(&mut used.sum);
        requests.extend(used.first.take());
        requests.append(&mut used.more);
    }
}
