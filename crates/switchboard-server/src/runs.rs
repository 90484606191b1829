//! The runs that are under way, and those that ended a short time ago.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use switchboard_core::conversation::Revision;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, StopHandle};
use tokio::sync::Notify;

use crate::event_log::{EventLog, LoggedEvent};
use crate::team::{EndStatus, RunEnd};
use crate::tenant::Tenant;

/// All runs of a service.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    state: Mutex<State>,
    /// Notified when a run ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    by_id: HashMap<Arc<str>, Arc<RunRecord>>,
    /// Runs by the idempotency keys of their tenants.
    by_key: HashMap<(Tenant, Arc<str>), Arc<str>>,
    running: usize,
}

/// A run, under way or ended.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(crate) id: Arc<str>,
    pub(crate) tenant: Tenant,
    pub(crate) team: Arc<str>,
    /// The conversation's name for clients; `None` if nothing is kept.
    pub(crate) conversation: Option<Arc<str>>,
    pub(crate) started: SystemTime,
    pub(crate) log: Arc<EventLog>,
    idempotency_key: Option<Arc<str>>,
    stop: StopHandle,
    is_cancelled: AtomicBool,
    wait: OnceLock<Revision>,
    end: Mutex<Option<End>>,
}

/// The outcome of adding a run.
pub(crate) enum Insertion {
    Done,
    /// The tenant has begun a run with the same idempotency key before.
    Known(Arc<RunRecord>),
    /// Too many runs are under way.
    Full,
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: EndStatus,
    pub(crate) usage: Usage,
    pub(crate) time: SystemTime,
    ended: Instant,
}

impl RunRecord {
    pub(crate) fn new(
        id: Arc<str>,
        tenant: Tenant,
        team: Arc<str>,
        conversation: Option<Arc<str>>,
        log: Arc<EventLog>,
        stop: StopHandle,
        idempotency_key: Option<Arc<str>>,
    ) -> Self {
        Self {
            id,
            tenant,
            team,
            conversation,
            started: SystemTime::now(),
            log,
            idempotency_key,
            stop,
            is_cancelled: AtomicBool::new(false),
            wait: OnceLock::new(),
            end: Mutex::new(None),
        }
    }

    fn end_guard(&self) -> MutexGuard<'_, Option<End>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the end of the run; `None` while it is under way.
    pub(crate) fn end<T>(&self, read: impl FnOnce(&End) -> T) -> Option<T> {
        self.end_guard().as_ref().map(read)
    }

    /// Stops the run where it is.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.stop.stop();
    }

    /// Returns `true` if the run ended before its first step: it did not get its conversation, or was stopped at once.
    pub(crate) fn has_only_begun(&self) -> bool {
        let is_beginning_or_end = |event: &LoggedEvent| {
            matches!(
                event.event.kind,
                EventKind::RunStarted { .. }
                    | EventKind::AgentUpdated { .. }
                    | EventKind::RunFailed { .. }
                    | EventKind::RunStopped { .. }
            )
        };
        let events = self.log.so_far();
        // Otherwise the first events were dropped.
        let is_whole = events.first().is_none_or(|event| event.id == 1);
        is_whole && events.iter().all(is_beginning_or_end)
    }

    /// Notes the place in its conversation at which the run waits.
    pub(crate) fn set_wait(&self, at: Revision) {
        // A run ends once.
        let _ = self.wait.set(at);
    }

    /// The place in its conversation at which the run waits, once its last event was read.
    pub(crate) fn wait(&self) -> Option<Revision> {
        self.wait.get().copied()
    }

    /// Returns `true` if a client has cancelled the run.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

impl Runs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of runs that are under way.
    pub(crate) fn running(&self) -> usize {
        self.state().running
    }

    /// Adds a run that is about to begin, unless there are `limit` of them or one with its idempotency key.
    pub(crate) fn insert(&self, record: &Arc<RunRecord>, limit: usize) -> Insertion {
        let mut state = self.state();
        let key = record.idempotency_key.as_ref();
        let key = key.map(|key| (record.tenant.clone(), key.clone()));
        if let Some(key) = &key
            && let Some(known) = state.by_key.get(key)
            && let Some(known) = state.by_id.get(known)
        {
            return Insertion::Known(known.clone());
        }
        if state.running >= limit {
            return Insertion::Full;
        }
        state.running += 1;
        if let Some(key) = key {
            state.by_key.insert(key, record.id.clone());
        }
        state.by_id.insert(record.id.clone(), record.clone());
        Insertion::Done
    }

    /// Notes the end of a run.
    pub(crate) fn ended(&self, record: &RunRecord, end: &RunEnd) {
        *record.end_guard() = Some(End {
            status: end.status,
            usage: end.usage,
            time: SystemTime::now(),
            ended: Instant::now(),
        });
        self.state().running -= 1;
        self.ended.notify_waiters();
    }

    /// The run with this identifier, if it is the tenant's.
    pub(crate) fn get(&self, tenant: &Tenant, id: &str) -> Option<Arc<RunRecord>> {
        let state = self.state();
        let found = state.by_id.get(id)?;
        (found.tenant == *tenant).then(|| found.clone())
    }

    /// The run with this identifier, whoever has begun it.
    pub(crate) fn of_any_tenant(&self, id: &str) -> Option<Arc<RunRecord>> {
        self.state().by_id.get(id).cloned()
    }

    /// The run that the tenant has begun with this idempotency key.
    pub(crate) fn with_key(&self, tenant: &Tenant, key: &Arc<str>) -> Option<Arc<RunRecord>> {
        let id = self
            .state()
            .by_key
            .get(&(tenant.clone(), key.clone()))?
            .clone();
        self.get(tenant, &id)
    }

    /// The runs of a tenant, the latest first.
    pub(crate) fn list(&self, tenant: &Tenant) -> Vec<Arc<RunRecord>> {
        let state = self.state();
        let own = state.by_id.values().filter(|run| run.tenant == *tenant);
        let mut runs: Vec<_> = own.cloned().collect();
        drop(state);
        runs.sort_by(|a, b| (b.started, &b.id).cmp(&(a.started, &a.id)));
        runs
    }

    /// The runs of a tenant's conversation, in no order.
    pub(crate) fn of_conversation(&self, tenant: &Tenant, id: &str) -> Vec<Arc<RunRecord>> {
        let state = self.state();
        let runs = state.by_id.values();
        let own =
            runs.filter(|run| run.conversation.as_deref() == Some(id) && run.tenant == *tenant);
        own.cloned().collect()
    }

    /// Forgets runs that ended longer than `keep` ago, and the oldest of those that ended beyond `most`.
    pub(crate) fn forget_ended(&self, keep: Duration, most: usize) {
        let mut state = self.state();
        let ended = state.by_id.values();
        let ended = ended.filter_map(|run| Some((run.end(|end| end.ended)?, run.id.clone())));
        let mut ended: Vec<(Instant, Arc<str>)> = ended.collect();
        ended.sort();
        let beyond = ended.len().saturating_sub(most);
        let old = ended.iter().filter(|(at, _)| at.elapsed() > keep).count();
        for (_, id) in ended.iter().take(beyond.max(old)) {
            if let Some(run) = state.by_id.remove(id)
                && let Some(key) = &run.idempotency_key
            {
                state.by_key.remove(&(run.tenant.clone(), key.clone()));
            }
        }
    }

    /// Forgets the runs of a conversation that have ended, with their events. Returns `true` if there were any.
    pub(crate) fn forget_conversation(&self, tenant: &Tenant, id: &str) -> bool {
        let mut forgotten = Vec::new();
        let mut state = self.state();
        state.by_id.retain(|_, run| {
            let is_meant = run.conversation.as_deref() == Some(id)
                && run.tenant == *tenant
                && run.end(|_| ()).is_some();
            if is_meant {
                forgotten.push(run.clone());
            }
            !is_meant
        });
        for run in &forgotten {
            if let Some(key) = &run.idempotency_key {
                state.by_key.remove(&(tenant.clone(), key.clone()));
            }
        }
        drop(state);
        for run in &forgotten {
            run.log.remove();
        }
        !forgotten.is_empty()
    }

    /// Stops all runs: after their turn, or at once.
    pub(crate) fn stop_all(&self, stop: fn(&StopHandle)) {
        let state = self.state();
        for run in state.by_id.values() {
            stop(&run.stop);
        }
    }

    /// Waits until no run is under way.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            ended.await;
        }
    }
}
