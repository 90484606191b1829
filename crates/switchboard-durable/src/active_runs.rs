//! The runs that this process has.

use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHasher};
use switchboard_core::conversation::folder_of;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::message_queues::MessageQueues;
use crate::record::RunRecord;
use crate::run_store::KnownJournal;

/// The number of groups of runs whose readers are notified together.
const GROUPS: usize = 64;

/// The runs that this process has. Clones share them.
#[derive(Clone)]
pub(crate) struct ActiveRuns(Arc<Inner>);

struct Inner {
    runs: Mutex<Runs>,
    /// Notified when a run has changed or ended, by the group of its identifier. A reader that is notified looks at its
    /// run in the store, so a change must not reach the readers of all runs.
    changed: [Notify; GROUPS],
    /// Notified when a run has ended, or waits, in the same way.
    settled: [Notify; GROUPS],
    /// Notified when this process has one run of a conversation fewer, by the group of the conversation: it may be free.
    freed: [Notify; GROUPS],
    /// Notified when this process has one run fewer.
    ended: Notify,
    queues: MessageQueues,
}

#[derive(Default)]
struct Runs {
    executed: FxHashMap<String, Executed>,
    /// Runs that this process has just stored.
    new: FxHashMap<String, KnownJournal>,
    is_draining: bool,
}

struct Executed {
    /// Wakes the execution, to look for signals.
    wake: Arc<Notify>,
    /// Set once the run has ended, or has begun to wait.
    has_settled: bool,
}

/// A run that this process has. Dropping it ends that.
pub(crate) struct ActiveRun {
    all: ActiveRuns,
    pub(crate) id: String,
    pub(crate) wake: Arc<Notify>,
    /// Set if the process that had the run shows no life, whatever the clock says of its lease.
    pub(crate) is_abandoned: bool,
    /// The journal as this process has just stored or read it.
    known: Mutex<Option<KnownJournal>>,
}

impl Default for ActiveRuns {
    fn default() -> Self {
        Self(Arc::new(Inner {
            runs: Mutex::default(),
            changed: std::array::from_fn(|_| Notify::new()),
            settled: std::array::from_fn(|_| Notify::new()),
            freed: std::array::from_fn(|_| Notify::new()),
            ended: Notify::new(),
            queues: MessageQueues::default(),
        }))
    }
}

impl ActiveRuns {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of runs that this process has.
    pub(crate) fn number(&self) -> usize {
        self.runs().executed.len()
    }

    /// The messages that wait in this process for those before them.
    pub(crate) fn queues(&self) -> &MessageQueues {
        &self.0.queues
    }

    /// Returns `true` if this process has a run, or is to execute it after earlier ones.
    pub(crate) fn is_to_execute(&self, run: &RunRecord) -> bool {
        self.has(&run.id) || self.queues().is_waiting(run)
    }

    /// Returns `true` if this process has a run.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.runs().executed.contains_key(id)
    }

    /// Returns `true` if this process has a run that has neither ended nor begun to wait since then. Those who wait for it will
    /// be told.
    pub(crate) fn is_unsettled(&self, id: &str) -> bool {
        let runs = self.runs();
        runs.executed.get(id).is_some_and(|run| !run.has_settled)
    }

    /// Adds a run; `None` if this process has it already, or takes no more runs.
    pub(crate) fn add(&self, id: &str) -> Option<ActiveRun> {
        let mut runs = self.runs();
        if runs.is_draining || runs.executed.contains_key(id) {
            return None;
        }
        let wake: Arc<Notify> = Arc::default();
        let executed = Executed {
            wake: wake.clone(),
            has_settled: false,
        };
        runs.executed.insert(id.to_owned(), executed);
        Some(ActiveRun {
            all: self.clone(),
            id: id.to_owned(),
            wake,
            is_abandoned: false,
            known: Mutex::new(runs.new.remove(id)),
        })
    }

    /// Keeps the journal of a run that was just stored, for the execution that begins before [`forget_new`](Self::forget_new).
    pub(crate) fn note_new(&self, id: &str, journal: KnownJournal) {
        self.runs().new.insert(id.to_owned(), journal);
    }

    pub(crate) fn forget_new(&self, id: &str) {
        self.runs().new.remove(id);
    }

    /// Wakes a run that this process has. Returns `false` if it has not.
    pub(crate) fn wake(&self, id: &str) -> bool {
        let runs = self.runs();
        let executed = runs.executed.get(id);
        if let Some(executed) = executed {
            executed.wake.notify_one();
        }
        executed.is_some()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.runs().is_draining
    }

    /// Takes no more runs, and wakes all.
    pub(crate) fn drain(&self) {
        let mut runs = self.runs();
        runs.is_draining = true;
        for executed in runs.executed.values() {
            executed.wake.notify_one();
        }
    }

    /// Waits until this process has no runs. Returns `false` if it has some after `time`.
    pub(crate) async fn emptied(&self, time: Duration) -> bool {
        let emptied = async {
            loop {
                let ended = self.0.ended.notified();
                if self.runs().executed.is_empty() {
                    return;
                }
                ended.await;
            }
        };
        tokio::time::timeout(time, emptied).await.is_ok()
    }

    /// Tells readers that a run has changed.
    pub(crate) fn notify(&self, id: &str) {
        self.0.changed[group(id)].notify_waiters();
    }

    /// Waits until a run of this process has changed, from the time of the call on. May also end if another run has.
    pub(crate) fn changed(&self, id: &str) -> Notified<'_> {
        self.0.changed[group(id)].notified()
    }

    /// Tells those who wait for a run that it has ended, or waits.
    pub(crate) fn notify_settled(&self, id: &str) {
        if let Some(executed) = self.runs().executed.get_mut(id) {
            executed.has_settled = true;
        }
        self.0.settled[group(id)].notify_waiters();
    }

    /// Waits until a run that this process has ends or waits, from the time of the call on. May also end if another does.
    pub(crate) fn settled(&self, id: &str) -> Notified<'_> {
        self.0.settled[group(id)].notified()
    }

    /// Waits until a run of the same conversation has ended in this process, or let it go, from the time of the call on. May also
    /// end if one of another conversation has.
    pub(crate) fn freed(&self, id: &str) -> Notified<'_> {
        self.0.freed[group(folder_of(id))].notified()
    }
}

fn group(id: &str) -> usize {
    let hash = BuildHasherDefault::<FxHasher>::default().hash_one(id);
    usize::try_from(hash % GROUPS as u64).unwrap_or_default()
}

impl ActiveRun {
    fn known(&self) -> MutexGuard<'_, Option<KnownJournal>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the journal as it was read, unless this process has just stored it.
    pub(crate) fn note_known(&self, journal: KnownJournal) {
        self.known().get_or_insert(journal);
    }

    /// The state of the run, if its journal is known.
    pub(crate) fn known_record(&self) -> Option<RunRecord> {
        let known = self.known();
        known.as_ref().map(|known| known.to_record(&self.id))
    }

    /// Takes the journal, if it is known.
    pub(crate) fn take_known(&self) -> Option<KnownJournal> {
        self.known().take()
    }

    /// Waits for a time, or until the run is woken.
    pub(crate) async fn pause(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.wake.notified()).await;
    }

    pub(crate) fn all(&self) -> &ActiveRuns {
        &self.all
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.all.runs().executed.remove(&self.id);
        self.all.notify(&self.id);
        self.all.notify_settled(&self.id);
        self.all.0.freed[group(folder_of(&self.id))].notify_waiters();
        self.all.0.ended.notify_waiters();
    }
}
