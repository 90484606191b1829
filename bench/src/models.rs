//! Models without a network.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use switchboard_core::callback::BoxError;
use switchboard_core::{Item, Model, ModelRequest, ModelResponse};

/// A model that repeats a list of responses, and may record its requests.
pub(crate) struct Replay {
    responses: Vec<ModelResponse>,
    next: AtomicUsize,
    requests: Option<Mutex<Vec<ModelRequest>>>,
}

impl Replay {
    pub(crate) fn new(responses: Vec<ModelResponse>, records_requests: bool) -> Self {
        Self {
            responses,
            next: AtomicUsize::new(0),
            requests: records_requests.then(Mutex::default),
        }
    }

    /// Drops the recorded requests.
    pub(crate) fn clear(&self) {
        if let Some(requests) = &self.requests {
            requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }
}

impl Model for Replay {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        if let Some(requests) = &self.requests {
            requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.responses.len();
        Ok(self.responses[at].clone())
    }
}

/// A model that calls a handoff if there is one.
pub(crate) enum Waiting {
    /// Yields to other tasks before each response, as a model over a network does.
    Yields {
        handoff: ModelResponse,
        end: ModelResponse,
    },
    /// Never responds after a handoff.
    Parks { handoff: ModelResponse },
}

impl Waiting {
    pub(crate) fn yields() -> Self {
        Self::Yields {
            handoff: handoff(),
            end: ModelResponse::new([Item::output_message("msg_1", "Done.")]),
        }
    }

    pub(crate) fn parks() -> Self {
        Self::Parks { handoff: handoff() }
    }
}

fn handoff() -> ModelResponse {
    ModelResponse::new([Item::function_call("call_1", "transfer_to_billing", "{}")])
}

impl Model for Waiting {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let first = !request.handoffs.is_empty();
        match self {
            Self::Yields { handoff, end } => {
                tokio::task::yield_now().await;
                Ok(if first { handoff } else { end }.clone())
            }
            Self::Parks { handoff } if first => Ok(handoff.clone()),
            Self::Parks { .. } => std::future::pending().await,
        }
    }
}
