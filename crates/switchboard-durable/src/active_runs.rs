//! The runs that this process has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

/// The runs that this process has. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ActiveRuns(Arc<Inner>);

#[derive(Default)]
struct Inner {
    runs: Mutex<Runs>,
    /// Notified when a run of this process has changed or ended.
    changed: Notify,
}

#[derive(Default)]
struct Runs {
    /// Wakes the execution of a run, to look for signals.
    wake: FxHashMap<String, Arc<Notify>>,
    is_draining: bool,
}

/// A run that this process has. Dropping it ends that.
pub(crate) struct ActiveRun {
    all: ActiveRuns,
    pub(crate) id: String,
    pub(crate) wake: Arc<Notify>,
}

impl ActiveRuns {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run; `None` if this process has it already, or takes no more runs.
    pub(crate) fn add(&self, id: &str) -> Option<ActiveRun> {
        let mut runs = self.runs();
        if runs.is_draining || runs.wake.contains_key(id) {
            return None;
        }
        let wake: Arc<Notify> = Arc::default();
        runs.wake.insert(id.to_owned(), wake.clone());
        Some(ActiveRun {
            all: self.clone(),
            id: id.to_owned(),
            wake,
        })
    }

    /// Wakes a run that this process has. Returns `false` if it has not.
    pub(crate) fn wake(&self, id: &str) -> bool {
        let runs = self.runs();
        let wake = runs.wake.get(id);
        if let Some(wake) = wake {
            wake.notify_one();
        }
        wake.is_some()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.runs().is_draining
    }

    /// Takes no more runs, and wakes all.
    pub(crate) fn drain(&self) {
        let mut runs = self.runs();
        runs.is_draining = true;
        runs.wake.values().for_each(|wake| wake.notify_one());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs().wake.is_empty()
    }

    /// Tells readers that a run has changed.
    pub(crate) fn notify(&self) {
        self.0.changed.notify_waiters();
    }

    /// Waits until a run of this process has changed.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

impl ActiveRun {
    pub(crate) fn all(&self) -> &ActiveRuns {
        &self.all
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.all.runs().wake.remove(&self.id);
        self.all.notify();
    }
}
