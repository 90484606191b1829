//! Steps in the log of an engine: reading it batch by batch, and adding to it.
//!
//! The driver asks for steps, and the engine for batches; both run concurrently in one task. A step that is not known yet
//! has the next batch read. Once there are none left, effects take place, and each batch has the entries that were made
//! since the one before.
//!
//! The store gets the steps after the log, several at once, for results, for readers, and for the log that follows if the run stops
//! and is resumed. It has the first ones of the log; a process that takes the run after a crash adds the others.

use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::FxHashSet;
use serde_json::value::RawValue;
use switchboard_core::approval::Interruption;
use switchboard_core::journal::StepKey;

use super::answer_parts::StepOfEvent;
use super::state::{State, StepsIn};
use super::writing::Release;
use super::{End, RunJournal, damaged, ended};
use crate::engine::{BeginWait, EMPTY_BATCH, NewBatch, StepLog};
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::RunStatus;
use crate::run_store::stored;

/// The state of the log of an engine.
#[derive(Default)]
pub(super) struct LogState {
    /// Set once there is no recorded batch left.
    is_at_end: bool,
    /// Steps that wait for an outcome or the end of the log.
    wanted: FxHashSet<StepKey>,
    /// Entries for the next batch, and the numbers of entries queued, taken for a batch, and recorded.
    queue: Vec<JournalEntry>,
    /// Entries that are recorded with the next ones.
    later: Vec<JournalEntry>,
    queued: u64,
    taken: u64,
    recorded: u64,
    /// Set if the batch in progress is to end without entries: a step has failed for a reason that may pass.
    skips: bool,
    /// Set once the driver needs no more batches.
    is_closed: bool,
}

/// A step that waits for the log.
struct Wanted<'a> {
    journal: &'a RunJournal,
    key: &'a StepKey,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.journal.state().log() {
            log.wanted.remove(self.key);
        }
    }
}

impl State {
    fn log(&mut self) -> Option<&mut LogState> {
        match &mut self.steps {
            StepsIn::Store => None,
            StepsIn::Log(log) => Some(log),
        }
    }

    /// Returns `true` if steps of the log are still made again.
    pub(super) fn is_replayed(&self) -> bool {
        matches!(&self.steps, StepsIn::Log(log) if !log.is_at_end)
    }

    /// Takes note that there is no recorded batch left.
    fn reach_end_of_log(&mut self) {
        if let Some(log) = self.log() {
            log.is_at_end = true;
        }
        self.ahead_in_log.clear();
    }

    pub(super) fn knows(&self, key: &StepKey) -> bool {
        self.outcomes.contains_key(key) || self.waits.contains(key) || self.unknown.contains(key)
    }

    /// Adds an entry that is recorded with the next ones.
    pub(super) fn add_to_log_later(&mut self, entry: JournalEntry) {
        if let Some(log) = self.log() {
            log.later.push(entry);
        }
    }

    /// Adds the entries that would have been recorded with the next ones, of a run that is done: they are stored with its end.
    pub(super) fn queue_rest_of_log(&mut self, id: &str) -> Result<(), DurableError> {
        let later = match self.log() {
            Some(log) => std::mem::take(&mut log.later),
            None => Vec::new(),
        };
        for entry in later {
            self.queue.push(stored(id, &entry)?);
        }
        Ok(())
    }

    /// Returns `true` if the store has no entry of a batch that the log has.
    fn is_missing_in_store(&self) -> bool {
        let is_over = matches!(self.end, Some(End::Over));
        !is_over && (!self.is_replayed() || self.stored_of_log == 0)
    }

    /// Returns `true` if the driver needs the next batch.
    fn needs_batch(&self) -> bool {
        let StepsIn::Log(log) = &self.steps else {
            return false;
        };
        let wants = || log.wanted.iter().any(|key| !self.knows(key));
        !log.queue.is_empty() || (!log.is_at_end && self.pauses_until.is_none() && wants())
    }
}

impl RunJournal {
    /// Waits until a condition of the state holds.
    pub(super) async fn until(&self, holds: impl Fn(&mut State) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if holds(&mut self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// Reads the log until it has what became of a step, or there is no more of it.
    pub(super) async fn read_log_up_to(&self, key: &StepKey) -> Result<(), DurableError> {
        if let Some(log) = self.state().log() {
            log.wanted.insert(key.clone());
        }
        let _wanted = Wanted { journal: self, key };
        self.0.changed.notify_waiters();
        self.until(|state| {
            let is_over = matches!(state.end, Some(End::Taken | End::Broken(_)));
            is_over
                || state.knows(key)
                || state.pauses_until.is_some()
                || state.log().is_none_or(|log| log.is_at_end)
        })
        .await;
        let state = self.state();
        if state.pauses_until.is_some() && !state.knows(key) {
            let message = format!("the run \"{}\" waits for a time", self.0.id);
            return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
        }
        drop(state);
        self.check()
    }

    /// Adds entries to the log, and waits until they are recorded.
    pub(super) async fn append_to_log(
        &self,
        entries: impl IntoIterator<Item = JournalEntry>,
    ) -> Result<(), DurableError> {
        let queued = match self.state().log() {
            None => return Ok(()),
            Some(log) => {
                let before = log.queue.len();
                log.queue.append(&mut log.later);
                log.queue.extend(entries);
                log.queued += (log.queue.len() - before) as u64;
                log.queued
            }
        };
        self.0.changed.notify_waiters();
        self.until(|state| {
            let is_over = matches!(state.end, Some(End::Taken | End::Broken(_)));
            is_over || state.log().is_none_or(|log| log.recorded >= queued)
        })
        .await;
        self.check()
    }

    /// Records what waits for later entries, so that nothing of the run comes after the entries of a wait.
    pub(crate) async fn finish_log(&self) -> Result<(), DurableError> {
        let is_finished = self.state().log().is_none_or(|log| log.later.is_empty());
        if is_finished {
            return Ok(());
        }
        self.append_to_log([]).await
    }

    /// Lets the batch in progress end, if it waits for the outcome of a step that has none.
    pub(super) fn skip_in_log(&self) {
        if let Some(log) = self.state().log() {
            log.skips = true;
        }
        self.0.changed.notify_waiters();
    }

    /// Drives a run, with the batches of a log.
    pub(crate) async fn with_log<T>(
        &self,
        log: &mut dyn StepLog,
        drive: impl Future<Output = T> + Send,
    ) -> T {
        if let Some(log) = self.state().log() {
            (log.is_closed, log.skips) = (false, false);
        }
        let drive = async {
            let driven = drive.await;
            if let Some(log) = self.state().log() {
                (log.is_closed, log.skips) = (true, true);
            }
            self.0.changed.notify_waiters();
            driven
        };
        let (driven, ()) = futures_util::future::join(drive, self.pass_batches(log)).await;
        driven
    }

    /// Passes batches between the driver and the log, until the driver needs no more.
    async fn pass_batches(&self, log: &mut dyn StepLog) {
        loop {
            self.until(|state| {
                let is_closed = state.log().is_none_or(|log| log.is_closed);
                is_closed || state.needs_batch()
            })
            .await;
            if !self.state().needs_batch() {
                return;
            }
            let this = self.clone();
            let new = move || {
                let batch = async move { this.new_batch().await };
                Box::pin(batch) as switchboard_core::callback::BoxFuture<'static, _>
            };
            let passed = log.next(Box::new(new)).await;
            if let Err(error) = passed.and_then(|batch| self.read_batch(&batch)) {
                self.set_end(End::Broken(error.to_string()));
                return;
            }
        }
    }

    /// The next batch, at the end of the log.
    async fn new_batch(&self) -> Result<String, DurableError> {
        let is_retracted = {
            let mut state = self.state();
            let is_first = state.log().is_some_and(|log| !log.is_at_end);
            state.reach_end_of_log();
            if let Some(log) = state.log() {
                log.skips = log.is_closed;
            }
            let is_over = matches!(state.end, Some(End::Over));
            is_first && !is_over && state.retract_parts(&self.0.id)?
        };
        // Before the log has an answer that readers would take for the rest of the one that was interrupted.
        if is_retracted {
            self.flush().await?;
        }
        self.0.changed.notify_waiters();
        self.until(|state| {
            let is_over = state.end.is_some();
            is_over
                || state
                    .log()
                    .is_none_or(|log| log.skips || !log.queue.is_empty())
        })
        .await;
        let entries = match self.state().log() {
            Some(log) => {
                log.taken = log.queued;
                std::mem::take(&mut log.queue)
            }
            None => Vec::new(),
        };
        let entries = self.with_parts(entries).await?;
        to_batch(&self.0.id, &entries)
    }

    /// Adds the events that the steps of a batch have sent, as far as the store may not have them: whoever takes the run after a
    /// crash does not take these steps again.
    async fn with_parts(
        &self,
        mut entries: Vec<JournalEntry>,
    ) -> Result<Vec<JournalEntry>, DurableError> {
        let steps = entries.iter().filter_map(|entry| match entry {
            JournalEntry::Step(key, _) => Some(key.clone()),
            _ => None,
        });
        let steps: Vec<StepKey> = steps.collect();
        if steps.is_empty() {
            return Ok(entries);
        }
        self.check()?;
        let take = move |journal: &Self| {
            journal.state().queue.take_events(|event| {
                let step = StepOfEvent::of(event);
                step.is_some_and(|step| steps.iter().any(|key| step.is_step(key)))
            })
        };
        let taken = match self.0.writing.try_lock() {
            Ok(_writing) => Some(take(self)),
            Err(_) => None,
        };
        let parts = match taken {
            Some(parts) => parts,
            // The write in progress may have some, and fail.
            None => {
                let taken = self.in_task(|this| async move {
                    let _writing = this.0.writing.lock().await;
                    this.check().map(|()| take(&this))
                });
                taken.await?
            }
        };
        if !parts.is_empty() {
            let parts: Result<Vec<_>, _> = parts.into_iter().map(RawValue::from_string).collect();
            let parts = parts.map_err(|error| damaged(&self.0.id, &error))?;
            entries.insert(0, JournalEntry::Events(parts));
        }
        Ok(entries)
    }

    /// Takes note of a batch that is recorded.
    fn read_batch(&self, batch: &str) -> Result<(), DurableError> {
        let entries: Vec<JournalEntry> = serde_json::from_str(batch).map_err(|error| {
            let message = format!("the log of run \"{}\" is damaged: {error}", self.0.id);
            DurableError::new(DurableErrorKind::Damaged, message)
        })?;
        {
            let mut state = self.state();
            // Entries that were queued while this batch was recorded wait for the next one.
            if let Some(log) = state.log() {
                log.recorded = log.taken;
            }
            let is_at_end = state.log().is_some_and(|log| log.is_at_end);
            let is_missing = state.is_missing_in_store();
            for entry in entries {
                if let JournalEntry::Events(parts) = entry {
                    let parts = parts.iter().filter(|_| is_missing);
                    parts.for_each(|part| state.queue.push_event(part.get().to_owned()));
                    continue;
                }
                if is_missing && entry.is_of_step() {
                    let entry = stored(&self.0.id, &entry)?;
                    state.queue.push(entry);
                } else if entry.is_of_step() {
                    state.stored_of_log = state.stored_of_log.saturating_sub(1);
                }
                let key = match &entry {
                    JournalEntry::Step(key, _) => Some(key.clone()),
                    _ => None,
                };
                state.read_step(entry);
                // Its own step has just taken place.
                if is_at_end && let Some(key) = key {
                    state.ahead.remove(&key);
                }
            }
        }
        self.0.changed.notify_waiters();
        Ok(())
    }

    /// Waits for messages to the run. Returns those of the wait with this number.
    pub(crate) async fn wait_in_log(
        &self,
        log: &mut dyn StepLog,
        wait: usize,
        interruptions: Vec<Interruption>,
    ) -> Result<Vec<Signal>, DurableError> {
        // A wait of an earlier log.
        {
            let state = self.state();
            if let Some(positions) = state.resumed.get(wait) {
                return Ok(state.signals_at(positions));
            }
        }
        self.store_before_wait().await?;
        let this = self.clone();
        let begin: BeginWait = Arc::new(move |wake| {
            let (this, interruptions) = (this.clone(), interruptions.clone());
            Box::pin(async move { this.begin_wait(wake, interruptions).await })
        });
        let batch = log.wait(begin, None).await?;
        self.read_batch(&batch)?;
        let state = self.state();
        match state.resumed.get(wait) {
            Some(positions) => Ok(state.signals_at(positions)),
            None => {
                let end = state.end.clone().unwrap_or(End::Taken);
                Err(ended(&self.0.id, &end))
            }
        }
    }

    /// Stores the steps that the log has, before the calls of a wait: a process with another team asks for other steps then,
    /// and is to find that out before its engine compares the calls.
    async fn store_before_wait(&self) -> Result<(), DurableError> {
        if matches!(self.end(), Some(End::Over)) {
            return Ok(());
        }
        self.store_log().await
    }

    /// Stores the steps that the log has and the store lacks.
    pub(super) async fn store_log(&self) -> Result<(), DurableError> {
        let is_queued = self.state().queue.has_entries();
        // A write in progress may have some, and fail.
        if is_queued || self.0.writing.try_lock().is_err() {
            self.flush().await?;
        }
        Ok(())
    }

    /// Stores that the run waits, unless a message has come. Returns a batch with the messages.
    async fn begin_wait(
        &self,
        wake: Option<String>,
        interruptions: Vec<Interruption>,
    ) -> Result<String, DurableError> {
        loop {
            let (signals, is_cancelled) = {
                let mut state = self.state();
                state.reach_end_of_log();
                if let Some(End::Over) = state.end {
                    let signals = Vec::new();
                    return to_batch(&self.0.id, &[JournalEntry::Resumed { signals }]);
                }
                (
                    state.open_signals(),
                    matches!(state.end, Some(End::Cancelled)),
                )
            };
            if is_cancelled || !signals.is_empty() {
                let release = Release {
                    status: RunStatus::Running {},
                    failures: 0,
                    due: Some(switchboard_core::conversation::now() + self.0.lease),
                    wake: None,
                };
                let batch = [JournalEntry::Resumed { signals }];
                let entry = stored(&self.0.id, &batch[0])?;
                self.state().queue.push(entry);
                self.store_state(release).await?;
                return to_batch(&self.0.id, &batch);
            }
            let release = Release {
                status: RunStatus::Waiting {
                    interruptions: interruptions.clone(),
                },
                failures: 0,
                due: None,
                wake: wake.clone(),
            };
            if self.store_state(release).await? {
                return Ok(EMPTY_BATCH.to_owned());
            }
        }
    }

    /// Waits until a time, without memory if the engine can. A message to the run ends the wait too.
    pub(crate) async fn pause_in_log(
        &self,
        log: &mut dyn StepLog,
        pause: &Pause,
    ) -> Result<(), DurableError> {
        self.store_before_wait().await?;
        let is_replayed = self.state().pauses_until.is_some();
        if !is_replayed {
            // Tells executions that make the run again which call of the log comes next.
            let marker = to_batch(&self.0.id, &[JournalEntry::Pauses { until: pause.until }])?;
            let new: NewBatch = Box::new(move || Box::pin(async move { Ok(marker) }));
            let marker = log.next(new).await?;
            self.read_batch(&marker)?;
        }
        let (this, pause) = (self.clone(), pause.clone());
        let until = pause.until;
        let begin: BeginWait = Arc::new(move |wake| {
            let (this, pause) = (this.clone(), pause.clone());
            Box::pin(async move { this.begin_pause(wake, &pause).await })
        });
        let batch = log.wait(begin, Some(until)).await?;
        self.state().pauses_until = None;
        self.read_batch(&batch)
    }

    /// Stores that the run pauses, unless the time has come or a message. Returns a batch that says so.
    async fn begin_pause(
        &self,
        wake: Option<String>,
        pause: &Pause,
    ) -> Result<String, DurableError> {
        let is_over = {
            let mut state = self.state();
            state.reach_end_of_log();
            state.end.is_some() || std::mem::take(&mut state.is_woken)
        };
        let time = switchboard_core::conversation::now();
        let goes_on = is_over || pause.until <= time;
        let over = matches!(self.end(), Some(End::Over));
        if !over {
            let release = Release {
                status: if goes_on {
                    RunStatus::Running {}
                } else {
                    RunStatus::Pending {
                        reason: Some(pause.reason.clone()),
                    }
                },
                failures: self.failures(),
                due: Some(if goes_on {
                    time + self.0.lease
                } else {
                    pause.until
                }),
                wake: wake.filter(|_| !goes_on),
            };
            // A message that came meanwhile is noticed by this.
            self.store_state(release).await?;
        }
        if goes_on || self.end().is_some() || std::mem::take(&mut self.state().is_woken) {
            return to_batch(&self.0.id, &[JournalEntry::Continued]);
        }
        Ok(EMPTY_BATCH.to_owned())
    }
}

/// A wait for a time.
#[derive(Clone)]
pub(crate) struct Pause {
    pub(crate) until: SystemTime,
    pub(crate) reason: String,
}

fn to_batch(id: &str, entries: &[JournalEntry]) -> Result<String, DurableError> {
    serde_json::to_string(entries).map_err(|error| {
        let message = format!("the steps of run \"{id}\" cannot be recorded: {error}");
        DurableError::new(DurableErrorKind::Store, message)
    })
}
