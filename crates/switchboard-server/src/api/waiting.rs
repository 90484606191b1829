//! Approvals and people that are waited for, over all conversations, and changes as they happen.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Serialize;
use switchboard_core::conversation::to_millis;

use super::types::Waiting;
use crate::changes::{Change, NextChange};
use crate::error::ServiceError;
use crate::service::{Caller, Service, WaitingConversation};

/// The conversations that wait, the longest waiting first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitingList {
    waiting: Vec<WaitingBody>,
}

/// A conversation that waits.
#[derive(Debug, Serialize, JsonSchema)]
struct WaitingBody {
    conversation: String,
    /// The beginning of its first message.
    title: Option<String>,
    team: Option<String>,
    /// The agent that has the conversation.
    agent: Option<String>,
    /// Milliseconds since 1970.
    since: i64,
    /// Calls that wait for a decision, and people that are asked for an answer.
    calls: Vec<Waiting>,
    /// Set if the conversation cannot be read: nothing else is known of it.
    error: Option<String>,
}

impl From<WaitingConversation> for WaitingBody {
    fn from(waiting: WaitingConversation) -> Self {
        Self {
            conversation: waiting.id.to_string(),
            title: waiting.title,
            team: waiting.team,
            agent: waiting.agent.as_deref().map(ToOwned::to_owned),
            since: to_millis(waiting.since),
            calls: waiting.calls.iter().map(Waiting::from).collect(),
            error: waiting.error.map(|error| error.message().to_owned()),
        }
    }
}

pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
) -> Result<Json<WaitingList>, ServiceError> {
    let waiting = service.waiting_conversations(&caller).await?;
    Ok(Json(WaitingList {
        waiting: waiting.into_iter().map(WaitingBody::from).collect(),
    }))
}

/// The changes that the caller is told of, as server-sent events. After a lost connection, or an event `missed`,
/// the client reads its lists again.
pub(super) async fn changes(State(service): State<Service>, caller: Caller) -> Response {
    let reader = service.inner().changes.follow(&caller.tenant);
    let hello = Event::default().event("hello").data("{}");
    let state = (reader, service, caller);
    let changes = stream::unfold(state, |(mut reader, service, caller)| async move {
        let event = match next_change(&service, &caller, &mut reader).await? {
            NextChange::Change(change) => {
                let data = serde_json::to_string(&change).unwrap_or_default();
                Event::default().event(change.name()).data(data)
            }
            NextChange::Missed => Event::default().event("missed").data("{}"),
        };
        Some((Ok::<_, Infallible>(event), (reader, service, caller)))
    });
    let events = stream::iter([Ok(hello)]).chain(changes);
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
    Sse::new(events).keep_alive(keep_alive).into_response()
}

/// The next change; `None` once the service ends its work, so that no client keeps it from ending, or the key of the
/// client was removed.
async fn next_change(
    service: &Service,
    caller: &Caller,
    reader: &mut crate::changes::ChangeReader,
) -> Option<NextChange> {
    let mut pause = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            change = reader.next() => match change {
                Some(NextChange::Change(Change::Team(team)))
                    if service.team(caller, &team.name).is_err() => {}
                change => return change,
            },
            _ = pause.tick() => {
                if service.is_draining() || !service.is_key_valid(caller) {
                    return None;
                }
            }
        }
    }
}
