//! The runs that are under way, and those that ended a short time ago.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use switchboard_core::conversation::Revision;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, StopHandle};
use tokio::sync::Notify;

use crate::error::ServiceError;
use crate::event_log::{EventLog, LoggedEvent};
use crate::idempotency::IdempotencyKey;
use crate::team::{EndStatus, RunEnd};
use crate::tenant::Tenant;

/// The shortest pause between looking for runs that ended long ago.
const MIN_FORGET_PAUSE: Duration = Duration::from_secs(1);

/// All runs of a service.
#[derive(Debug)]
pub(crate) struct Runs {
    state: Mutex<State>,
    /// The time for which a run that has ended is kept, and the largest number of them.
    keep_ended: Duration,
    max_ended: usize,
    /// Notified when a run ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    by_id: HashMap<Arc<str>, Arc<RunRecord>>,
    /// Runs by the idempotency keys of their tenants.
    by_key: HashMap<(Tenant, Arc<str>), Arc<str>>,
    running: usize,
    /// Set if a task forgets the runs that have ended.
    has_forgetting_task: bool,
}

/// A place among the runs that are under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunSlot(Arc<Runs>);

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.ended.notify_waiters();
    }
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
    /// Set if the conversation goes with the run.
    pub(crate) is_temporary: bool,
    idempotency_key: Option<IdempotencyKey>,
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
        idempotency_key: Option<IdempotencyKey>,
    ) -> Self {
        Self {
            id,
            tenant,
            team,
            conversation,
            started: SystemTime::now(),
            log,
            is_temporary: false,
            idempotency_key,
            stop,
            is_cancelled: AtomicBool::new(false),
            wait: OnceLock::new(),
            end: Mutex::new(None),
        }
    }

    /// Returns `true` if the run is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.end_guard().is_none()
    }

    /// Returns `true` if the run ended longer than `keep` ago.
    fn is_forgotten(&self, keep: Duration) -> bool {
        let ended = self.end(|end| end.ended);
        ended.is_some_and(|ended| ended.elapsed() > keep)
    }

    /// The name of the run's idempotency key.
    fn key_name(&self) -> Option<(Tenant, Arc<str>)> {
        let key = self.idempotency_key.as_ref()?;
        Some((self.tenant.clone(), key.name().clone()))
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
    /// No runs. Those that have ended are kept for a time, and up to a number.
    pub(crate) fn new(keep_ended: Duration, max_ended: usize) -> Self {
        Self {
            state: Mutex::default(),
            keep_ended,
            max_ended,
            ended: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of runs that are under way or about to begin.
    pub(crate) fn running(&self) -> usize {
        self.state().running
    }

    /// Reserves the place of a run that is about to begin; `None` if there are `limit` of them.
    pub(crate) fn reserve(self: &Arc<Self>, limit: usize) -> Option<RunSlot> {
        let mut state = self.state();
        if state.running >= limit {
            return None;
        }
        state.running += 1;
        drop(state);
        Some(RunSlot(self.clone()))
    }

    /// Adds a run that is about to begin, unless there is one with its idempotency key.
    pub(crate) fn insert(&self, record: &Arc<RunRecord>) -> Result<Insertion, ServiceError> {
        let mut state = self.state();
        if let Some(key) = &record.idempotency_key
            && let Some(known) = self.known(&state, &record.tenant, key)?
        {
            return Ok(Insertion::Known(known));
        }
        if let Some(name) = record.key_name() {
            state.by_key.insert(name, record.id.clone());
        }
        state.by_id.insert(record.id.clone(), record.clone());
        Ok(Insertion::Done)
    }

    /// Notes the end of a run.
    pub(crate) fn ended(self: &Arc<Self>, record: &RunRecord, end: &RunEnd) {
        *record.end_guard() = Some(End {
            status: end.status,
            usage: end.usage,
            time: SystemTime::now(),
            ended: Instant::now(),
        });
        let key = record.idempotency_key.as_ref();
        if key.is_some_and(IdempotencyKey::ends_with_run) {
            self.state().remove_key(record);
        }
        self.forget_in_time();
    }

    /// Begins the task that forgets the runs that have ended, unless there is one.
    fn forget_in_time(self: &Arc<Self>) {
        let mut state = self.state();
        if state.has_forgetting_task {
            return;
        }
        state.has_forgetting_task = true;
        drop(state);
        // The runs may be dropped before their time is over.
        let runs = Arc::downgrade(self);
        let pause = self.keep_ended.max(MIN_FORGET_PAUSE);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(runs) = runs.upgrade() else {
                    return;
                };
                runs.forget_ended();
                let mut state = runs.state();
                if state.by_id.values().all(|run| run.is_under_way()) {
                    state.has_forgetting_task = false;
                    return;
                }
            }
        });
    }

    /// The run with this identifier, if it is the tenant's.
    pub(crate) fn get(&self, tenant: &Tenant, id: &str) -> Option<Arc<RunRecord>> {
        self.kept(&self.state(), tenant, id)
    }

    fn kept(&self, state: &State, tenant: &Tenant, id: &str) -> Option<Arc<RunRecord>> {
        let found = state.by_id.get(id)?;
        let is_kept = found.tenant == *tenant && !found.is_forgotten(self.keep_ended);
        is_kept.then(|| found.clone())
    }

    /// The run with this identifier, whoever has begun it.
    pub(crate) fn of_any_tenant(&self, id: &str) -> Option<Arc<RunRecord>> {
        self.state().by_id.get(id).cloned()
    }

    /// The run that the tenant has begun with this idempotency key, unless it was for another request.
    pub(crate) fn with_key(
        &self,
        tenant: &Tenant,
        key: &IdempotencyKey,
    ) -> Result<Option<Arc<RunRecord>>, ServiceError> {
        self.known(&self.state(), tenant, key)
    }

    fn known(
        &self,
        state: &State,
        tenant: &Tenant,
        key: &IdempotencyKey,
    ) -> Result<Option<Arc<RunRecord>>, ServiceError> {
        let id = state.by_key.get(&(tenant.clone(), key.name().clone()));
        let run = id.and_then(|id| self.kept(state, tenant, id));
        if let Some(known) = run.as_ref().and_then(|run| run.idempotency_key.as_ref()) {
            key.check_same_request(known)?;
        }
        Ok(run)
    }

    /// The runs of a tenant, the latest first.
    pub(crate) fn list(&self, tenant: &Tenant) -> Vec<Arc<RunRecord>> {
        let state = self.state();
        let own = state.by_id.values().filter(|run| run.tenant == *tenant);
        let kept = own.filter(|run| !run.is_forgotten(self.keep_ended));
        let mut runs: Vec<_> = kept.cloned().collect();
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

    /// Forgets the runs that ended long ago, and the oldest of those that ended beyond their number.
    pub(crate) fn forget_ended(&self) {
        let mut state = self.state();
        let ended = state.by_id.values();
        let ended = ended.filter_map(|run| Some((run.end(|end| end.ended)?, run.id.clone())));
        let mut ended: Vec<(Instant, Arc<str>)> = ended.collect();
        ended.sort();
        let beyond = ended.len().saturating_sub(self.max_ended);
        let old = ended.iter();
        let old = old.filter(|(at, _)| at.elapsed() > self.keep_ended).count();
        for (_, id) in ended.iter().take(beyond.max(old)) {
            state.remove(id);
        }
    }

    /// Forgets a run. Those who read its events read on.
    pub(crate) fn forget(&self, id: &str) {
        self.state().remove(id);
    }

    /// Forgets the runs of a conversation that have ended. Those who read their events read on.
    pub(crate) fn forget_runs_of(&self, tenant: &Tenant, id: &str) {
        for run in self.of_conversation(tenant, id) {
            if !run.is_under_way() {
                self.forget(&run.id);
            }
        }
    }

    /// Forgets the runs of a conversation that have ended, with their events. Returns `true` if there were any.
    pub(crate) fn forget_conversation(&self, tenant: &Tenant, id: &str) -> bool {
        let mut runs = self.of_conversation(tenant, id);
        runs.retain(|run| !run.is_under_way());
        for run in &runs {
            self.forget(&run.id);
            run.log.remove();
        }
        !runs.is_empty()
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

impl State {
    fn remove(&mut self, id: &str) {
        if let Some(run) = self.by_id.remove(id) {
            self.remove_key(&run);
        }
    }

    /// Removes the idempotency key of a run, unless it stands for another one by now.
    fn remove_key(&mut self, run: &RunRecord) {
        if let Some(name) = run.key_name()
            && self.by_key.get(&name) == Some(&run.id)
        {
            self.by_key.remove(&name);
        }
    }
}
