//! When a request is sent again, and when not.

use std::time::Duration;

use crate::wire::error::{ModelError, ModelErrorKind};

/// The longest a server may make us wait before we rather report it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Another request of the same conversation is under way.
const IS_LOCKED: &str = "conversation_locked";

/// Whether a request may be sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing at the server: at worst an answer is paid for twice.
    Safe,
    /// It adds to a conversation the server keeps: only where the server said that it did nothing.
    Stateful,
}

/// How long to wait before the next attempt; `None` where there must be none.
pub(crate) fn pause(
    error: &ModelError,
    repeat: Repeat,
    attempt: u32,
    retries: u32,
) -> Option<Duration> {
    if attempt > retries || !is_worth_it(error, repeat) {
        return None;
    }
    match error.retry_after() {
        Some(asked) if asked > LONGEST_WAIT => None,
        Some(asked) if !asked.is_zero() => Some(asked),
        _ => Some(backoff(attempt)),
    }
}

fn is_worth_it(error: &ModelError, repeat: Repeat) -> bool {
    let code = error.code().unwrap_or_default();
    if matches!(code, "insufficient_quota" | "credit_balance_exhausted") {
        return false;
    }
    let is_asked_to = error.should_retry();
    if is_asked_to == Some(false) {
        return false;
    }
    if repeat == Repeat::Stateful {
        return did_nothing(error);
    }
    match error.kind() {
        ModelErrorKind::Configuration => false,
        _ if is_asked_to.is_some() => true,
        ModelErrorKind::Request => matches!(error.status(), Some(408 | 409)) || code == IS_LOCKED,
        ModelErrorKind::RateLimit
        | ModelErrorKind::Server
        | ModelErrorKind::Connection
        | ModelErrorKind::BadAnswer
        | ModelErrorKind::Interrupted
        | ModelErrorKind::Timeout => true,
        _ => false,
    }
}

/// Whether the server certainly did nothing of what it was asked. Any other failure may come after
/// the work was done: a 500, a gateway's 502 or 504, a connection that broke.
fn did_nothing(error: &ModelError) -> bool {
    match error.status() {
        Some(409 | 429) => true,
        Some(503) => error.retry_after().is_some() || error.should_retry() == Some(true),
        _ => error.is_unsent() || error.code() == Some(IS_LOCKED),
    }
}

/// Longer each time, and never the same for two clients.
fn backoff(attempt: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    doubled
        .min(LONGEST_PAUSE)
        .mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::client::Head;

    fn failed(kind: ModelErrorKind, status: u16, code: &str) -> ModelError {
        ModelError::new(kind, "").with_status(status, Some(code.to_owned()))
    }

    fn asks(status: u16, after: Option<u64>, should_retry: Option<bool>) -> ModelError {
        let head = Head {
            retry_after: after.map(Duration::from_secs),
            should_retry,
            ..Head::default()
        };
        failed(ModelErrorKind::Server, status, "").with_head(&head)
    }

    #[test]
    fn only_what_may_help_is_sent_again() {
        let kinds = [
            (
                failed(ModelErrorKind::RateLimit, 429, "rate_limit_exceeded"),
                true,
                true,
            ),
            (
                failed(ModelErrorKind::RateLimit, 429, "insufficient_quota"),
                false,
                false,
            ),
            (failed(ModelErrorKind::Server, 500, ""), true, false),
            (failed(ModelErrorKind::Server, 502, ""), true, false),
            (failed(ModelErrorKind::Server, 503, ""), true, false),
            (asks(503, Some(1), None), true, true),
            (asks(503, None, Some(true)), true, true),
            (asks(500, Some(1), Some(true)), true, false),
            (asks(503, Some(1), Some(false)), false, false),
            (failed(ModelErrorKind::Request, 408, ""), true, false),
            (failed(ModelErrorKind::Request, 400, ""), false, false),
            (failed(ModelErrorKind::Request, 409, ""), true, true),
            (
                failed(ModelErrorKind::Request, 400, "conversation_locked"),
                true,
                true,
            ),
            (
                failed(ModelErrorKind::Authentication, 401, ""),
                false,
                false,
            ),
            (ModelError::new(ModelErrorKind::Connection, ""), true, false),
            (
                ModelError::new(ModelErrorKind::Connection, "").unsent(),
                true,
                true,
            ),
            (ModelError::new(ModelErrorKind::RateLimit, ""), true, false),
            (
                ModelError::new(ModelErrorKind::Configuration, ""),
                false,
                false,
            ),
            (ModelError::new(ModelErrorKind::BadAnswer, ""), true, false),
            (
                ModelError::new(ModelErrorKind::Incomplete, ""),
                false,
                false,
            ),
        ];
        for (error, safe, stateful) in kinds {
            assert_eq!(
                pause(&error, Repeat::Safe, 1, 2).is_some(),
                safe,
                "{error:?}"
            );
            let again = pause(&error, Repeat::Stateful, 1, 2).is_some();
            assert_eq!(again, stateful, "{error:?}");
            assert_eq!(pause(&error, Repeat::Safe, 3, 2), None);
        }
    }

    #[test]
    fn pauses_grow_and_differ() {
        for attempt in 1..40 {
            let pause = backoff(attempt);
            assert!(
                pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE,
                "{pause:?}"
            );
        }
        let pauses: std::collections::HashSet<_> = (0..20).map(|_| backoff(3)).collect();
        assert!(pauses.len() > 10);
    }
}
