//! The retry policy.

use std::time::Duration;

use crate::wire::error::{ModelError, ModelErrorKind};

/// The longest `Retry-After` that is waited for; the error is returned instead of a longer wait.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(8);

/// The effect of sending a request twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing at the server: at worst an answer is paid for twice.
    Safe,
    /// It adds to a conversation that the server keeps. It is retried only if the server has
    /// certainly not processed it.
    Stateful,
}

/// The delay before the next attempt; `None` if the request must not be retried.
pub(crate) fn delay(
    error: &ModelError,
    repeat: Repeat,
    attempt: u32,
    max_retries: u32,
) -> Option<Duration> {
    if attempt > max_retries || !is_retryable(error, repeat) {
        return None;
    }
    match error.retry_after() {
        Some(asked) if asked > MAX_RETRY_AFTER => None,
        Some(asked) if !asked.is_zero() => Some(asked),
        _ => Some(backoff(attempt)),
    }
}

fn is_retryable(error: &ModelError, repeat: Repeat) -> bool {
    use ModelErrorKind::{
        BadAnswer, Configuration, Connection, Interrupted, RateLimit, Request, Server, Timeout,
    };
    if error.is_out_of_quota() || error.should_retry() == Some(false) {
        return false;
    }
    if repeat == Repeat::Stateful {
        return was_not_processed(error);
    }
    match error.kind() {
        Configuration => false,
        _ if error.should_retry() == Some(true) => true,
        Request => matches!(error.status(), Some(408 | 409)) || is_conversation_locked(error),
        RateLimit | Server | Connection | BadAnswer | Interrupted | Timeout => true,
        _ => false,
    }
}

/// Returns `true` if another request of the conversation is in progress.
fn is_conversation_locked(error: &ModelError) -> bool {
    error.code() == Some("conversation_locked")
}

/// Returns `true` if the server has certainly not processed the request. A 500, a gateway's 502 or
/// 504 and a broken connection may come after the work was done.
fn was_not_processed(error: &ModelError) -> bool {
    match error.status() {
        Some(409 | 429) => true,
        Some(503) => error.retry_after().is_some() || error.should_retry() == Some(true),
        _ => error.is_unsent() || is_conversation_locked(error),
    }
}

/// Exponential backoff with jitter.
fn backoff(attempt: u32) -> Duration {
    let doubled = FIRST_DELAY.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    doubled.min(MAX_DELAY).mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::client::ResponseHeaders;

    fn failed(kind: ModelErrorKind, status: u16, code: &str) -> ModelError {
        ModelError::new(kind, "")
            .with_status(status)
            .with_code(Some(code.to_owned()))
    }

    fn asks(status: u16, after: Option<u64>, should_retry: Option<bool>) -> ModelError {
        let headers = ResponseHeaders {
            retry_after: after.map(Duration::from_secs),
            should_retry,
            ..ResponseHeaders::default()
        };
        failed(ModelErrorKind::Server, status, "").with_headers(&headers)
    }

    #[test]
    fn only_failures_that_a_retry_may_help_are_retried() {
        use ModelErrorKind::{
            Authentication, BadAnswer, Configuration, Connection, Incomplete, RateLimit, Request,
            Server,
        };
        let bare = |kind| ModelError::new(kind, "");
        for (error, safe, stateful) in [
            (failed(RateLimit, 429, "rate_limit_exceeded"), true, true),
            (failed(RateLimit, 429, "insufficient_quota"), false, false),
            (failed(Server, 500, ""), true, false),
            (failed(Server, 502, ""), true, false),
            (failed(Server, 503, ""), true, false),
            (asks(503, Some(1), None), true, true),
            (asks(503, None, Some(true)), true, true),
            (asks(500, Some(1), Some(true)), true, false),
            (asks(503, Some(1), Some(false)), false, false),
            (failed(Request, 408, ""), true, false),
            (failed(Request, 400, ""), false, false),
            (failed(Request, 409, ""), true, true),
            (failed(Request, 400, "conversation_locked"), true, true),
            (failed(Authentication, 401, ""), false, false),
            (bare(Connection), true, false),
            (bare(Connection).unsent(), true, true),
            (bare(RateLimit), true, false),
            (bare(Configuration), false, false),
            (bare(BadAnswer), true, false),
            (bare(Incomplete), false, false),
        ] {
            let is_retried = |repeat| delay(&error, repeat, 1, 2).is_some();
            assert_eq!(is_retried(Repeat::Safe), safe, "{error:?}");
            assert_eq!(is_retried(Repeat::Stateful), stateful, "{error:?}");
            assert_eq!(delay(&error, Repeat::Safe, 3, 2), None);
        }
    }

    #[test]
    fn delays_are_bounded_and_differ() {
        for attempt in 1..40 {
            let delay = backoff(attempt);
            assert!(delay >= FIRST_DELAY / 2 && delay <= MAX_DELAY, "{delay:?}");
        }
        let delays: std::collections::HashSet<_> = (0..20).map(|_| backoff(3)).collect();
        assert!(delays.len() > 10);
    }
}
