//! What happened in a run, and why: its spans as rows, with what was sent and what came back.
//!
//! A [`Recording`] is a tracer of one run. It keeps the spans themselves, whose items are shared with the run,
//! and makes JSON of them only when a client asks. [`Recordings`] keeps those of the latest runs, within bounds.

mod details;
mod diff;
mod row;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use switchboard_core::model::Usage;
use switchboard_core::run::Price;
use switchboard_core::stream::{EventKind, StreamEvent};
use switchboard_core::trace::{Span, SpanData, SpanId, Tracer};
use tokio::sync::Notify;

pub(crate) use self::details::Retry;
pub(crate) use self::row::{Row, Tokens, cut};

use crate::tenant::Tenant;

/// The bounds of recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingLimits {
    /// The number of runs whose recordings are kept.
    pub runs: usize,
    /// The rows of a recording. What happens beyond them is only counted.
    pub rows: usize,
    /// The bytes of all recordings, by an estimate. The oldest are dropped beyond it.
    pub bytes: usize,
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self {
            runs: 1000,
            rows: 2000,
            bytes: 64 << 20,
        }
    }
}

/// The recording of a run, under way or ended.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) run: Arc<str>,
    pub(crate) tenant: Tenant,
    pub(crate) conversation: Option<Arc<str>>,
    pub(crate) started: SystemTime,
    max_rows: usize,
    prices: Arc<[(Arc<str>, Price)]>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    rows: Vec<Recorded>,
    by_span: HashMap<SpanId, usize>,
    /// Counts the changes of rows.
    seq: u64,
    bytes: usize,
    dropped: u64,
    end: Option<RecordingEnd>,
}

/// A row with the span behind it.
#[derive(Debug)]
struct Recorded {
    row: Row,
    span: Span,
    retries: Vec<Retry>,
}

/// The end of a recorded run.
#[derive(Debug, Clone)]
pub(crate) struct RecordingEnd {
    pub(crate) time: SystemTime,
    pub(crate) status: &'static str,
    pub(crate) usage: Usage,
}

/// A recording at one time, without its rows.
#[derive(Debug)]
pub(crate) struct RecordingSummary {
    pub(crate) run: Arc<str>,
    pub(crate) started: SystemTime,
    pub(crate) end: Option<RecordingEnd>,
    pub(crate) rows: usize,
    pub(crate) tokens: Tokens,
    pub(crate) cost: Option<f64>,
    pub(crate) dropped: u64,
    pub(crate) seq: u64,
}

/// The tracer of a recording.
struct RecordingTracer(Arc<Recording>);

impl Recording {
    pub(crate) fn new(
        run: Arc<str>,
        tenant: Tenant,
        conversation: Option<Arc<str>>,
        limits: &RecordingLimits,
        prices: Arc<[(Arc<str>, Price)]>,
    ) -> Self {
        Self {
            run,
            tenant,
            conversation,
            started: SystemTime::now(),
            max_rows: limits.rows,
            prices,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tracer that writes the recording.
    pub(crate) fn tracer(self: &Arc<Self>) -> impl Tracer {
        RecordingTracer(self.clone())
    }

    /// Adds what only the events of a run tell: retries of model requests.
    pub(crate) fn observe(&self, event: &StreamEvent) {
        match &event.kind {
            EventKind::Inner { event, .. } => self.observe(event),
            EventKind::ModelRetry {
                attempt,
                delay_seconds,
                reason,
                ..
            } => {
                let retry = Retry::new(*attempt, *delay_seconds, reason);
                self.add_retry(&event.agent, retry);
            }
            _ => {}
        }
    }

    /// Adds a retry to the model call that the agent waits for.
    fn add_retry(&self, agent: &str, retry: Retry) {
        let mut state = self.state();
        let seq = state.seq + 1;
        let is_asking = |recorded: &&mut Recorded| {
            recorded.row.kind == "model"
                && recorded.row.seconds.is_none()
                && recorded.row.agent.as_deref() == Some(agent)
        };
        if let Some(recorded) = state.rows.iter_mut().rev().find(is_asking) {
            recorded.retries.push(retry);
            recorded.row.retries += 1;
            recorded.row.seq = seq;
            state.seq = seq;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn begin(&self, span: &Span) {
        let mut state = self.state();
        if state.rows.len() >= self.max_rows {
            state.dropped += 1;
            return;
        }
        state.seq += 1;
        let parent = span.parent.and_then(|parent| state.by_span.get(&parent));
        let parent = parent.and_then(|at| state.rows.get(*at));
        let id = state.rows.len() as u64 + 1;
        let row = Row::begin(id, parent.map(|parent| &parent.row), span, state.seq);
        let at = state.rows.len();
        state.by_span.insert(span.id, at);
        state.rows.push(Recorded {
            row,
            span: span.clone(),
            retries: Vec::new(),
        });
        drop(state);
        self.changed.notify_waiters();
    }

    fn finish(&self, span: Span) {
        let mut state = self.state();
        let Some(at) = state.by_span.get(&span.id).copied() else {
            return;
        };
        state.seq += 1;
        let seq = state.seq;
        // The first model call keeps the whole conversation in memory; later ones share it.
        let is_first = !state
            .rows
            .iter()
            .any(|recorded| recorded.row.kind == "model" && recorded.row.seconds.is_some());
        state.bytes += details::estimated_bytes(&span, is_first);
        if let Some(recorded) = state.rows.get_mut(at) {
            let cost = self.cost(&span.data);
            recorded.row.finish(&span, cost, seq);
            recorded.span = span;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The cost of a model call whose price is known.
    fn cost(&self, data: &SpanData) -> Option<f64> {
        let SpanData::Generation { model, usage, .. } = data else {
            return None;
        };
        let mut prices = self.prices.iter().rev();
        let (_, price) = prices.find(|(name, _)| name == model)?;
        Some(price.cost(usage))
    }

    /// Ends the recording: nothing is added any more.
    pub(crate) fn end(&self, status: &'static str, usage: Usage) {
        let mut state = self.state();
        state.seq += 1;
        state.end = Some(RecordingEnd {
            time: SystemTime::now(),
            status,
            usage,
        });
        drop(state);
        self.changed.notify_waiters();
    }

    /// The recording without its rows.
    pub(crate) fn summary(&self) -> RecordingSummary {
        let state = self.state();
        let costs = state.rows.iter().filter_map(|recorded| recorded.row.cost);
        let models = state
            .rows
            .iter()
            .filter(|recorded| recorded.row.kind == "model");
        let tokens = models.filter_map(|recorded| recorded.row.tokens.as_ref());
        let tokens = match &state.end {
            Some(end) => Tokens::from(&end.usage),
            None => tokens.fold(Tokens::default(), |sum, tokens| sum.plus(tokens)),
        };
        RecordingSummary {
            run: self.run.clone(),
            started: self.started,
            end: state.end.clone(),
            rows: state.rows.len(),
            tokens,
            cost: costs.fold(None, |sum, cost| Some(sum.unwrap_or(0.0) + cost)),
            dropped: state.dropped,
            seq: state.seq,
        }
    }

    /// Rows in the order in which they began, after the one with this identifier.
    pub(crate) fn rows(&self, after: u64, limit: usize) -> Vec<Row> {
        let state = self.state();
        let rows = state.rows.iter().map(|recorded| &recorded.row);
        let rows = rows.filter(|row| row.id > after);
        rows.take(limit).cloned().collect()
    }

    /// The rows that were changed after this count of changes, in the order of their changes, and the count now.
    pub(crate) fn changed_rows(&self, after: u64, limit: usize) -> (Vec<Row>, u64, bool) {
        let state = self.state();
        let rows = state.rows.iter().map(|recorded| &recorded.row);
        let mut rows: Vec<Row> = rows.filter(|row| row.seq > after).cloned().collect();
        rows.sort_by_key(|row| row.seq);
        let is_all = rows.len() <= limit;
        rows.truncate(limit);
        let seq = match rows.last() {
            Some(last) if !is_all => last.seq,
            _ => state.seq,
        };
        (rows, seq, state.end.is_some() && is_all)
    }

    /// Waits for a change after this count of changes, or for the end.
    pub(crate) async fn changed_after(&self, seq: u64) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let state = self.state();
                if state.seq > seq || state.end.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// A row with its details; `None` if there is no such row.
    pub(crate) fn details(&self, id: u64) -> Option<(Row, Value)> {
        let state = self.state();
        let at = usize::try_from(id).ok()?.checked_sub(1)?;
        let recorded = state.rows.get(at)?;
        let (row, span) = (recorded.row.clone(), recorded.span.clone());
        let retries = recorded.retries.clone();
        let caused_by = match &span.data {
            SpanData::Handoff { details, .. } => details.caused_by,
            _ => None,
        };
        let caused_by = caused_by.and_then(|cause| state.by_span.get(&cause));
        let caused_by = caused_by.and_then(|at| Some(state.rows.get(*at)?.row.id));
        drop(state);
        let details = details::of(&span.data, &retries, caused_by);
        Some((row, details))
    }

    fn bytes(&self) -> usize {
        self.state().bytes
    }

    fn is_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// Returns `true` if something that was stored at this time was stored by the run.
    pub(crate) fn covers(&self, time: SystemTime) -> bool {
        let end = self.state().end.as_ref().map(|end| end.time);
        // Times in the store are in whole milliseconds.
        let started = whole_millis(self.started);
        time >= started && end.is_none_or(|end| time <= end)
    }
}

fn whole_millis(time: SystemTime) -> SystemTime {
    use switchboard_core::conversation::{from_millis, to_millis};
    from_millis(to_millis(time))
}

/// Milliseconds since 1970, with fractions.
fn millis(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
        * 1000.0
}

impl Tracer for RecordingTracer {
    fn wants_details(&self) -> bool {
        true
    }

    fn start(&self, span: &Span) {
        self.0.begin(span);
    }

    fn end(&self, span: Span) {
        self.0.finish(span);
    }
}

/// The recording of a session, which ends with it, however it ends.
#[derive(Debug)]
pub(crate) struct SessionRecording(pub(crate) Arc<Recording>);

impl SessionRecording {
    /// Ends the recording with what the session has used.
    pub(crate) fn end(self, status: &'static str, usage: Usage) {
        self.0.end(status, usage);
    }
}

impl Drop for SessionRecording {
    fn drop(&mut self) {
        if !self.0.is_ended() {
            self.0.end("stopped", Usage::default());
        }
    }
}

/// The recordings of the latest runs, of all tenants.
#[derive(Debug)]
pub(crate) struct Recordings {
    pub(crate) limits: RecordingLimits,
    latest: Mutex<VecDeque<Arc<Recording>>>,
}

impl Recordings {
    pub(crate) fn new(limits: RecordingLimits) -> Self {
        Self {
            limits,
            latest: Mutex::default(),
        }
    }

    fn latest(&self) -> MutexGuard<'_, VecDeque<Arc<Recording>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the recording of a run that begins, and drops the oldest of those that ended beyond the limits.
    pub(crate) fn add(&self, recording: &Arc<Recording>) {
        let mut latest = self.latest();
        latest.push_back(recording.clone());
        let mut bytes: usize = latest.iter().map(|recording| recording.bytes()).sum();
        let mut beyond = latest.len().saturating_sub(self.limits.runs);
        latest.retain(|recording| {
            let is_kept = !recording.is_ended() || (beyond == 0 && bytes <= self.limits.bytes);
            if !is_kept {
                bytes -= recording.bytes();
                beyond = beyond.saturating_sub(1);
            }
            is_kept
        });
    }

    /// The recording of a run of the tenant.
    pub(crate) fn get(&self, tenant: &Tenant, run: &str) -> Option<Arc<Recording>> {
        let latest = self.latest();
        let mut own = latest.iter().filter(|known| known.tenant == *tenant);
        own.find(|known| *known.run == *run).cloned()
    }

    /// The recordings of a conversation, the oldest first.
    pub(crate) fn of_conversation(&self, tenant: &Tenant, id: &str) -> Vec<Arc<Recording>> {
        let latest = self.latest();
        let own = latest
            .iter()
            .filter(|known| known.tenant == *tenant && known.conversation.as_deref() == Some(id));
        own.cloned().collect()
    }

    /// Drops the recording of a run.
    pub(crate) fn forget_run(&self, run: &str) {
        self.latest().retain(|known| *known.run != *run);
    }

    /// Drops the recordings of a conversation.
    pub(crate) fn forget(&self, tenant: &Tenant, id: &str) {
        self.latest()
            .retain(|known| known.tenant != *tenant || known.conversation.as_deref() != Some(id));
    }
}
