//! Reading the events of a run.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::StreamEvent;
use tokio::task::JoinHandle;

use crate::active_runs::ActiveRuns;
use crate::engine::Engine;
use crate::entry::JournalEntry;
use crate::error::{DurableError, DurableErrorKind};
use crate::overdue::Overdue;
use crate::record::RunRecord;
use crate::run_store::{RunStore, to_record};

/// The pause between two looks at a run that another process may have.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// The number of events that one entry of a journal has at most.
pub(crate) const EVENTS_PER_ENTRY: u64 = 1000;

/// The positions of the events of an entry of a journal.
pub(crate) fn positions_in(entry: u64) -> Range<u64> {
    let start = entry.saturating_mul(EVENTS_PER_ENTRY);
    start..start.saturating_add(EVENTS_PER_ENTRY)
}

/// An event of a durable run, or the retraction of some.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// An event.
    #[non_exhaustive]
    Event {
        /// Its position. A reader that comes again continues after it. Positions rise, with gaps.
        position: u64,
        /// The event.
        event: Box<StreamEvent>,
    },
    /// The events from one position up to another, excluded, do not count: they are parts of an answer of a model that
    /// was interrupted, and the model is asked again.
    #[non_exhaustive]
    Retracted {
        /// The position of this event itself.
        position: u64,
        /// The first position.
        from: u64,
        /// The position after the last.
        to: u64,
    },
}

impl RunEvent {
    /// The position of the event.
    pub fn position(&self) -> u64 {
        match self {
            Self::Event { position, .. } | Self::Retracted { position, .. } => *position,
        }
    }
}

/// Reads the events of a run, also one that another process has or had.
pub struct RunEvents {
    runs: RunStore,
    active: ActiveRuns,
    id: String,
    /// The position of the next event.
    next: u64,
    ready: VecDeque<RunEvent>,
    /// The read in progress. It goes on if the future of a call is dropped, so that a reader whose calls are shorter than reads
    /// of the store gets on.
    reading: Option<JoinHandle<Result<Page, DurableError>>>,
    is_over: bool,
    /// The engine that is to execute the run, if nobody does.
    engine: Option<Arc<dyn Engine>>,
    overdue: Overdue,
}

/// The part of a journal that a reader has not seen, and the state of the run.
struct Page {
    record: RunRecord,
    entries: Vec<(u64, JournalEntry)>,
    /// The position after the last entry.
    end: u64,
}

impl RunEvents {
    pub(crate) fn new(runs: RunStore, active: ActiveRuns, id: String, after: Option<u64>) -> Self {
        Self {
            runs,
            active,
            id,
            next: after.map_or(0, |position| position.saturating_add(1)),
            ready: VecDeque::new(),
            reading: None,
            is_over: false,
            engine: None,
            overdue: Overdue::default(),
        }
    }

    /// Has the run executed if it is due and nobody does.
    pub(crate) fn submitting(mut self, engine: Arc<dyn Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Returns the next event, or `None` once the run has ended, waits for a person, or has stopped. Call it again later to
    /// continue.
    ///
    /// No event is lost if the future is dropped, in a `select!` for example.
    ///
    /// # Errors
    /// An error if there is no such run, or its journal cannot be read. The next call tries again.
    pub async fn next(&mut self) -> Result<Option<RunEvent>, DurableError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if std::mem::take(&mut self.is_over) {
                return Ok(None);
            }
            let active = self.active.clone();
            let changed = active.changed(&self.id);
            if !self.read().await? {
                // A notification that was missed is made up for by the next look.
                let _ = tokio::time::timeout(POLL, changed).await;
            }
        }
    }

    /// Reads new events. Returns `false` if there are none.
    async fn read(&mut self) -> Result<bool, DurableError> {
        // The run may have gone on since then.
        let is_old = self.reading.as_ref().is_some_and(JoinHandle::is_finished);
        let (runs, id) = (&self.runs, &self.id);
        let begin = self.next / EVENTS_PER_ENTRY;
        let reading = self
            .reading
            .get_or_insert_with(|| tokio::spawn(read_page(runs.clone(), id.clone(), begin)));
        let read = reading.await;
        self.reading = None;
        let Page {
            record,
            entries,
            end,
        } = read.map_err(|error| {
            let message = format!("the events of run \"{}\" cannot be read: {error}", self.id);
            DurableError::new(DurableErrorKind::Store, message)
        })??;
        for (entry, content) in entries {
            let positions = positions_in(entry);
            match content {
                JournalEntry::Events(events) => {
                    for (position, json) in positions.zip(events) {
                        if position >= self.next {
                            let event = to_event(&self.id, position, &json)?;
                            self.ready.push_back(event);
                            self.next = position + 1;
                        }
                    }
                }
                JournalEntry::Retracted { from, to } if positions.start >= self.next => {
                    let position = positions.start;
                    self.ready
                        .push_back(RunEvent::Retracted { position, from, to });
                    self.next = position + 1;
                }
                _ => {}
            }
        }
        self.next = self.next.max(positions_in(end).start);
        self.is_over = record.is_settled() && !is_old;
        if let Some(engine) = &self.engine {
            self.overdue.look(&**engine, &record).await?;
        }
        Ok(self.is_over || !self.ready.is_empty())
    }
}

async fn read_page(runs: RunStore, id: String, begin: u64) -> Result<Page, DurableError> {
    let (head, record) = runs.head(&id).await?;
    let end = head.revision.next;
    Ok(Page {
        record: to_record(&id, &head, record),
        entries: runs.read(&id, begin, end).await?,
        end,
    })
}

fn to_event(run: &str, position: u64, json: &RawValue) -> Result<RunEvent, DurableError> {
    let event = serde_json::from_str(json.get()).map_err(|error| {
        let message = format!("event {position} of run \"{run}\" is damaged: {error}");
        DurableError::new(DurableErrorKind::Damaged, message)
    })?;
    let event = Box::new(event);
    Ok(RunEvent::Event { position, event })
}

impl std::fmt::Debug for RunEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunEvents")
            .field("id", &self.id)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
