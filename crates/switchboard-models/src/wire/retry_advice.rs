//! Advice on retries.

use std::time::Duration;

use switchboard_core::model::{Backoff, Replay, RetryAdvice, RetrySettings, ServerState};

use crate::wire::model_error::{ModelError, ModelErrorKind};

/// The retries of an endpoint by default.
pub(crate) fn default_settings() -> RetrySettings {
    RetrySettings::new(2).backoff(Backoff {
        initial_delay: Some(Duration::from_millis(500)),
        max_delay: Some(Duration::from_secs(8)),
        ..Backoff::default()
    })
}

/// The facts about an error, and advice on sending the request again.
///
/// A request in a conversation that the server keeps adds to it. It is sent again only if the server
/// has certainly not processed it.
pub(crate) fn advice(error: &ModelError, server: Option<&ServerState>) -> RetryAdvice {
    let is_stateful = matches!(server, Some(ServerState::Conversation(_)));
    let is_unprocessed = was_not_processed(error);
    let (suggested, replay) = if error.is_out_of_quota() || error.should_retry() == Some(false) {
        (Some(false), Replay::Unknown)
    } else if is_stateful && is_unprocessed {
        (Some(true), Replay::Safe)
    } else if is_stateful {
        (may_help(error).then_some(false), Replay::Unsafe)
    } else {
        (may_help(error).then_some(true), Replay::Unknown)
    };
    RetryAdvice {
        suggested,
        replay,
        status: error.status(),
        code: error.code().map(ToOwned::to_owned),
        retry_after: error.retry_after(),
        is_network_error: matches!(
            error.kind(),
            ModelErrorKind::Connection | ModelErrorKind::Interrupted
        ),
        is_timeout: error.kind() == ModelErrorKind::Timeout,
    }
}

/// Returns `true` if a retry may help.
fn may_help(error: &ModelError) -> bool {
    use ModelErrorKind::{
        BadAnswer, Configuration, Connection, Interrupted, RateLimit, Request, Server, Timeout,
    };
    match error.kind() {
        Configuration => false,
        _ if error.should_retry() == Some(true) => true,
        Request => error.status() == Some(409) || is_conversation_locked(error),
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

#[cfg(test)]
mod tests {
    use switchboard_core::model::ModelFailure;

    use super::*;
    use crate::wire::client::ResponseHeaders;

    fn is_retried(error: &ModelError, server: Option<&ServerState>, attempt: u32) -> bool {
        let mut failure = ModelFailure::new(error, advice(error, server));
        failure.server = server;
        failure.attempt = attempt;
        default_settings().delay(&failure).is_some()
    }

    fn failed(kind: ModelErrorKind, status: u16, code: &str) -> ModelError {
        ModelError::new(kind, "")
            .with(|error| error.status = Some(status))
            .with(|error| error.code = Some(code.to_owned()))
    }

    fn asks(status: u16, after: Option<u64>, should_retry: Option<bool>) -> ModelError {
        let headers = ResponseHeaders {
            retry_after: after.map(Duration::from_secs),
            should_retry,
            ..ResponseHeaders::default()
        };
        failed(ModelErrorKind::Server, status, "").with_headers(headers)
    }

    #[test]
    fn only_failures_that_a_retry_may_help_are_retried() {
        use ModelErrorKind::{
            Authentication, BadAnswer, Configuration, Connection, Incomplete, RateLimit, Request,
            Server, Timeout,
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
            (failed(Timeout, 408, ""), true, false),
            (failed(Request, 400, ""), false, false),
            (failed(Request, 409, ""), true, true),
            (failed(Request, 400, "conversation_locked"), true, true),
            (failed(Authentication, 401, ""), false, false),
            (bare(Connection), true, false),
            (
                bare(Connection).with(|error| error.is_unsent = true),
                true,
                true,
            ),
            (bare(RateLimit), true, false),
            (bare(Configuration), false, false),
            (bare(BadAnswer), true, false),
            (bare(Incomplete), false, false),
        ] {
            let conversation = ServerState::Conversation("conv_1".into());
            assert_eq!(is_retried(&error, None, 1), safe, "{error:?}");
            assert_eq!(
                is_retried(&error, Some(&conversation), 1),
                stateful,
                "{error:?}"
            );
            assert!(!is_retried(&error, None, 3));
        }
    }

    #[test]
    fn delays_are_bounded_and_differ() {
        let backoff = default_settings().backoff.unwrap();
        for attempt in 1..40 {
            let delay = backoff.delay(attempt);
            assert!(delay >= Duration::from_millis(437), "{delay:?}");
            assert!(delay <= Duration::from_secs(8), "{delay:?}");
        }
        let delays: std::collections::HashSet<_> = (0..20).map(|_| backoff.delay(3)).collect();
        assert!(delays.len() > 10);
    }
}
