//! The attempts of a model call: their time limit, and retries.

use std::time::{Duration, Instant};

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::Driver;
use crate::callback::BoxError;
use crate::environment::environment;
use crate::model::{
    AddedUsage, ModelEvent, ModelFailure, ModelHandle, ModelRequest, ModelResponse, ModelRetry,
    ModelTimeout, RetryAdvice,
};
use crate::stream::EventKind;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks the model, with the time limit and the retries of the settings. The failed attempts count
    /// as requests of the response.
    pub(super) async fn ask_with_retries(
        &self,
        model: &ModelHandle,
        mut request: ModelRequest,
    ) -> Result<ModelResponse, BoxError> {
        let settings = request.settings.clone();
        let mut attempt = 1;
        let mut failed_requests = 0;
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
                    if failed_requests > 0 {
                        let requests = &mut response.usage.requests;
                        *requests = (*requests).max(1).saturating_add(failed_requests);
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
            let Some(retry) = settings.retry.as_ref().filter(|_| !has_begun) else {
                return Err(error);
            };
            let failure = ModelFailure {
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
            let Some(delay) = retry.delay(&failure) else {
                return Err(error);
            };
            // The error may quote the request.
            if environment().logs_model_data {
                tracing::warn!(%error, attempt, ?delay, "a model request failed and is retried");
            } else {
                tracing::warn!(attempt, ?delay, "a model request failed and is retried");
            }
            attempt += 1;
            // A failed answer whose usage was reported is counted already.
            failed_requests += u64::from(used.get().requests == 0);
            let retry = ModelRetry::new(attempt, delay, error.to_string());
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
