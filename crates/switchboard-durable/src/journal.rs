//! The journal of a run that this process has.

mod answer_parts;
mod log;
mod queue;
mod recorded;
mod state;
mod steps;
mod writing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use switchboard_core::StreamEvent;
use switchboard_core::conversation::{Commit, Committed, Expected, now};
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
    /// The step that is next was interrupted too often.
    Interrupted(String),
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
            Self::Diverged(reason) | Self::Interrupted(reason) | Self::Broken(reason) => {
                reason.clone()
            }
            Self::Draining => "this process shuts down".to_owned(),
            Self::Over => "it has ended".to_owned(),
        }
    }
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
        let mut known = run.take_known();
        let (mut state, first, owner) = loop {
            let (head, mut record) = match &known {
                Some(known) => (known.head.clone(), known.record.clone()),
                None => runs.head(id).await?,
            };
            let (revision, expires) = (head.revision, head.expires);
            let not_waiting = || {
                let message = format!("the run \"{id}\" is {}", record.status.name());
                DurableError::new(DurableErrorKind::NotWaiting, message)
            };
            match &record.status {
                RunStatus::Done { .. } | RunStatus::Failed { .. } | RunStatus::Cancelled => {
                    return Err(not_waiting());
                }
                RunStatus::Running {}
                    if is_stored && !run.is_abandoned && expires.is_some_and(|at| at > now()) =>
                {
                    return Err(taken());
                }
                RunStatus::Waiting { .. } | RunStatus::Stopped { .. }
                    if is_stored && expires.is_none() =>
                {
                    return Err(not_waiting());
                }
                _ => {}
            }
            let owner: Arc<str> = format!("{:032x}", fastrand::u128(..)).into();
            // An engine with logs executes a run again for reasons of its own.
            let is_interrupted = is_stored
                && record.owner.is_some()
                && matches!(record.status, RunStatus::Running {});
            // One that is made again from a log still waits until it has left the wait.
            if is_stored || !matches!(record.status, RunStatus::Waiting { .. }) {
                record.status = RunStatus::Running {};
            }
            record.owner = Some(owner.to_string());
            let entry = JournalEntry::Taken {
                owner: owner.to_string(),
                is_interrupted,
            };
            let entry = stored(id, &entry)?.made_in(owner.clone(), 0, 1);
            let mut commit = Commit::new(Expected::At(revision), vec![entry]);
            (commit.run, commit.number) = (owner.clone(), 1);
            commit.details = Some(details(id, &record)?);
            let waits = matches!(record.status, RunStatus::Waiting { .. });
            // One that waits stays due if it was sent a message.
            commit.expires = (!waits).then(|| Some(now() + lease));
            match runs.commit(id, commit).await? {
                Committed::At(committed) => {
                    // If the answer was lost, others may have written since, and taken the run.
                    let is_last = committed.next == revision.next + 1;
                    if !is_last {
                        known = None;
                        if runs.head(id).await?.1.owner != record.owner {
                            return Err(taken());
                        }
                    }
                    let mut state = State::new(record, committed, steps);
                    state.is_released = waits;
                    break (state, head.first, owner);
                }
                // Others have written since it was stored or read.
                _ if known.take().is_some() => {}
                // A signal may have come meanwhile, or another process.
                _ if !is_stored && attempts < ATTEMPTS => attempts += 1,
                _ => return Err(taken()),
            }
        };
        if let Some(start) = known.and_then(|known| known.start) {
            return Ok((Self::new(runs, run, owner, lease, state), start));
        }
        let entries = runs.read(id, first, state.revision.next).await;
        let start = match entries.and_then(|entries| state.read(id, entries)) {
            Err(error) if error.kind() == DurableErrorKind::Damaged => {
                let reason = error.to_string();
                stop(runs, id, &owner, state, RunStatus::Stopped { reason }).await?;
                return Err(error);
            }
            start => start?,
        };
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

    /// Waits until the run is asked to go on before the time that it waits for.
    pub(crate) async fn woken(&self) {
        self.until(|state| std::mem::take(&mut state.is_woken))
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
        if let Some(End::Over) = state.end {
            return Ok(());
        }
        if let Some(count) = state.sent.get_mut(&json)
            && *count > 0
        {
            *count -= 1;
            return Ok(());
        }
        state.queue.push_event(json);
        Ok(())
    }

    /// Prepares for driving the run again from its start in this process, after a pause. The events that it has sent are not
    /// stored twice, and those of steps that begin again do not count.
    pub(crate) async fn begin_again(&self) -> Result<(), DurableError> {
        self.flush().await?;
        let next = self.state().revision.next;
        let entries = self.0.runs.read(&self.0.id, 0, next).await?;
        let is_retracted = {
            let mut state = self.state();
            state.read_events_again(entries);
            // Otherwise, later steps of the log are recorded too.
            !state.is_replayed() && state.retract_parts(&self.0.id)?
        };
        if is_retracted {
            self.flush().await?;
        }
        Ok(())
    }

    /// Keeps the event that tells of the end of a drive, until it is known whether the run ends too.
    pub(crate) fn hold_last_event(&self, event: &StreamEvent) {
        self.state().last_event = serde_json::to_string(event).ok();
    }

    /// Sets the number of failures in a row after which the next one ends the run, and of interruptions of a step after which it
    /// does not begin again.
    pub(crate) fn set_limits(&self, failures: u32, interruptions: u32) {
        let mut state = self.state();
        (state.max_failures, state.max_interruptions) = (failures, interruptions);
    }

    /// The pause before a run is made again that was interrupted several times in a row. It is random: runs that are always taken
    /// together are interrupted together, though the steps of only one of them end the process.
    pub(crate) fn pause_after_interruption(&self) -> Option<Duration> {
        let state = self.state();
        let (times, max) = (state.interruptions, state.max_interruptions);
        if !state.is_interrupted || state.end.is_some() || times <= max / 3 || times >= max {
            return None;
        }
        let longest = Duration::from_secs(1 << (times - max / 3).min(5));
        Some(longest.mul_f64(fastrand::f64()))
    }

    /// The reason for not making the run again: its process has ended without coming to the step that is next.
    pub(crate) fn interrupted_in_replay(&self) -> Option<String> {
        let state = self.state();
        let times = state.interruptions;
        (times > state.max_interruptions).then(|| {
            format!(
                "the process that had the run has ended {times} times in a row, the last time before it began a step. Find out \
                 why, and resume the run, or cancel it"
            )
        })
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
                state.queue.push(entry);
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
            state.queue.push(entry);
        }
        Ok(())
    }
}

/// Stores that a run has stopped whose journal cannot be read: it would be taken again and again.
async fn stop(
    runs: &RunStore,
    id: &str,
    owner: &Arc<str>,
    state: State,
    status: RunStatus,
) -> Result<(), DurableError> {
    let number = state.commits + 1;
    let record = StoredRecord {
        status,
        ..state.record
    };
    let entry = stored(id, &JournalEntry::Released)?.made_in(owner.clone(), 0, number);
    let mut commit = Commit::new(Expected::At(state.revision), vec![entry]);
    (commit.run, commit.number) = (owner.clone(), number);
    commit.details = Some(details(id, &record)?);
    commit.expires = Some(None);
    // If a message has come meanwhile, the next one that takes the run stops it.
    runs.commit(id, commit).await?;
    runs.release_conversation(&record).await;
    Ok(())
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
