//! What happened in runs: recordings, their rows and details.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::conversation::to_millis;

use super::requests::query_number;
use crate::error::ServiceError;
use crate::http::{PathOf, QueryOf};
use crate::recording::{Recording, RecordingSummary, Row, Tokens};
use crate::service::{Caller, Service};

/// The number of rows in an answer, unless the client asks for another.
const DEFAULT_ROWS: usize = 500;
const MAX_ROWS: usize = 5000;

/// The number of rows that are sent at once.
const SENT_ROWS: usize = 100;

/// A recording without its rows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecordingBody {
    run: String,
    conversation: Option<String>,
    /// Milliseconds since 1970.
    started: i64,
    /// Milliseconds since 1970; null while the run is under way.
    ended: Option<i64>,
    /// `running`, `completed`, `waiting`, `stopped`, `cancelled` or `failed`.
    status: String,
    rows: usize,
    tokens: Tokens,
    /// The cost of the model calls whose prices are known.
    cost: Option<f64>,
    /// The number of rows beyond the limits, which are not there.
    dropped: u64,
}

impl RecordingBody {
    fn new(recording: &Recording, summary: &RecordingSummary) -> Self {
        let end = summary.end.as_ref();
        Self {
            run: summary.run.to_string(),
            conversation: recording.conversation.as_deref().map(ToOwned::to_owned),
            started: to_millis(summary.started),
            ended: end.map(|end| to_millis(end.time)),
            status: end.map_or("running", |end| end.status).to_owned(),
            rows: summary.rows,
            tokens: summary.tokens.clone(),
            cost: summary.cost,
            dropped: summary.dropped,
        }
    }
}

/// The recordings of a conversation, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecordingList {
    recordings: Vec<RecordingBody>,
}

/// A page of a recording.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecordingPage {
    recording: RecordingBody,
    /// In the order in which they began; in the order of their changes, where changes were asked for.
    rows: Vec<Row>,
    /// The last row of the page, if more follow.
    next: Option<u64>,
    /// The number of the last change, for `changed_after`.
    seq: u64,
}

/// A row with what was sent and what came back.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RowBody {
    row: Row,
    /// The details of its kind.
    details: Value,
}

/// A page of rows.
#[derive(Debug, Deserialize)]
pub(super) struct RowParameters {
    #[serde(default, deserialize_with = "query_number")]
    after: Option<u64>,
    #[serde(default, deserialize_with = "query_number")]
    changed_after: Option<u64>,
    limit: Option<usize>,
}

fn find(service: &Service, caller: &Caller, run: &str) -> Result<Arc<Recording>, ServiceError> {
    let recordings = service.inner().recordings.as_ref();
    let found = recordings.and_then(|recordings| recordings.get(&caller.tenant, run));
    found.ok_or_else(|| ServiceError::not_found("there is no recording of such a run"))
}

pub(super) async fn of_conversation(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<RecordingList>, ServiceError> {
    caller.tenant.stored_name(&id)?;
    let recordings = service.inner().recordings.as_ref();
    let recordings = recordings.map(|all| all.of_conversation(&caller.tenant, &id));
    let recordings = recordings.unwrap_or_default();
    let bodies = recordings
        .iter()
        .map(|recording| RecordingBody::new(recording, &recording.summary()));
    Ok(Json(RecordingList {
        recordings: bodies.collect(),
    }))
}

pub(super) async fn rows(
    State(service): State<Service>,
    caller: Caller,
    PathOf(run): PathOf<String>,
    QueryOf(parameters): QueryOf<RowParameters>,
) -> Result<Json<RecordingPage>, ServiceError> {
    let limit = match parameters.limit {
        None => DEFAULT_ROWS,
        Some(limit @ 1..=MAX_ROWS) => limit,
        Some(_) => return Err(ServiceError::invalid("the limit is from 1 to 5000")),
    };
    let recording = find(&service, &caller, &run)?;
    let summary = recording.summary();
    let (rows, next, seq) = match parameters.changed_after {
        Some(seq) => {
            let (rows, seq, _) = recording.changed_rows(seq, limit);
            (rows, None, seq)
        }
        None => {
            let after = parameters.after.unwrap_or(0);
            let rows = recording.rows(after, limit);
            let last = rows.last().map(|row| row.id);
            let next = last.filter(|last| *last < summary.rows as u64);
            (rows, next, summary.seq)
        }
    };
    Ok(Json(RecordingPage {
        recording: RecordingBody::new(&recording, &summary),
        rows,
        next,
        seq,
    }))
}

pub(super) async fn row(
    State(service): State<Service>,
    caller: Caller,
    PathOf((run, row)): PathOf<(String, String)>,
) -> Result<Json<RowBody>, ServiceError> {
    let recording = find(&service, &caller, &run)?;
    let details = row.parse().ok().and_then(|row| recording.details(row));
    let missing = || ServiceError::not_found("the recording has no such row");
    let (row, details) = details.ok_or_else(missing)?;
    Ok(Json(RowBody { row, details }))
}

/// The rows of a recording as they change, all of them first, and an event `end` at last.
pub(super) async fn events(
    State(service): State<Service>,
    caller: Caller,
    PathOf(run): PathOf<String>,
) -> Result<Response, ServiceError> {
    let recording = find(&service, &caller, &run)?;
    let begin = Follower {
        recording,
        seq: 0,
        rows: Vec::new().into_iter(),
        is_last: false,
        is_done: false,
    };
    let events = stream::unfold(begin, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// A reader of a recording's changes.
struct Follower {
    recording: Arc<Recording>,
    seq: u64,
    rows: std::vec::IntoIter<Row>,
    is_last: bool,
    is_done: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(row) = self.rows.next() {
                let data = serde_json::to_string(&row).unwrap_or_default();
                return Some(Event::default().event("row").data(data));
            }
            if self.is_done {
                return None;
            }
            if self.is_last {
                self.is_done = true;
                return Some(Event::default().event("end").data("{}"));
            }
            self.recording.changed_after(self.seq).await;
            let (rows, seq, is_last) = self.recording.changed_rows(self.seq, SENT_ROWS);
            (self.rows, self.seq, self.is_last) = (rows.into_iter(), seq, is_last);
        }
    }
}
