//! The contents of a journal, as far as they are read.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;
use switchboard_core::conversation::Revision;
use switchboard_core::journal::{StepKey, StepKind};

use super::End;
use super::answer_parts::{AnswerParts, StepOfEvent};
use super::log::LogState;
use super::queue::Queue;
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::events::positions_in;
use crate::record::StoredRecord;
use crate::run_store::stored;

/// The place of the entries of steps.
pub(super) enum StepsIn {
    /// Between the other entries of the run, in its store.
    Store,
    /// In the log of an engine.
    Log(Box<LogState>),
}

pub(super) struct State {
    pub(super) record: StoredRecord,
    pub(super) revision: Revision,
    pub(super) commits: u32,
    pub(super) steps: StepsIn,
    /// The recorded outcomes.
    pub(super) outcomes: FxHashMap<StepKey, Arc<str>>,
    /// The recorded steps that the replay has not come to.
    pub(super) ahead: FxHashSet<StepKey>,
    /// The recorded steps that are in a part of the log that is not read yet.
    pub(super) ahead_in_log: FxHashSet<StepKey>,
    /// The steps of the log that the store has, and the signals of its waits.
    pub(super) in_log: FxHashSet<StepKey>,
    /// The number of entries of steps that the store has of the part of the log that is not read yet: the first ones.
    pub(super) stored_of_log: usize,
    waits_in_log: Vec<Vec<u64>>,
    /// The number of waits that the run has left in earlier logs.
    resumed_before: usize,
    /// Steps that may take place once, and that have begun.
    pub(super) begun: FxHashSet<StepKey>,
    /// Of these, the ones that were interrupted.
    pub(super) unknown: FxHashSet<StepKey>,
    /// Steps whose tools waited for a person.
    pub(super) waits: FxHashSet<StepKey>,
    /// Set once a step has taken place in this process.
    pub(super) is_live: bool,
    /// Entries that wait to be written to the store.
    pub(super) queue: Queue,
    /// The number of entries and events that were added to the queue and are written.
    pub(super) written: u64,
    /// The number of times that each event was stored, until the replay sends it again.
    pub(super) sent: FxHashMap<String, u32>,
    /// The events of steps that are not recorded.
    parts: AnswerParts,
    signals: Vec<(u64, Signal)>,
    /// The signals of each wait that the run has left.
    pub(super) resumed: Vec<Vec<u64>>,
    /// Set if the log has a wait for a time at the place that was read last.
    pub(super) pauses_until: Option<SystemTime>,
    /// Set if the run was asked to go on before the time that it waits for.
    pub(super) is_woken: bool,
    /// The version of the team that the run goes on with.
    pub(super) version: Option<String>,
    /// Set while no process has the run.
    pub(super) is_released: bool,
    /// The time at which the lease was extended last.
    pub(super) extended: Option<Instant>,
    pub(super) end: Option<End>,
    /// The event that tells of the end of the last drive.
    pub(super) last_event: Option<String>,
    /// The number of failures in a row after which the next one ends the run.
    pub(super) max_failures: u32,
    /// The number of times in a row that the run was interrupted since a step was recorded, and the largest number.
    pub(super) interruptions: u32,
    /// Set if the process that had the run before had not let it go.
    pub(super) is_interrupted: bool,
    pub(super) max_interruptions: u32,
}

impl State {
    pub(super) fn new(record: StoredRecord, revision: Revision, steps: StepsIn) -> Self {
        Self {
            version: record.version.clone(),
            record,
            revision,
            commits: 1,
            steps,
            outcomes: FxHashMap::default(),
            ahead: FxHashSet::default(),
            ahead_in_log: FxHashSet::default(),
            in_log: FxHashSet::default(),
            stored_of_log: 0,
            waits_in_log: Vec::new(),
            resumed_before: 0,
            begun: FxHashSet::default(),
            unknown: FxHashSet::default(),
            waits: FxHashSet::default(),
            is_live: false,
            queue: Queue::default(),
            written: 0,
            sent: FxHashMap::default(),
            parts: AnswerParts::default(),
            signals: Vec::new(),
            resumed: Vec::new(),
            pauses_until: None,
            is_woken: false,
            is_released: false,
            extended: Some(Instant::now()),
            end: None,
            last_event: None,
            max_failures: u32::MAX,
            interruptions: 0,
            is_interrupted: false,
            max_interruptions: u32::MAX,
        }
    }

    pub(super) fn is_logged(&self) -> bool {
        matches!(self.steps, StepsIn::Log(_))
    }

    pub(super) fn take_signal(&mut self, position: u64, signal: Signal) {
        match signal {
            Signal::Cancel => {
                self.end.get_or_insert(End::Cancelled);
            }
            // Being due is all else that it asks for.
            Signal::Resume { version } => {
                self.is_woken = true;
                if version.is_some() {
                    self.version = version;
                }
            }
            Signal::Decide(..) | Signal::Answer(..) | Signal::Input(_) => {
                self.signals.push((position, signal));
            }
        }
    }

    /// The positions of signals that no wait has taken.
    pub(super) fn open_signals(&self) -> Vec<u64> {
        let is_taken = |at: &u64| self.resumed.iter().flatten().any(|taken| taken == at);
        let all = self.signals.iter().map(|(at, _)| *at);
        all.filter(|at| !is_taken(at)).collect()
    }

    pub(super) fn signals_at(&self, positions: &[u64]) -> Vec<Signal> {
        let signals = self.signals.iter();
        let taken = signals.filter(|(at, _)| positions.contains(at));
        taken.map(|(_, signal)| signal.clone()).collect()
    }

    /// Reads the entries of a journal. Returns the run as it began.
    pub(super) fn read(
        &mut self,
        id: &str,
        entries: Vec<(u64, JournalEntry)>,
    ) -> Result<Box<RawValue>, DurableError> {
        let mut start = None;
        for (position, entry) in entries {
            self.count_interruptions(&entry);
            match entry {
                JournalEntry::Start(run) => start = Some(run),
                JournalEntry::Taken { .. } => {}
                JournalEntry::Events(events) => self.read_events(position, &events),
                JournalEntry::Retracted { from, to } => self.parts.retracted(from, to),
                JournalEntry::Signal(signal) => self.take_signal(position, signal),
                // The log has it too.
                step if self.is_in_log(position) => self.take_note_of_log(step),
                step => self.read_step(step),
            }
        }
        self.resumed_before = self.resumed.len();
        start.ok_or_else(|| {
            let message = format!("the journal of run \"{id}\" has no start");
            DurableError::new(DurableErrorKind::Damaged, message)
        })
    }

    fn count_interruptions(&mut self, entry: &JournalEntry) {
        match entry {
            JournalEntry::Taken { is_interrupted, .. } => {
                self.is_interrupted = *is_interrupted;
                self.interruptions += u32::from(*is_interrupted);
            }
            JournalEntry::Step(..)
            | JournalEntry::Waits(_)
            | JournalEntry::BeginsAgain(_)
            | JournalEntry::Unknown(_)
            | JournalEntry::Resumed { .. }
            | JournalEntry::Signal(Signal::Resume { .. }) => self.interruptions = 0,
            _ => {}
        }
    }

    /// Reads the events of a journal once more: the run is driven again, and sends them again.
    pub(super) fn read_events_again(&mut self, entries: Vec<(u64, JournalEntry)>) {
        self.parts = AnswerParts::default();
        self.sent.clear();
        for (position, entry) in entries {
            match entry {
                JournalEntry::Events(events) => self.read_events(position, &events),
                JournalEntry::Retracted { from, to } => self.parts.retracted(from, to),
                JournalEntry::Step(key, _) if self.outcomes.contains_key(&key) => {
                    self.parts.recorded(&key);
                }
                _ => {}
            }
        }
    }

    /// Reads the events of the entry at a position.
    fn read_events(&mut self, position: u64, events: &[Box<RawValue>]) {
        for (position, event) in positions_in(position).zip(events) {
            match StepOfEvent::of(event.get()) {
                Some(step) => self.parts.add(position, step),
                None => {
                    self.parts.add_other();
                    *self.sent.entry(event.get().to_owned()).or_default() += 1;
                }
            }
        }
    }

    /// Takes note of an entry that the log of the run has.
    fn take_note_of_log(&mut self, entry: JournalEntry) {
        self.stored_of_log += usize::from(entry.is_of_step());
        let key = match entry {
            JournalEntry::Step(key, _) => {
                self.ahead_in_log.insert(key.clone());
                key
            }
            JournalEntry::Begun(key)
            | JournalEntry::BeginsAgain(key)
            | JournalEntry::Unknown(key)
            | JournalEntry::Waits(key) => key,
            JournalEntry::Resumed { signals } => {
                add_wait(&mut self.waits_in_log, signals);
                return;
            }
            _ => return,
        };
        self.in_log.insert(key);
    }

    /// The thing that the run did at the place of a step that its journal does not have; `None` if it did nothing yet.
    pub(super) fn did_instead_of(&self, key: &StepKey) -> Option<String> {
        // Hooks watch a run, and may come and go while it is interrupted.
        let is_later = |ahead: &&StepKey| {
            // Guardrails may run beside the model, with steps of their own.
            let is_beside_model = matches!(ahead.kind, StepKind::Guardrail | StepKind::Code);
            let is_before_model = key.kind == StepKind::Model && !is_beside_model;
            let follows = ahead.turn > key.turn || (is_before_model && ahead.turn == key.turn);
            ahead.path == key.path && follows && ahead.kind != StepKind::Hook
        };
        let later = self.ahead.iter().chain(&self.ahead_in_log);
        let first = later
            .filter(is_later)
            .min_by_key(|ahead| (ahead.turn, ahead.to_string()));
        if let Some(first) = first {
            return Some(format!("took step \"{first}\""));
        }
        let waits = self.is_replayed()
            && (self.is_released
                || self.waits_in_log.len() > self.resumed.len() - self.resumed_before);
        waits.then(|| "waited for a person".to_owned())
    }

    /// Returns `true` for the position of a step that the log of the run has.
    fn is_in_log(&self, position: u64) -> bool {
        self.is_logged() && self.record.log_from.is_none_or(|from| position >= from)
    }

    /// Takes note of an entry of a step. Others are ignored.
    pub(super) fn read_step(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Begun(key) => {
                self.begun.insert(key);
            }
            JournalEntry::BeginsAgain(key) => {
                self.begun.remove(&key);
            }
            JournalEntry::Unknown(key) => {
                // An outcome that the log of before had not, and the store has, does not count.
                self.outcomes.remove(&key);
                self.ahead.remove(&key);
                self.unknown.insert(key);
            }
            JournalEntry::Waits(key) => {
                self.waits.insert(key);
            }
            JournalEntry::Step(key, outcome) => {
                self.parts.recorded(&key);
                self.ahead_in_log.remove(&key);
                self.ahead.insert(key.clone());
                self.outcomes.insert(key, outcome.get().into());
            }
            JournalEntry::Resumed { signals } => add_wait(&mut self.resumed, signals),
            JournalEntry::Pauses { until } => self.pauses_until = Some(until),
            _ => {}
        }
    }

    /// Marks the events of steps that are not recorded as ones that do not count: these steps take place again. Returns `true` if
    /// there are some.
    pub(super) fn retract_parts(&mut self, id: &str) -> Result<bool, DurableError> {
        self.parts.keep_late_parts(self.outcomes.keys());
        // Events that come after the retraction are stored after it.
        self.queue.end_events();
        let ranges = self.parts.take_ranges();
        for (from, to) in &ranges {
            let (from, to) = (*from, *to);
            let entry = stored(id, &JournalEntry::Retracted { from, to })?;
            self.queue.push(entry);
        }
        Ok(!ranges.is_empty())
    }
}

/// Adds the signals of a wait that the run has left. One whose signals were stored, and not recorded in the log before the
/// process ended, is left again, perhaps with more signals.
fn add_wait(waits: &mut Vec<Vec<u64>>, signals: Vec<u64>) {
    match waits.last_mut() {
        Some(last) if last.iter().any(|at| signals.contains(at)) => *last = signals,
        Some(last) if last.is_empty() && signals.is_empty() => {}
        _ => waits.push(signals),
    }
}
