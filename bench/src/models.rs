//! Models that need no network.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use switchboard_core::{BoxError, Item, Model, ModelRequest, ModelResponse};

/// Answers the same again and again, and may keep what it is asked.
pub(crate) struct Replay {
    answers: Vec<ModelResponse>,
    next: AtomicUsize,
    kept: Option<Mutex<Vec<ModelRequest>>>,
}

impl Replay {
    pub(crate) fn new(answers: Vec<ModelResponse>, keeps_requests: bool) -> Self {
        Self {
            answers,
            next: AtomicUsize::new(0),
            kept: keeps_requests.then(Mutex::default),
        }
    }

    /// Lets go of what it kept.
    pub(crate) fn forget(&self) {
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Model for Replay {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        if let Some(kept) = &self.kept {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.answers.len();
        Ok(self.answers[at].clone())
    }
}

/// Hands off where it can, and then does what it is named for.
pub(crate) enum Waiting {
    /// Lets others go first before each answer, as a model over a network does.
    Yields {
        handoff: ModelResponse,
        end: ModelResponse,
    },
    /// Never answers after a handoff.
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
