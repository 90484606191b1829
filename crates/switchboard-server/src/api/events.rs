//! The events of a run as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;

use crate::error::ServiceError;
use crate::event_log::{EventReader, Read};
use crate::http::header_text;
use crate::runs::RunRecord;

/// The largest number of an event that JSON readers keep exactly.
const MAX_EVENT_ID: u64 = (1 << 53) - 1;

/// The time between comments that keep a quiet connection open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers with the events of a run after the one with this number. Each has its number as its identifier, so
/// that a client that has lost its connection asks for the events after the last that it has seen, with the
/// header `Last-Event-ID`. A reader that is too far behind gets the event `events_dropped`.
pub(crate) fn run_events(run: &Arc<RunRecord>, after: u64) -> Response {
    let reader = run.log.read_after(after);
    let events = stream::unfold(reader, |mut reader: EventReader| async move {
        let event = match reader.next().await? {
            Read::Event(event) => Event::default()
                .id(event.id.to_string())
                .event(event.event.kind.name())
                .data(&*event.json),
            Read::Truncated(first) => {
                let data = json!({"type": "events_dropped", "next": first});
                Event::default()
                    .event("events_dropped")
                    .data(data.to_string())
            }
        };
        Some((Ok::<_, Infallible>(event), reader))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&run.id) {
        headers.insert(HeaderName::from_static("x-run-id"), id);
    }
    if let Ok(path) = HeaderValue::from_str(&format!("/api/runs/{}/events", run.id)) {
        headers.insert(header::CONTENT_LOCATION, path);
    }
    response
}

/// The number of the last event that the client has seen.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<u64, ServiceError> {
    match header_text(headers, "last-event-id") {
        None => Ok(0),
        Some(id) => match id.parse() {
            Ok(id @ 0..=MAX_EVENT_ID) => Ok(id),
            _ => Err(ServiceError::invalid(
                "Last-Event-ID is no number of an event",
            )),
        },
    }
}
