//! The application's own state, as user code sees it during a run.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::model::Usage;

/// The application's state and what the run has used so far, given to every callback.
///
/// It dereferences to the state. The state is shared, never shown to a model; what changes in it
/// is the application's own lock or atomic.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use switchboard_core::RunContext;
///
/// struct App { transfers: AtomicU32 }
///
/// fn count(ctx: RunContext<App>) {
///     ctx.transfers.fetch_add(1, Ordering::Relaxed);
/// }
/// ```
pub struct RunContext<C = ()> {
    state: Arc<C>,
    usage: Usage,
}

impl<C> RunContext<C> {
    /// A context around the application's state, as a run would make it.
    pub fn new(state: impl Into<Arc<C>>) -> Self {
        Self::with_usage(state.into(), Usage::default())
    }

    pub(crate) fn with_usage(state: Arc<C>, usage: Usage) -> Self {
        Self { state, usage }
    }

    /// The shared state, for keeping it longer than the callback.
    pub fn state(&self) -> &Arc<C> {
        &self.state
    }

    /// What the models of this run have used so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }
}

impl<C> Deref for RunContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.state
    }
}

impl<C> Clone for RunContext<C> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            usage: self.usage,
        }
    }
}

impl<C> fmt::Debug for RunContext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}
