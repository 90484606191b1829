//! The journal of a run that this process has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;
use switchboard_core::StreamEvent;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{Commit, Committed, Entry, Expected, Revision, now};
use switchboard_core::journal::{Effect, Journal, Repeat, StepKey, StepKind, Stepped};

use crate::embedded::{Embedded, details, stored};
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::{RunStatus, StoredRecord};

/// The number of times that an entry is added beside signals of others.
const ATTEMPTS: usize = 64;

/// The journal of a run that this process has. Clones share it.
#[derive(Clone)]
pub(crate) struct RunJournal(Arc<Inner>);

struct Inner {
    engine: Embedded,
    id: String,
    /// The name of this process for this run, which no other time that it is taken has.
    owner: Arc<str>,
    state: Mutex<State>,
    /// Held while entries are written: the writer takes all that wait.
    writing: tokio::sync::Mutex<()>,
}

struct State {
    record: StoredRecord,
    revision: Revision,
    commits: u32,
    /// The recorded outcomes.
    outcomes: FxHashMap<StepKey, Arc<str>>,
    /// The recorded steps that the replay has not come to.
    ahead: FxHashSet<StepKey>,
    begun: FxHashSet<StepKey>,
    /// Set once a step has taken place in this process.
    is_live: bool,
    /// Entries that wait to be written, and the numbers of entries queued and written.
    queue: Vec<Entry>,
    queued: u64,
    written: u64,
    /// The number of times that each event was stored, until the replay sends it again.
    sent: FxHashMap<String, u32>,
    signals: Vec<(u64, Signal)>,
    /// The signals of each wait that the run has left.
    resumed: Vec<Vec<u64>>,
    end: Option<End>,
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
}

impl End {
    fn message(&self) -> String {
        match self {
            Self::Taken => "another process has taken the run".to_owned(),
            Self::Cancelled => "the run was cancelled".to_owned(),
            Self::Diverged(reason) | Self::Broken(reason) => reason.clone(),
            Self::Draining => "this process shuts down".to_owned(),
        }
    }
}

impl RunJournal {
    /// Takes a run. From now on a process that had it before cannot write.
    ///
    /// # Errors
    /// [`DurableErrorKind::Taken`] if another process has it, and [`DurableErrorKind::NotWaiting`] if it has ended.
    pub(crate) async fn take(
        engine: &Embedded,
        id: &str,
    ) -> Result<(Self, Box<RawValue>), DurableError> {
        let (head, mut record) = engine.head(id).await?;
        let taken = || {
            let message = format!("another process has the run \"{id}\"");
            DurableError::new(DurableErrorKind::Taken, message)
        };
        match &record.status {
            RunStatus::Running { .. } if head.expires.is_some_and(|until| until > now()) => {
                return Err(taken());
            }
            RunStatus::Done { .. } | RunStatus::Failed { .. } | RunStatus::Cancelled => {
                let message = format!("the run \"{id}\" is {} already", record.status.name());
                return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
            }
            RunStatus::Waiting { .. } | RunStatus::Stopped { .. } if head.expires.is_none() => {
                let message = format!("the run \"{id}\" is {}", record.status.name());
                return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
            }
            _ => {}
        }
        let owner: Arc<str> = format!("{:032x}", fastrand::u128(..)).into();
        record.status = RunStatus::Running {
            owner: owner.to_string(),
        };
        let entry = JournalEntry::Taken {
            owner: owner.to_string(),
        };
        let entry = stored(id, &entry)?.made_in(owner.clone(), 0, 1);
        let mut commit = Commit::new(Expected::At(head.revision), vec![entry]);
        (commit.run, commit.number) = (owner.clone(), 1);
        commit.details = Some(details(id, &record)?);
        commit.expires = Some(Some(now() + engine.lease));
        let Committed::At(revision) = engine.commit(id, commit).await? else {
            return Err(taken());
        };
        let mut state = State::new(record, revision);
        let entries = engine.read(id, head.first, revision.next).await?;
        let start = state.read(id, entries)?;
        let journal = Self(Arc::new(Inner {
            engine: engine.clone(),
            id: id.to_owned(),
            owner,
            state: Mutex::new(state),
            writing: tokio::sync::Mutex::default(),
        }));
        Ok((journal, start))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// The conversation of the run.
    pub(crate) fn conversation(&self) -> String {
        self.state().record.conversation.clone()
    }

    pub(crate) fn failures(&self) -> u32 {
        self.state().record.failures
    }

    /// The reason for which the run cannot go on here.
    pub(crate) fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Lets no further step begin in this process.
    pub(crate) fn drain(&self) {
        self.state().end.get_or_insert(End::Draining);
    }

    /// Returns `true` if a step has taken place in this process.
    pub(crate) fn is_live(&self) -> bool {
        self.state().is_live
    }

    /// Recorded steps that the replay has not come to, in order.
    pub(crate) fn steps_ahead(&self) -> Vec<StepKey> {
        let mut ahead: Vec<StepKey> = self.state().ahead.iter().cloned().collect();
        ahead.sort_by_key(|key| (key.turn, key.to_string()));
        ahead
    }

    /// The signals of a wait, counted from 0: those of before, or all that no earlier wait has taken. `None` if there
    /// are none yet.
    pub(crate) async fn signals(&self, wait: usize) -> Result<Option<Vec<Signal>>, DurableError> {
        let mut is_new = false;
        let positions = {
            let state = self.state();
            match state.resumed.get(wait) {
                Some(positions) => positions.clone(),
                None => {
                    is_new = true;
                    let is_taken =
                        |at: &u64| state.resumed.iter().flatten().any(|taken| taken == at);
                    let open = state.signals.iter().map(|(at, _)| *at);
                    open.filter(|at| !is_taken(at)).collect()
                }
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
        let state = self.state();
        let signals = state
            .signals
            .iter()
            .filter(|(at, _)| positions.contains(at));
        Ok(Some(signals.map(|(_, signal)| signal.clone()).collect()))
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

    /// Returns `true` if entries wait to be written.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.state().queue.is_empty()
    }

    async fn append(
        &self,
        entries: impl IntoIterator<Item = JournalEntry>,
    ) -> Result<(), DurableError> {
        {
            let mut state = self.state();
            for entry in entries {
                let entry = stored(&self.0.id, &entry)?;
                state.push(entry);
            }
        }
        self.flush().await
    }

    /// Writes everything that waits. Writers that come while another one writes share the next write.
    pub(crate) async fn flush(&self) -> Result<(), DurableError> {
        let queued = self.state().queued;
        let _writing = self.0.writing.lock().await;
        if self.state().written >= queued {
            return self.check();
        }
        self.write(None, Waits::Never).await.map(drop)
    }

    /// Extends the lease, which also notices signals and other owners.
    pub(crate) async fn extend(&self) -> Result<(), DurableError> {
        let _writing = self.0.writing.lock().await;
        self.write(None, Waits::Never).await.map(drop)
    }

    /// Lets the run go, with this status. Returns `false` if it is to wait and a signal has come meanwhile.
    pub(crate) async fn release(
        &self,
        status: RunStatus,
        failures: u32,
        pause: Option<std::time::Duration>,
    ) -> Result<bool, DurableError> {
        let _writing = self.0.writing.lock().await;
        let waits = match status {
            RunStatus::Waiting { .. } => Waits::UnlessSignalled,
            _ => Waits::Never,
        };
        let record = StoredRecord {
            status,
            failures,
            ..self.state().record.clone()
        };
        let due = pause.map(|pause| now() + pause);
        self.write(Some((record, due)), waits).await
    }

    fn check(&self) -> Result<(), DurableError> {
        match &self.state().end {
            Some(end @ (End::Taken | End::Broken(_))) => Err(ended(&self.0.id, end)),
            _ => Ok(()),
        }
    }

    /// Commits the queue, and the new state if there is one. The caller holds `writing`.
    async fn write(
        &self,
        release: Option<(StoredRecord, Option<std::time::SystemTime>)>,
        waits: Waits,
    ) -> Result<bool, DurableError> {
        self.check()?;
        let Inner {
            engine, id, owner, ..
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
        for _ in 0..ATTEMPTS {
            let mut commit = Commit::new(Expected::At(revision), entries.clone());
            (commit.run, commit.number) = (owner.clone(), number);
            match &release {
                None => commit.expires = Some(Some(now() + engine.lease)),
                Some((record, due)) => {
                    commit.details = Some(details(id, record)?);
                    commit.expires = Some(*due);
                }
            }
            match engine.commit(id, commit).await {
                Err(error) => {
                    let broken = End::Broken(error.to_string());
                    self.state().end.get_or_insert(broken);
                    return Err(error);
                }
                Ok(Committed::At(revision)) => {
                    let mut state = self.state();
                    state.revision = revision;
                    state.written = queued;
                    if let Some((record, _)) = release {
                        state.record = record;
                    }
                    return Ok(true);
                }
                Ok(_) => {}
            }
            revision = self.catch_up(revision).await?;
            if let Waits::UnlessSignalled = waits {
                let mut state = self.state();
                let mut queue = entries;
                queue.append(&mut state.queue);
                state.queue = queue;
                return Ok(false);
            }
        }
        let message = format!("too many signals were sent to the run \"{id}\" at once");
        Err(DurableError::new(DurableErrorKind::Store, message))
    }

    /// Reads what others have added since a revision. Returns the new one, unless another process has the run.
    async fn catch_up(&self, seen: Revision) -> Result<Revision, DurableError> {
        let Inner {
            engine, id, owner, ..
        } = &*self.0;
        let (head, record) = engine.head(id).await?;
        let is_mine = matches!(&record.status, RunStatus::Running { owner: by } if **by == **owner);
        if !is_mine || head.revision.epoch != seen.epoch {
            self.state().end = Some(End::Taken);
            return Err(ended(id, &End::Taken));
        }
        let entries = engine.read(id, seen.next, head.revision.next).await?;
        let mut state = self.state();
        for (position, entry) in entries {
            if let JournalEntry::Signal(signal) = entry {
                state.take_signal(position, signal);
            }
        }
        state.revision = head.revision;
        Ok(head.revision)
    }

    /// Checks that a step that is not recorded is one that the journal can go on with.
    fn begin_live(&self, key: &StepKey) -> Result<(), DurableError> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(ended(&self.0.id, end));
        }
        // A tool in which calls waited has its outcome from a later time.
        let is_repeated = state.outcomes.keys().any(|known| {
            let is_same = (&known.path, known.turn, known.kind, &known.name)
                == (&key.path, key.turn, key.kind, &key.name);
            is_same && known.number > key.number
        });
        if is_repeated {
            return Ok(());
        }
        let is_later = |ahead: &&StepKey| {
            let follows =
                ahead.turn > key.turn || (key.kind == StepKind::Model && ahead.turn == key.turn);
            ahead.path == key.path && follows
        };
        let mut later: Vec<&StepKey> = state.ahead.iter().filter(is_later).collect();
        later.sort_by_key(|ahead| (ahead.turn, ahead.to_string()));
        if let Some(first) = later.first() {
            let reason = format!(
                "the code of today takes step \"{key}\", where the run took step \"{first}\" before it was \
                 interrupted; a tool, an agent, a handoff or a filter has changed. Go on with the code from then, or cancel the run"
            );
            let end = End::Diverged(reason);
            let error = ended(&self.0.id, &end);
            state.end = Some(end);
            return Err(error);
        }
        state.is_live = true;
        Ok(())
    }
}

/// What a journal holds, for a replay in which nothing takes place.
pub(crate) struct Recorded {
    pub(crate) conversation: String,
    pub(crate) start: Box<RawValue>,
    pub(crate) steps: RecordedSteps,
    /// The signals of each wait that the run has left.
    pub(crate) waits: Vec<Vec<Signal>>,
}

/// The recorded steps of a run.
pub(crate) struct RecordedSteps {
    outcomes: FxHashMap<StepKey, Arc<str>>,
    begun: FxHashSet<StepKey>,
}

impl Recorded {
    pub(crate) async fn read(engine: &Embedded, id: &str) -> Result<Self, DurableError> {
        let (head, record) = engine.head(id).await?;
        let conversation = record.conversation.clone();
        let mut state = State::new(record, head.revision);
        let entries = engine.read(id, head.first, head.revision.next).await?;
        let start = state.read(id, entries)?;
        let State {
            outcomes,
            begun,
            signals,
            resumed,
            ..
        } = state;
        let waits = resumed.iter().map(|positions| {
            let signals = signals.iter().filter(|(at, _)| positions.contains(at));
            signals.map(|(_, signal)| signal.clone()).collect()
        });
        Ok(Self {
            conversation,
            start,
            waits: waits.collect(),
            steps: RecordedSteps { outcomes, begun },
        })
    }
}

impl Journal for RecordedSteps {
    async fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        _effect: Effect<'_>,
    ) -> Result<Stepped, BoxError> {
        match self.outcomes.get(key) {
            Some(outcome) => Ok(Stepped::Recorded(outcome.clone())),
            None if repeat == Repeat::AtMostOnce && self.begun.contains(key) => {
                Ok(Stepped::Unknown)
            }
            None => Err(format!("the run did not get to step \"{key}\"").into()),
        }
    }
}

/// The condition under which a state is stored.
#[derive(Clone, Copy)]
enum Waits {
    Never,
    /// Not if a signal has come meanwhile.
    UnlessSignalled,
}

impl Journal for RunJournal {
    async fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: Effect<'_>,
    ) -> Result<Stepped, BoxError> {
        let is_begun = {
            let mut state = self.state();
            if let Some(outcome) = state.outcomes.get(key).cloned() {
                state.ahead.remove(key);
                return Ok(Stepped::Recorded(outcome));
            }
            state.begun.contains(key)
        };
        if repeat == Repeat::AtMostOnce {
            if is_begun {
                return Ok(Stepped::Unknown);
            }
            self.begin_live(key)?;
            self.append([JournalEntry::Begun(key.clone())]).await?;
        } else {
            self.begin_live(key)?;
        }
        let outcome = effect.await;
        // The outcome of what has taken place is recorded also if the run cannot go on.
        if let Some(outcome) = outcome {
            let outcome = RawValue::from_string(outcome.as_ref().to_owned())?;
            self.append([JournalEntry::Step(key.clone(), outcome)])
                .await?;
            self.state().record.failures = 0;
        }
        Ok(Stepped::Ran)
    }
}

impl State {
    fn new(record: StoredRecord, revision: Revision) -> Self {
        Self {
            record,
            revision,
            commits: 1,
            outcomes: FxHashMap::default(),
            ahead: FxHashSet::default(),
            begun: FxHashSet::default(),
            is_live: false,
            queue: Vec::new(),
            queued: 0,
            written: 0,
            sent: FxHashMap::default(),
            signals: Vec::new(),
            resumed: Vec::new(),
            end: None,
        }
    }

    fn push(&mut self, entry: Entry) {
        self.queue.push(entry);
        self.queued += 1;
    }

    fn take_signal(&mut self, position: u64, signal: Signal) {
        match signal {
            Signal::Cancel => {
                self.end.get_or_insert(End::Cancelled);
            }
            // Being due is all that it asks for.
            Signal::Resume => {}
            Signal::Decide(..) | Signal::Answer(..) => self.signals.push((position, signal)),
        }
    }

    /// Reads the entries of a journal. Returns the run as it began.
    fn read(
        &mut self,
        id: &str,
        entries: Vec<(u64, JournalEntry)>,
    ) -> Result<Box<RawValue>, DurableError> {
        let mut start = None;
        // The parts of model answers, by turn.
        let mut parts: Vec<(u64, u32)> = Vec::new();
        for (position, entry) in entries {
            match entry {
                JournalEntry::Start(run) => start = Some(run),
                JournalEntry::Taken { .. } => {}
                JournalEntry::Begun(key) => {
                    self.begun.insert(key);
                }
                JournalEntry::Step(key, outcome) => {
                    if key.kind == StepKind::Model && key.path.is_empty() {
                        parts.retain(|(_, turn)| *turn != key.turn + 1);
                    }
                    self.ahead.insert(key.clone());
                    self.outcomes.insert(key, outcome.get().into());
                }
                JournalEntry::Event(event) => match part_of_answer(&event) {
                    Some(turn) => parts.push((position, turn)),
                    None => *self.sent.entry(event.get().to_owned()).or_default() += 1,
                },
                JournalEntry::Retracted { from, to } => {
                    parts.retain(|(position, _)| !(from..to).contains(position));
                }
                JournalEntry::Signal(signal) => self.take_signal(position, signal),
                JournalEntry::Resumed { signals } => self.resumed.push(signals),
            }
        }
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (position, _) in parts {
            match ranges.last_mut() {
                Some((_, to)) if *to == position => *to += 1,
                _ => ranges.push((position, position + 1)),
            }
        }
        for (from, to) in ranges {
            self.push(stored(id, &JournalEntry::Retracted { from, to })?);
        }
        start.ok_or_else(|| {
            let message = format!("the journal of run \"{id}\" has no start");
            DurableError::new(DurableErrorKind::Damaged, message)
        })
    }
}

/// The turn of an event that is a part of a model's answer.
fn part_of_answer(event: &RawValue) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Part<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
        #[serde(default)]
        turn: u32,
    }
    let part: Part<'_> = serde_json::from_str(event.get()).ok()?;
    is_part(&part.kind).then_some(part.turn)
}

/// Returns `true` for kinds of events that are emitted while a model answers.
fn is_part(kind: &str) -> bool {
    kind.ends_with("_delta") || matches!(kind, "model_retry" | "raw")
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
