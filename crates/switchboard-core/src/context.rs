//! The application's own state, as user code sees it during a run.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

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
    added: AddedUsage,
}

/// What user code has used beside the run's own models, until the run counts it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddedUsage(Arc<Mutex<Usage>>);

impl AddedUsage {
    fn add(&self, usage: Usage) {
        // Nothing panics while the lock is held; likewise below.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    pub(crate) fn get(&self) -> Usage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Usage {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<C> RunContext<C> {
    /// A context around the application's state, as a run would make it.
    pub fn new(state: impl Into<Arc<C>>) -> Self {
        Self::with_usage(state.into(), Usage::default(), AddedUsage::default())
    }

    pub(crate) fn with_usage(state: Arc<C>, usage: Usage, added: AddedUsage) -> Self {
        Self {
            state,
            usage,
            added,
        }
    }

    /// The shared state, for keeping it longer than the callback.
    pub fn state(&self) -> &Arc<C> {
        &self.state
    }

    /// What the models of this run had used when this context was made.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Counts as part of the run what a model has used that user code asked by itself, in a filter
    /// or a callback for instance. The run's result has it, and so has every context made later.
    ///
    /// A tool uses [`ToolContext::add_usage`](crate::ToolContext::add_usage), which counts with the
    /// tool's result.
    pub fn add_usage(&self, usage: Usage) {
        self.added.add(usage);
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
            added: self.added.clone(),
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
