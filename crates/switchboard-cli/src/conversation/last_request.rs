//! Keeps the request that a model was sent last.

use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::hooks::{HookResult, RunHooks};
use switchboard_core::{Agent, ModelRequest, RunContext};
use switchboard_teamfile::Context;

/// The last request; clones share it.
#[derive(Clone, Default)]
pub(super) struct LastRequest(Arc<Mutex<Option<ModelRequest>>>);

impl LastRequest {
    /// Returns the last request.
    pub(super) fn get(&self) -> Option<ModelRequest> {
        // Nothing panics while the lock is held.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl RunHooks<Context> for LastRequest {
    async fn on_llm_start(
        &self,
        _ctx: &RunContext<Context>,
        _agent: &Agent<Context>,
        request: &ModelRequest,
    ) -> HookResult {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.clone());
        Ok(())
    }
}
