//! The runs that this process has.

use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHasher};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The number of groups of runs for which is waited together.
const GROUPS: usize = 64;

/// The runs that this process has. Clones share them.
#[derive(Clone)]
pub(crate) struct ActiveRuns(Arc<Inner>);

struct Inner {
    runs: Mutex<Runs>,
    /// Notified when a run of this process has changed or ended.
    changed: Notify,
    /// Notified when a run of this process has ended, or waits, by the group of its identifier. Those who wait for a run look
    /// at it in the store when they are notified, so they must not be for each change of each run.
    settled: [Notify; GROUPS],
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

impl Default for ActiveRuns {
    fn default() -> Self {
        Self(Arc::new(Inner {
            runs: Mutex::default(),
            changed: Notify::new(),
            settled: std::array::from_fn(|_| Notify::new()),
        }))
    }
}

impl ActiveRuns {
    fn group(&self, id: &str) -> &Notify {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(id);
        &self.0.settled[usize::try_from(hash % GROUPS as u64).unwrap_or_default()]
    }

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

    /// Waits until a run of this process has changed, from the time of the call on.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    /// Returns `true` if this process has a run.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.runs().wake.contains_key(id)
    }

    /// Tells those who wait for a run that it has ended, or waits.
    pub(crate) fn notify_settled(&self, id: &str) {
        self.group(id).notify_waiters();
    }

    /// Waits until a run that this process has ends or waits, from the time of the call on. May also end if another does.
    pub(crate) fn settled(&self, id: &str) -> Notified<'_> {
        self.group(id).notified()
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
        self.all.notify_settled(&self.id);
    }
}
