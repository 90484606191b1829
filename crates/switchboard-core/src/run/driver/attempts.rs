//! The attempts of a model call: their time limit, and retries.

use std::time::Duration;

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::Driver;
use crate::callback::BoxError;
use crate::context::AddedUsage;
use crate::model::{
    ModelEvent, ModelFailure, ModelHandle, ModelRequest, ModelResponse, ModelRetry, ModelTimeout,
    RetryAdvice,
};
use crate::run::stream::EventKind;

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
            let response = self.attempt(model, request.clone(), &mut has_begun);
            let error = match limited(settings.timeout, response).await {
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
            tracing::warn!(%error, attempt, ?delay, "a model request failed and is retried");
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
        has_begun: &mut bool,
    ) -> Result<ModelResponse, BoxError> {
        match &self.events {
            None => model.respond(request).await,
            Some(_) => self.stream_response(model, request, Some(has_begun)).await,
        }
    }
}

/// Cancels the work when the time is over.
async fn limited<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    let Some(limit) = limit else {
        return work.await;
    };
    match select(Box::pin(work), Delay::new(limit)).await {
        Either::Left((outcome, _)) => outcome,
        // Dropping the work cancels it.
        Either::Right(((), _)) => Err(ModelTimeout(limit).into()),
    }
}
