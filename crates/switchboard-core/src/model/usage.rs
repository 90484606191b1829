//! The usage of models.

use std::ops::{Add, AddAssign};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// The model's name; `None` for usage that user code has added, and for a response that was cut
    /// off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The requests and tokens. Attempts that failed before the response are further requests.
    pub usage: Usage,
}
