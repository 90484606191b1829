//! The journal of a run that this process has.

mod answer_parts;
mod log;
mod recorded;
mod state;
mod steps;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::value::RawValue;
use switchboard_core::StreamEvent;
use switchboard_core::conversation::{Commit, Committed, Entry, Expected, Revision, now};
use switchboard_core::journal::StepKey;
use tokio::sync::Notify;

pub(crate) use self::log::Pause;
pub(crate) use self::recorded::Recorded;
use self::state::{State, StepsIn};
use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::{RunStatus, StoredRecord};
use crate::run_store::{RunStore, details, stored};

/// The number of times that an entry is added beside signals of others.
const ATTEMPTS: usize = 64;

/// The first pause before a write that failed is tried again.
const WRITE_PAUSE: Duration = Duration::from_millis(20);

/// The journal of a run that this process has. Clones share it.
#[derive(Clone)]
pub(crate) struct RunJournal(Arc<Inner>);

struct Inner {
    runs: RunStore,
    id: String,
    /// The name of this process for this run, which no other time that it is taken has.
    owner: Arc<str>,
    lease: Duration,
    state: Mutex<State>,
    /// Held while entries are written: the writer takes all that wait. Only tasks of their own hold it, so that it is not
    /// held by a future that nobody polls.
    writing: tokio::sync::Mutex<()>,
    /// Notified when the run cannot go on, or the state of the log has changed.
    changed: Notify,
    /// Notified when entries are written.
    readers: ActiveRuns,
}

/// The reason for which the run cannot go on in this process.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// Another process has the run.
    Taken,
    Cancelled,
    /// The code of today does not do what the journal has.
    Diverged(String),
    /// The journal cannot be read or written.
    Broken(String),
    /// This process takes no further steps.
    Draining,
    /// The run had ended before. Its recorded steps are made again, and no others.
    Over,
}

impl End {
    fn message(&self) -> String {
        match self {
            Self::Taken => "another process has taken the run".to_owned(),
            Self::Cancelled => "the run was cancelled".to_owned(),
            Self::Diverged(reason) | Self::Broken(reason) => reason.clone(),
            Self::Draining => "this process shuts down".to_owned(),
            Self::Over => "it has ended".to_owned(),
        }
    }
}

/// The state in which a run is let go.
struct Release {
    status: RunStatus,
    failures: u32,
    due: Option<SystemTime>,
    wake: Option<String>,
}

/// The condition under which a state is stored.
#[derive(Clone, Copy)]
enum Waits {
    Never,
    /// Not if a signal has come meanwhile.
    UnlessSignalled,
}

impl RunJournal {
    /// Takes a run whose steps are in the store. From now on a process that had it before cannot write.
    ///
    /// # Errors
    /// [`DurableErrorKind::Taken`] if another process has it, and [`DurableErrorKind::NotWaiting`] if it has ended.
    pub(crate) async fn take(
        runs: &RunStore,
        run: &ActiveRun,
        lease: Duration,
    ) -> Result<(Self, Box<RawValue>), DurableError> {
        Self::take_as(runs, run, lease, StepsIn::Store).await
    }

    /// Takes a run whose steps are in the log of an engine, which has one execution of it only.
    ///
    /// # Errors
    /// [`DurableErrorKind::NotWaiting`] if it has ended.
    pub(crate) async fn take_logged(
        runs: &RunStore,
        run: &ActiveRun,
        lease: Duration,
    ) -> Result<(Self, Box<RawValue>), DurableError> {
        Self::take_as(runs, run, lease, StepsIn::Log(Box::default())).await
    }

    async fn take_as(
        runs: &RunStore,
        run: &ActiveRun,
        lease: Duration,
        steps: StepsIn,
    ) -> Result<(Self, Box<RawValue>), DurableError> {
        let id = &*run.id;
        let is_stored = matches!(steps, StepsIn::Store);
        let taken = || {
            let message = format!("another process has the run \"{id}\"");
            DurableError::new(DurableErrorKind::Taken, message)
        };
        let mut attempts = 0;
        let (mut state, first, owner) = loop {
            let (head, mut record) = runs.head(id).await?;
            let not_waiting = || {
                let message = format!("the run \"{id}\" is {}", record.status.name());
                DurableError::new(DurableErrorKind::NotWaiting, message)
            };
            match &record.status {
                RunStatus::Done { .. } | RunStatus::Failed { .. } | RunStatus::Cancelled => {
                    return Err(not_waiting());
                }
                RunStatus::Running {}
                    if is_stored
                        && !run.is_abandoned
                        && head.expires.is_some_and(|at| at > now()) =>
                {
                    return Err(taken());
                }
                RunStatus::Waiting { .. } | RunStatus::Stopped { .. }
                    if is_stored && head.expires.is_none() =>
                {
                    return Err(not_waiting());
                }
                _ => {}
            }
            let owner: Arc<str> = format!("{:032x}", fastrand::u128(..)).into();
            // One that is made again from a log still waits until it has left the wait.
            if is_stored || !matches!(record.status, RunStatus::Waiting { .. }) {
                record.status = RunStatus::Running {};
            }
            record.owner = Some(owner.to_string());
            let entry = JournalEntry::Taken {
                owner: owner.to_string(),
            };
            let entry = stored(id, &entry)?.made_in(owner.clone(), 0, 1);
            let mut commit = Commit::new(Expected::At(head.revision), vec![entry]);
            (commit.run, commit.number) = (owner.clone(), 1);
            commit.details = Some(details(id, &record)?);
            let waits = matches!(record.status, RunStatus::Waiting { .. });
            // One that waits stays due if it was sent a message.
            commit.expires = (!waits).then(|| Some(now() + lease));
            match runs.commit(id, commit).await? {
                Committed::At(revision) => {
                    let mut state = State::new(record, revision, steps);
                    state.is_released = waits;
                    break (state, head.first, owner);
                }
                // A signal may have come meanwhile, or another process.
                _ if !is_stored && attempts < ATTEMPTS => attempts += 1,
                _ => return Err(taken()),
            }
        };
        let entries = runs.read(id, first, state.revision.next).await?;
        let start = state.read(id, entries)?;
        if is_stored {
            state.retract_parts(id)?;
        }
        Ok((Self::new(runs, run, owner, lease, state), start))
    }

    /// Opens the journal of a run that has ended and whose steps are in the log of an engine, to make them again.
    /// Nothing is written.
    pub(crate) async fn reopen_logged(
        runs: &RunStore,
        run: &ActiveRun,
        lease: Duration,
    ) -> Result<(Self, Box<RawValue>), DurableError> {
        let (head, record) = runs.head(&run.id).await?;
        let steps = StepsIn::Log(Box::default());
        let mut state = State::new(record, head.revision, steps);
        let entries = runs.read(&run.id, head.first, head.revision.next).await?;
        let start = state.read(&run.id, entries)?;
        (state.end, state.is_released) = (Some(End::Over), true);
        Ok((Self::new(runs, run, "".into(), lease, state), start))
    }

    fn new(
        runs: &RunStore,
        run: &ActiveRun,
        owner: Arc<str>,
        lease: Duration,
        state: State,
    ) -> Self {
        Self(Arc::new(Inner {
            runs: runs.clone(),
            id: run.id.clone(),
            owner,
            lease,
            state: Mutex::new(state),
            writing: tokio::sync::Mutex::default(),
            changed: Notify::new(),
            readers: run.all().clone(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// The state of the run as this process has stored it last.
    pub(crate) fn record(&self) -> StoredRecord {
        self.state().record.clone()
    }

    /// The version of the team that the run goes on with.
    pub(crate) fn version(&self) -> Option<String> {
        self.state().version.clone()
    }

    pub(crate) fn failures(&self) -> u32 {
        self.state().record.failures
    }

    pub(crate) fn set_failures(&self, failures: u32) {
        self.state().record.failures = failures;
    }

    pub(crate) fn lease(&self) -> Duration {
        self.0.lease
    }

    /// Waits until work in progress is of no use any more.
    pub(crate) async fn over(&self) {
        self.until(|state| match state.end {
            Some(End::Taken | End::Broken(_)) => true,
            Some(End::Cancelled) => !state.is_replayed(),
            _ => false,
        })
        .await;
    }

    /// Returns `true` if the run goes no further here. The recorded steps of a log are made again also if the run
    /// was cancelled or has ended meanwhile: its engine may compare them with those of before.
    pub(crate) fn stops(&self) -> bool {
        let state = self.state();
        match state.end {
            None | Some(End::Over) => false,
            Some(End::Cancelled) => !state.is_replayed(),
            Some(_) => true,
        }
    }

    /// The reason for which the run cannot go on here.
    pub(crate) fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    fn set_end(&self, end: End) {
        {
            let mut state = self.state();
            // What cannot be read or written any more has no other end.
            match &state.end {
                Some(End::Taken | End::Broken(_)) => {}
                Some(_) if !matches!(end, End::Taken | End::Broken(_)) => {}
                _ => state.end = Some(end),
            }
        }
        self.0.changed.notify_waiters();
    }

    /// The time that the run waits for, where its log has that wait next.
    pub(crate) fn pauses_until(&self) -> Option<SystemTime> {
        self.state().pauses_until
    }

    /// Lets no further step begin in this process.
    pub(crate) fn drain(&self) {
        self.set_end(End::Draining);
    }

    /// Returns `true` if a step has taken place in this process.
    pub(crate) fn is_live(&self) -> bool {
        self.state().is_live
    }

    /// Recorded steps that the replay has not come to, in order.
    pub(crate) fn steps_ahead(&self) -> Vec<StepKey> {
        let state = self.state();
        let ahead = state.ahead.iter().chain(&state.ahead_in_log);
        let mut ahead: Vec<StepKey> = ahead.cloned().collect();
        drop(state);
        ahead.sort_by_key(|key| (key.turn, key.to_string()));
        ahead
    }

    /// The signals of a wait, counted from 0: those of before, or all that no earlier wait has taken. `None` if there
    /// are none yet.
    pub(crate) async fn signals(&self, wait: usize) -> Result<Option<Vec<Signal>>, DurableError> {
        let (positions, is_new) = {
            let state = self.state();
            match state.resumed.get(wait) {
                Some(positions) => (positions.clone(), false),
                None => (state.open_signals(), true),
            }
        };
        if positions.is_empty() {
            return Ok(None);
        }
        if is_new {
            let entry = JournalEntry::Resumed {
                signals: positions.clone(),
            };
            self.append([entry]).await?;
            self.state().resumed.push(positions.clone());
        }
        Ok(Some(self.state().signals_at(&positions)))
    }

    /// Stores an event of the stream, with the next entries that are written. One that was stored before the run was
    /// interrupted is not stored again.
    pub(crate) fn send(&self, event: &StreamEvent) -> Result<(), DurableError> {
        let json = serde_json::to_string(event).map_err(|error| damaged(&self.0.id, &error))?;
        let mut state = self.state();
        if let Some(count) = state.sent.get_mut(&json)
            && *count > 0
        {
            *count -= 1;
            return Ok(());
        }
        let event = RawValue::from_string(json).map_err(|error| damaged(&self.0.id, &error))?;
        let entry = stored(&self.0.id, &JournalEntry::Event(event))?;
        state.push(entry);
        Ok(())
    }

    /// Keeps the event that tells of the end of a drive, until it is known whether the run ends too.
    pub(crate) fn hold_last_event(&self, event: &StreamEvent) {
        let json = serde_json::to_string(event);
        self.state().last_event = json.and_then(RawValue::from_string).ok();
    }

    /// Sets the number of failures in a row after which the next one ends the run.
    pub(crate) fn set_max_failures(&self, number: u32) {
        self.state().max_failures = number;
    }

    /// Returns `true` if entries wait to be written.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.state().queue.is_empty()
    }

    /// Writes entries of steps, to the store or to the log.
    async fn append(
        &self,
        entries: impl IntoIterator<Item = JournalEntry>,
    ) -> Result<(), DurableError> {
        if self.state().is_logged() {
            return self.append_to_log(entries).await;
        }
        {
            let mut state = self.state();
            for entry in entries {
                let entry = stored(&self.0.id, &entry)?;
                state.push(entry);
            }
        }
        self.flush().await
    }

    /// Adds an entry of a step that is written with the next one.
    fn append_later(&self, entry: JournalEntry) -> Result<(), DurableError> {
        let mut state = self.state();
        if state.is_logged() {
            state.add_to_log_later(entry);
        } else {
            let entry = stored(&self.0.id, &entry)?;
            state.push(entry);
        }
        Ok(())
    }

    /// Writes everything that waits. Writers that come while another one writes share the next write.
    pub(crate) async fn flush(&self) -> Result<(), DurableError> {
        let queued = self.state().queued;
        self.in_task(move |this| async move {
            let _writing = this.0.writing.lock().await;
            if this.state().written >= queued {
                return this.check();
            }
            this.write(None, Waits::Never).await.map(drop)
        })
        .await
    }

    /// Begins to extend the lease, which also notices signals and other owners. If that fails, the run cannot go on here.
    pub(crate) fn extend_soon(&self) {
        let this = self.clone();
        drop(tokio::spawn(async move { this.extend_now().await }));
    }

    async fn extend_now(&self) -> Result<(), DurableError> {
        let _writing = self.0.writing.lock().await;
        // A lease that is given back stays so.
        if self.state().is_released {
            return Ok(());
        }
        self.write(None, Waits::Never).await.map(drop)
    }

    /// Lets the run go, with this status. Returns `false` if it is to wait and a signal has come meanwhile.
    pub(crate) async fn release(
        &self,
        status: RunStatus,
        failures: u32,
        pause: Option<Duration>,
    ) -> Result<bool, DurableError> {
        let last_event = self.state().last_event.take();
        if let (RunStatus::Failed { .. } | RunStatus::Cancelled, Some(event)) =
            (&status, last_event)
        {
            let entry = stored(&self.0.id, &JournalEntry::Event(event))?;
            self.state().push(entry);
        }
        let release = Release {
            status,
            failures,
            due: pause.map(|pause| now() + pause),
            wake: None,
        };
        self.store_state(release).await
    }

    async fn store_state(&self, release: Release) -> Result<bool, DurableError> {
        let waits = match release.status {
            RunStatus::Waiting { .. } => Waits::UnlessSignalled,
            _ => Waits::Never,
        };
        self.in_task(move |this| async move {
            let _writing = this.0.writing.lock().await;
            this.write(Some(release), waits).await
        })
        .await
    }

    /// Does something in a task of its own, which ends also if nobody waits for it any more: entries that were taken from
    /// the queue are written.
    async fn in_task<T, F>(&self, work: impl FnOnce(Self) -> F) -> Result<T, DurableError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DurableError>> + Send + 'static,
    {
        match tokio::spawn(work(self.clone())).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let message = format!("the journal of run \"{}\" failed: {error}", self.0.id);
                Err(DurableError::new(DurableErrorKind::Store, message))
            }
        }
    }

    fn check(&self) -> Result<(), DurableError> {
        match &self.state().end {
            Some(end @ (End::Taken | End::Broken(_))) => Err(ended(&self.0.id, end)),
            _ => Ok(()),
        }
    }

    /// Commits the queue, and the new state if there is one. The caller holds `writing`.
    async fn write(&self, release: Option<Release>, waits: Waits) -> Result<bool, DurableError> {
        self.check()?;
        let Inner {
            runs, id, owner, ..
        } = &*self.0;
        let (entries, queued, mut revision, number) = {
            let mut state = self.state();
            state.commits += 1;
            let entries = std::mem::take(&mut state.queue);
            (entries, state.queued, state.revision, state.commits)
        };
        let stamped = entries
            .into_iter()
            .map(|entry| entry.made_in(owner.clone(), 0, number));
        let entries: Vec<Entry> = stamped.collect();
        let record = release.as_ref().map(|release| StoredRecord {
            status: release.status.clone(),
            failures: release.failures,
            wake: release.wake.clone(),
            version: self.version(),
            ..self.record()
        });
        let begun = Instant::now();
        let mut pause = WRITE_PAUSE;
        for _ in 0..ATTEMPTS {
            let mut commit = Commit::new(Expected::At(revision), entries.clone());
            (commit.run, commit.number) = (owner.clone(), number);
            match (&release, &record) {
                (Some(release), Some(record)) => {
                    commit.details = Some(details(id, record)?);
                    commit.expires = Some(release.due);
                }
                _ => commit.expires = Some(Some(now() + self.0.lease)),
            }
            // A commit that was made, and whose answer was lost, is found by its number.
            let written = match runs.commit(id, commit).await {
                Ok(Committed::At(revision)) => Ok(Some(revision)),
                Ok(_) => self.catch_up(revision).await.map(|caught_up| {
                    revision = caught_up;
                    None
                }),
                Err(error) => Err(error),
            };
            match written {
                Err(error) if matches!(self.end(), Some(End::Taken)) => return Err(error),
                Err(error) if begun.elapsed() < self.0.lease / 2 => {
                    tracing::warn!(run = id, %error, "the journal cannot be written; it is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.0.lease / 8);
                    continue;
                }
                // Entries are lost, so that no later ones may be written.
                Err(error) => {
                    self.set_end(End::Broken(error.to_string()));
                    return Err(error);
                }
                Ok(Some(revision)) => {
                    let mut state = self.state();
                    state.revision = revision;
                    state.written = queued;
                    let is_released = record.is_some();
                    if let Some(record) = record {
                        state.is_released = !matches!(record.status, RunStatus::Running {});
                        state.record = record;
                    }
                    drop(state);
                    self.0.readers.notify(id);
                    if is_released {
                        self.0.readers.notify_settled(id);
                    }
                    return Ok(true);
                }
                Ok(None) => {}
            }
            if let Waits::UnlessSignalled = waits {
                let mut state = self.state();
                let mut queue = entries;
                queue.append(&mut state.queue);
                state.queue = queue;
                return Ok(false);
            }
        }
        let message = format!("too many signals were sent to the run \"{id}\" at once");
        self.set_end(End::Broken(message.clone()));
        Err(DurableError::new(DurableErrorKind::Store, message))
    }

    /// Reads what others have added since a revision. Returns the new one, unless another process has the run.
    async fn catch_up(&self, seen: Revision) -> Result<Revision, DurableError> {
        let Inner {
            runs, id, owner, ..
        } = &*self.0;
        let (head, record) = runs.head(id).await?;
        let is_mine = record.owner.as_deref() == Some(&**owner);
        if !is_mine || head.revision.epoch != seen.epoch {
            self.state().end = Some(End::Taken);
            self.0.changed.notify_waiters();
            return Err(ended(id, &End::Taken));
        }
        let entries = runs.read(id, seen.next, head.revision.next).await?;
        {
            let mut state = self.state();
            for (position, entry) in entries {
                if let JournalEntry::Signal(signal) = entry {
                    state.take_signal(position, signal);
                }
            }
            state.revision = head.revision;
        }
        self.0.changed.notify_waiters();
        Ok(head.revision)
    }
}

fn damaged(id: &str, error: &serde_json::Error) -> DurableError {
    let message = format!("an event of the run \"{id}\" cannot be stored: {error}");
    DurableError::new(DurableErrorKind::Damaged, message)
}

fn ended(id: &str, end: &End) -> DurableError {
    let kind = match end {
        End::Taken => DurableErrorKind::Taken,
        End::Draining => DurableErrorKind::Closed,
        _ => DurableErrorKind::Store,
    };
    DurableError::new(kind, format!("the run \"{id}\" stops: {}", end.message()))
}
