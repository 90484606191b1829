//! The attempts of a model call: their time limit, and retries.

use std::fmt;
use std::time::{Duration, Instant};

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::Driver;
use crate::callback::BoxError;
use crate::environment::environment;
use crate::error::Error;
use crate::model::{
    AddedUsage, ModelEvent, ModelFailure, ModelHandle, ModelRequest, ModelResponse, ModelRetry,
    ModelTimeout, RequestUsage, RetryAdvice, Usage,
};
use crate::stream::EventKind;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks the model, with the time limit and the retries of the settings. Attempts that are
    /// repeated count as requests, also if all fail or the call is cancelled.
    pub(super) async fn ask_with_retries(
        &self,
        model: &ModelHandle,
        mut request: ModelRequest,
    ) -> Result<ModelResponse, BoxError> {
        let settings = request.settings.clone();
        let mut failed = FailedRequests {
            count: 0,
            request: self.request_usage(model.shared_name(), Usage::default()),
            usage: &self.added_usage,
        };
        loop {
            // The usage of this attempt alone.
            let used = AddedUsage::within(self.added_usage.clone());
            request.added = used.clone();
            let mut has_begun = false;
            let limit = settings.timeout;
            let error = match self
                .attempt(model, request.clone(), limit, &mut has_begun)
                .await
            {
                Ok(mut response) => {
                    let failed = std::mem::take(&mut failed.count);
                    if failed > 0 {
                        let requests = &mut response.usage.requests;
                        *requests = (*requests).max(1).saturating_add(failed);
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
            let attempt = request.earlier_attempts + 1;
            // A guardrail has refused a part of the answer, which is no failure of the model.
            if error.is::<Error>() {
                return Err(error);
            }
            let failure = || ModelFailure {
                error: &*error,
                attempt,
                is_streamed: self.events.is_some(),
                server: request.server.as_ref(),
                advice: if error.is::<ModelTimeout>() {
                    RetryAdvice::of_error(&*error)
                } else {
                    model.retry_advice(&*error, &request)
                },
            };
            let retry = settings.retry.as_ref().filter(|_| !has_begun);
            let delay = retry.and_then(|retry| retry.delay(&failure()));
            if delay.is_some() || attempt > 1 {
                // A failed answer whose usage was reported is counted already.
                failed.count += u64::from(used.get().requests == 0);
            }
            let Some(delay) = delay else {
                return Err(FailedAttempts::join(attempt, error));
            };
            // The error may quote the request.
            if environment().logs_model_data {
                tracing::warn!(%error, attempt, ?delay, "a model request failed and is retried");
            } else {
                tracing::warn!(attempt, ?delay, "a model request failed and is retried");
            }
            request.earlier_attempts = attempt;
            let retry = ModelRetry::new(attempt + 1, delay, error.to_string());
            if let Some(event) = EventKind::of_model(ModelEvent::Retry(retry)) {
                self.emit(|| event).await;
            }
            if !delay.is_zero() {
                Delay::new(delay).await;
            }
        }
    }

    /// Asks the model once. `has_begun` is set when the first part of a streamed answer has come.
    async fn attempt(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
        limit: Option<Duration>,
        has_begun: &mut bool,
    ) -> Result<ModelResponse, BoxError> {
        let mut limit = limit.map(TimeLimit::new);
        match &self.events {
            None => TimeLimit::apply(limit.as_mut(), model.respond(request)).await?,
            Some(_) => {
                let attempt = StreamAttempt { has_begun, limit };
                self.stream_response(model, request, Some(attempt)).await
            }
        }
    }
}

/// The failed attempts that no response counts yet. Dropping it counts them as an entry of their
/// own.
struct FailedRequests<'a> {
    count: u64,
    /// The entry without the usage.
    request: RequestUsage,
    usage: &'a AddedUsage,
}

impl Drop for FailedRequests<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            let mut request = std::mem::take(&mut self.request);
            request.usage.requests = self.count;
            self.usage.add_request(request);
        }
    }
}

/// The error of the last of several attempts.
#[derive(Debug)]
pub(super) struct FailedAttempts {
    attempts: u32,
    error: BoxError,
}

impl FailedAttempts {
    /// The error after this number of attempts.
    fn join(attempts: u32, error: BoxError) -> BoxError {
        match attempts {
            1 => error,
            _ => Self { attempts, error }.into(),
        }
    }

    /// The number of attempts, and the error of the last one.
    pub(super) fn split(error: BoxError) -> (u32, BoxError) {
        match error.downcast::<Self>() {
            Ok(failed) => (failed.attempts, failed.error),
            Err(error) => (1, error),
        }
    }
}

impl fmt::Display for FailedAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for FailedAttempts {}

/// An attempt whose answer is streamed.
pub(super) struct StreamAttempt<'a> {
    /// Set when the first part of the answer has come.
    pub(super) has_begun: &'a mut bool,
    pub(super) limit: Option<TimeLimit>,
}

/// The time that a model may take. Time in which others are awaited does not count: a slow reader of
/// a stream is not the model's fault.
pub(super) struct TimeLimit {
    limit: Duration,
    left: Duration,
}

impl TimeLimit {
    fn new(limit: Duration) -> Self {
        Self { limit, left: limit }
    }

    /// Awaits work of the model, and cancels it when the time is over.
    pub(super) async fn apply<T>(
        limit: Option<&mut Self>,
        work: impl Future<Output = T>,
    ) -> Result<T, BoxError> {
        let Some(limit) = limit else {
            return Ok(work.await);
        };
        let start = Instant::now();
        let work = std::pin::pin!(work);
        match select(work, Delay::new(limit.left)).await {
            Either::Left((outcome, _)) => {
                limit.left = limit.left.saturating_sub(start.elapsed());
                Ok(outcome)
            }
            // Dropping the work cancels it.
            Either::Right(((), _)) => Err(ModelTimeout::new(limit.limit).into()),
        }
    }
}
