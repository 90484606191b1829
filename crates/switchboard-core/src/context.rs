//! The application's own state, as user code sees it during a run.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What models have used, those of the run and those that user code asked, until the run counts it.
/// However a step ends, what was used in it is here.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddedUsage(Arc<Added>);

#[derive(Debug, Default)]
struct Added {
    used: Mutex<Usage>,
    /// The run that this one is part of: it counts the same.
    outer: Option<AddedUsage>,
}

impl AddedUsage {
    /// For a run that is part of the run of `outer`.
    pub(crate) fn within(outer: Self) -> Self {
        Self(Arc::new(Added {
            used: Mutex::default(),
            outer: Some(outer),
        }))
    }

    pub(crate) fn add(&self, usage: Usage) {
        *self.lock() += usage;
        if let Some(outer) = &self.0.outer {
            outer.add(usage);
        }
    }

    pub(crate) fn get(&self) -> Usage {
        *self.lock()
    }

    pub(crate) fn take(&self) -> Usage {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        // Nothing panics while the lock is held.
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Counts as part of the run what a model has used that user code asked by itself: in a tool, a
    /// filter, a guardrail, a callback. It counts also where that code then fails or is cancelled;
    /// the run's result has it, and so has every context made later.
    pub fn add_usage(&self, usage: Usage) {
        self.added.add(usage);
    }

    /// What a run that is part of this one reports to.
    pub(crate) fn added(&self) -> &AddedUsage {
        &self.added
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
