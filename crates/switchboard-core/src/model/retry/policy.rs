//! Policies: which failures are retried.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{ModelFailure, Replay};

/// The failures of model requests that are retried.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::model::{ModelFailure, RetryDecision, RetryPolicy};
///
/// // Overloaded servers are given time; other failures are left to the model's own judgement.
/// let overloaded = RetryPolicy::new(|failure: &ModelFailure<'_>| {
///     match failure.advice.code.as_deref() {
///         Some("overloaded") => RetryDecision::retry().after(Duration::from_secs(5)),
///         _ => RetryDecision::give_up(),
///     }
/// });
/// let policy = RetryPolicy::any([overloaded, RetryPolicy::provider_suggested()]);
/// ```
#[derive(Clone, PartialEq)]
pub struct RetryPolicy(Rule);

#[derive(Clone, PartialEq)]
enum Rule {
    Never,
    ProviderSuggested,
    NetworkError,
    RetryAfter,
    HttpStatus(Arc<[u16]>),
    All(Arc<[RetryPolicy]>),
    Any(Arc<[RetryPolicy]>),
    Custom(CustomRule),
}

#[derive(Clone)]
struct CustomRule(Arc<dyn Fn(&ModelFailure<'_>) -> RetryDecision + Send + Sync>);

impl RetryPolicy {
    /// Creates a policy from a function that returns a [`RetryDecision`] or a `bool`.
    pub fn new<D: Into<RetryDecision>>(
        decide: impl Fn(&ModelFailure<'_>) -> D + Send + Sync + 'static,
    ) -> Self {
        let decide = Arc::new(move |failure: &ModelFailure<'_>| decide(failure).into());
        Self(Rule::Custom(CustomRule(decide)))
    }

    /// Retries nothing.
    pub fn never() -> Self {
        Self(Rule::Never)
    }

    /// Retries what the model suggests, and nothing that it advises against: in
    /// [`RetryPolicy::any`], its advice against a retry overrules the other policies.
    pub fn provider_suggested() -> Self {
        Self(Rule::ProviderSuggested)
    }

    /// Retries failed connections and time-outs.
    pub fn network_error() -> Self {
        Self(Rule::NetworkError)
    }

    /// Retries if the provider says when. It is waited for up to a minute.
    pub fn retry_after() -> Self {
        Self(Rule::RetryAfter)
    }

    /// Retries responses with these HTTP statuses.
    pub fn http_status(statuses: impl IntoIterator<Item = u16>) -> Self {
        Self(Rule::HttpStatus(statuses.into_iter().collect()))
    }

    /// Retries what all of the policies retry; the last delay counts. Without policies, nothing.
    pub fn all(policies: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::All(policies.into_iter().collect()))
    }

    /// Retries what one of the policies retries; the last delay counts. Without policies, nothing.
    pub fn any(policies: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::Any(policies.into_iter().collect()))
    }

    /// The decision about a failure. [`RetrySettings`](super::RetrySettings) apply their limits to it.
    pub fn decide(&self, failure: &ModelFailure<'_>) -> RetryDecision {
        let advice = &failure.advice;
        match &self.0 {
            Rule::Never => RetryDecision::give_up(),
            Rule::ProviderSuggested => match advice.suggested {
                Some(true) => RetryDecision::retry(),
                Some(false) if advice.replay == Replay::Unsafe => {
                    RetryDecision::of(Choice::VetoUnlessApproved)
                }
                Some(false) => RetryDecision::of(Choice::Veto),
                None => RetryDecision::give_up(),
            },
            Rule::NetworkError => (advice.is_network_error || advice.is_timeout).into(),
            Rule::RetryAfter => advice.retry_after.is_some().into(),
            Rule::HttpStatus(statuses) => advice
                .status
                .is_some_and(|status| statuses.contains(&status))
                .into(),
            Rule::All(policies) => decide_by_all(policies, failure),
            Rule::Any(policies) => decide_by_any(policies, failure),
            Rule::Custom(decide) => (decide.0)(failure),
        }
    }
}

fn decide_by_all(policies: &[RetryPolicy], failure: &ModelFailure<'_>) -> RetryDecision {
    if policies.is_empty() {
        return RetryDecision::give_up();
    }
    let mut merged = RetryDecision::retry();
    let mut objection = None;
    for policy in policies {
        let decision = policy.decide(failure);
        match decision.choice {
            Choice::Retry => merged = merged.merged_with(decision),
            Choice::VetoUnlessApproved => objection = Some(decision),
            Choice::GiveUp | Choice::Veto => return decision,
        }
    }
    merged.despite(objection)
}

fn decide_by_any(policies: &[RetryPolicy], failure: &ModelFailure<'_>) -> RetryDecision {
    let mut merged: Option<RetryDecision> = None;
    let mut objection = None;
    for policy in policies {
        let decision = policy.decide(failure);
        match decision.choice {
            Choice::Retry => {
                merged = Some(merged.map_or(decision, |merged| merged.merged_with(decision)));
            }
            Choice::VetoUnlessApproved => objection = Some(decision),
            Choice::GiveUp => {}
            Choice::Veto => return decision,
        }
    }
    match merged {
        Some(merged) => merged.despite(objection),
        None => objection.unwrap_or_default(),
    }
}

impl PartialEq for CustomRule {
    /// Functions are equal if they are the same.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::Never => f.write_str("never"),
            Rule::ProviderSuggested => f.write_str("provider_suggested"),
            Rule::NetworkError => f.write_str("network_error"),
            Rule::RetryAfter => f.write_str("retry_after"),
            Rule::HttpStatus(statuses) => f.debug_tuple("http_status").field(statuses).finish(),
            Rule::All(policies) => f.debug_tuple("all").field(policies).finish(),
            Rule::Any(policies) => f.debug_tuple("any").field(policies).finish(),
            Rule::Custom(_) => f.write_str("custom"),
        }
    }
}

/// The decision of a [`RetryPolicy`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryDecision {
    choice: Choice,
    pub(super) delay: Option<Duration>,
    pub(super) approves_unsafe_replay: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Choice {
    Retry,
    #[default]
    GiveUp,
    /// Overrules the policies beside it.
    Veto,
    /// Overrules the policies beside it, except one that approves of an unsafe replay.
    VetoUnlessApproved,
}

impl RetryDecision {
    /// Sends the request again.
    pub const fn retry() -> Self {
        Self::of(Choice::Retry)
    }

    /// Returns the error.
    pub const fn give_up() -> Self {
        Self::of(Choice::GiveUp)
    }

    const fn of(choice: Choice) -> Self {
        Self {
            choice,
            delay: None,
            approves_unsafe_replay: false,
        }
    }

    /// Sets the pause before the request is sent again.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Accepts that the effect of the request may happen twice, where the model advises
    /// [`Replay::Unsafe`]. It has no effect on streamed answers.
    #[must_use]
    pub const fn approve_unsafe_replay(mut self) -> Self {
        self.approves_unsafe_replay = true;
        self
    }

    /// Returns `true` if the request is to be sent again.
    pub fn is_retry(&self) -> bool {
        self.choice == Choice::Retry
    }

    fn merged_with(self, later: Self) -> Self {
        Self {
            choice: Choice::Retry,
            delay: later.delay.or(self.delay),
            approves_unsafe_replay: self.approves_unsafe_replay || later.approves_unsafe_replay,
        }
    }

    /// This decision, or the objection if it is not approved.
    fn despite(self, objection: Option<Self>) -> Self {
        objection
            .filter(|_| !self.approves_unsafe_replay)
            .unwrap_or(self)
    }
}

impl From<bool> for RetryDecision {
    fn from(retry: bool) -> Self {
        if retry {
            Self::retry()
        } else {
            Self::give_up()
        }
    }
}
