//! Retries of failed model requests.

mod policy;

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

pub use policy::{RetryDecision, RetryPolicy};
use serde::{Deserialize, Serialize};

use super::settings::first_set;
use super::{ModelRequest, ServerState};

/// The number of retries where [`RetrySettings::max_retries`] is not set.
const DEFAULT_RETRIES: u32 = 2;

/// The longest `Retry-After` that is waited for; the error is returned instead of a longer wait.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The settings of retries: how often, after which failures, and after which pause.
///
/// As [`ModelSettings::retry`](super::ModelSettings::retry) of an agent or of a run they hold for any
/// model, and a model over HTTP then makes no retries of its own. A number alone is the limit:
/// `Some(3.into())`.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::model::{Backoff, RetryPolicy, RetrySettings};
/// use switchboard_core::{Agent, ModelSettings};
///
/// let retry = RetrySettings::new(4)
///     .policy(RetryPolicy::any([
///         RetryPolicy::network_error(),
///         RetryPolicy::http_status([429, 503]),
///     ]))
///     .backoff(Backoff { initial_delay: Some(Duration::from_millis(100)), ..Backoff::default() });
/// let agent: Agent = Agent::new("Helper").model_settings(ModelSettings {
///     retry: Some(retry),
///     timeout: Some(Duration::from_secs(30)),
///     ..ModelSettings::default()
/// });
/// ```
///
/// Whatever the policy says, a request is not sent again once its streamed answer has begun, nor in a
/// conversation that the provider keeps ([`ServerState::Conversation`]), unless the provider has
/// certainly not stored it or the policy accepts the risk
/// ([`RetryDecision::approve_unsafe_replay`]).
///
/// Each attempt counts as a request in the usage of the response, and in that of the run if all of them
/// fail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetrySettings {
    /// The maximum number of retries after the first attempt; 2 where it is not set, and none with 0.
    pub max_retries: Option<u32>,
    /// The pauses between attempts where neither the policy nor the provider names one.
    pub backoff: Option<Backoff>,
    /// The failures that are retried; [`RetryPolicy::provider_suggested`] where it is not set. It is
    /// not stored.
    #[serde(skip)]
    pub policy: Option<RetryPolicy>,
}

impl RetrySettings {
    /// Creates settings with this maximum number of retries.
    pub fn new(max_retries: u32) -> Self {
        Self {
            max_retries: Some(max_retries),
            ..Self::default()
        }
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the pauses between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Returns these settings, overridden by those that `other` sets.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        Self {
            max_retries: other.max_retries.or(self.max_retries),
            backoff: match (self.backoff, other.backoff) {
                (Some(mine), Some(theirs)) => Some(mine.overridden_by(theirs)),
                (mine, theirs) => theirs.or(mine),
            },
            policy: first_set(&other.policy, &self.policy),
        }
    }

    /// The pause before the next attempt; `None` if the request must not be sent again. For models
    /// that retry their requests themselves.
    pub fn delay(&self, failure: &ModelFailure<'_>) -> Option<Duration> {
        if failure.attempt > self.max_retries.unwrap_or(DEFAULT_RETRIES) {
            return None;
        }
        let replay = failure.advice.replay;
        // Of a streamed answer, parts may have been shown.
        if replay == Replay::Unsafe && failure.is_streamed {
            return None;
        }
        let decision = match &self.policy {
            Some(policy) => policy.decide(failure),
            None => RetryPolicy::provider_suggested().decide(failure),
        };
        let is_approved = match replay {
            Replay::Safe => true,
            Replay::Unknown => !failure.is_stateful(),
            Replay::Unsafe => decision.approves_unsafe_replay,
        };
        if !decision.is_retry() || !is_approved {
            return None;
        }
        match (decision.delay, failure.advice.retry_after) {
            (Some(delay), _) => Some(delay),
            (None, Some(asked)) if asked > MAX_RETRY_AFTER => None,
            (None, Some(asked)) if !asked.is_zero() => Some(asked),
            _ => Some(self.backoff.unwrap_or_default().delay(failure.attempt)),
        }
    }
}

impl From<u32> for RetrySettings {
    fn from(max_retries: u32) -> Self {
        Self::new(max_retries)
    }
}

/// Pauses between attempts, each longer than the one before.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::model::Backoff;
///
/// let backoff = Backoff { jitter: Some(false), ..Backoff::default() };
/// assert_eq!(backoff.delay(1), Duration::from_millis(250));
/// assert_eq!(backoff.delay(2), Duration::from_millis(500));
/// assert_eq!(backoff.delay(9), Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backoff {
    /// The pause before the first retry; 0.25 seconds where it is not set.
    #[serde(with = "seconds")]
    pub initial_delay: Option<Duration>,
    /// The longest pause; 2 seconds where it is not set.
    #[serde(with = "seconds")]
    pub max_delay: Option<Duration>,
    /// The factor from one pause to the next; 2 where it is not set.
    pub multiplier: Option<f64>,
    /// Varies each pause by up to an eighth, so that clients do not come back all at once; on where
    /// it is not set.
    pub jitter: Option<bool>,
}

impl Backoff {
    /// The pause after this attempt; the first is attempt 1.
    pub fn delay(&self, attempt: u32) -> Duration {
        let initial = self.initial_delay.unwrap_or(Duration::from_millis(250));
        let max = self.max_delay.unwrap_or(Duration::from_secs(2));
        let factor = self.multiplier.unwrap_or(2.0);
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = initial.as_secs_f64() * factor.powi(exponent);
        // Not a number, negative or too large: the longest pause.
        let delay = Duration::try_from_secs_f64(seconds).unwrap_or(max).min(max);
        if self.jitter == Some(false) {
            return delay;
        }
        let varied = delay.as_secs_f64() * (0.875 + fastrand::f64() * 0.25);
        Duration::try_from_secs_f64(varied).unwrap_or(max).min(max)
    }

    fn overridden_by(self, other: Self) -> Self {
        Self {
            initial_delay: other.initial_delay.or(self.initial_delay),
            max_delay: other.max_delay.or(self.max_delay),
            multiplier: other.multiplier.or(self.multiplier),
            jitter: other.jitter.or(self.jitter),
        }
    }
}

/// A failed attempt of a model request, as a [`RetryPolicy`] sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelFailure<'a> {
    /// The error; downcast it to the model's own type for details.
    pub error: &'a (dyn Error + Send + Sync + 'static),
    /// The number of the attempt that failed; the first is 1.
    pub attempt: u32,
    /// Set if a streamed answer was asked for.
    pub is_streamed: bool,
    /// The conversation at the provider, if it keeps one.
    pub server: Option<&'a ServerState>,
    /// The model's advice.
    pub advice: RetryAdvice,
}

impl<'a> ModelFailure<'a> {
    /// Creates a failure of the first attempt; set the other fields on it.
    pub fn new(error: &'a (dyn Error + Send + Sync + 'static), advice: RetryAdvice) -> Self {
        Self {
            error,
            attempt: 1,
            is_streamed: false,
            server: None,
            advice,
        }
    }

    /// Returns `true` if the request adds to a conversation that the provider keeps. One that follows
    /// a response by its identifier does not: sent twice, it gives two responses, of which one is used.
    pub fn is_stateful(&self) -> bool {
        matches!(self.server, Some(ServerState::Conversation(_)))
    }
}

/// Facts about a failed request, and the model's advice on sending it again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// Set if a retry may help (`true`), or does not (`false`).
    pub suggested: Option<bool>,
    /// The effect of sending the request again.
    pub replay: Replay,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The provider's error code.
    pub code: Option<String>,
    /// The time that the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Set if the connection failed.
    pub is_network_error: bool,
    /// Set if a time-out expired.
    pub is_timeout: bool,
}

impl RetryAdvice {
    /// The advice for an error of which only its type and its sources are known: I/O errors of a
    /// connection, and [`ModelTimeout`].
    pub fn of_error(error: &(dyn Error + Send + Sync + 'static)) -> Self {
        let mut advice = Self::default();
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = next {
            advice.is_timeout |= cause.is::<ModelTimeout>();
            if let Some(cause) = cause.downcast_ref::<io::Error>() {
                advice.is_timeout |= cause.kind() == io::ErrorKind::TimedOut;
                advice.is_network_error |= is_of_connection(cause.kind());
            }
            next = cause.source();
        }
        if advice.is_timeout || advice.is_network_error {
            advice.suggested = Some(true);
        }
        advice
    }
}

fn is_of_connection(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        NetworkDown, NetworkUnreachable, NotConnected, TimedOut, UnexpectedEof,
    };
    matches!(
        kind,
        BrokenPipe
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
            | TimedOut
            | UnexpectedEof
    )
}

/// The effect of sending a failed request again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// It is not known.
    #[default]
    Unknown,
    /// The provider has not processed the request.
    Safe,
    /// The provider may have processed the request, and its effect would happen twice.
    Unsafe,
}

/// The error of a model call that took longer than
/// [`ModelSettings::timeout`](super::ModelSettings::timeout).
///
/// It is the cause of the run's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeout(Duration);

impl ModelTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self(limit)
    }

    /// The limit that was exceeded.
    pub fn limit(&self) -> Duration {
        self.0
    }
}

impl fmt::Display for ModelTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it took longer than {} s; raise ModelSettings::timeout, or retry with \
             ModelSettings::retry",
            self.0.as_secs_f64()
        )
    }
}

impl Error for ModelTimeout {}

impl ModelRequest {
    /// Returns `true` if the run limits or repeats the attempts of this request.
    pub(crate) fn is_guarded(&self) -> bool {
        self.settings.retry.is_some() || self.settings.timeout.is_some()
    }
}

/// Durations as numbers of seconds.
pub(super) mod seconds {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
    pub(in crate::model) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_some(&duration.as_secs_f64()),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        let duration = seconds.map(Duration::try_from_secs_f64).transpose();
        duration.map_err(|_| D::Error::custom("a time is a number of seconds, 0 or more"))
    }
}
