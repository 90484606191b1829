//! The conversation of a request, and how long it is kept.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::input::{WaitingOutputs, new_conversation};
use super::record::ResponseRecord;
use super::responses::text;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::service::{Caller, ConversationLock, Service};

/// The conversation of a request.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) conversation: Arc<str>,
    /// Set if the conversation goes with the run, unless it waits. Those that clients have made never do.
    pub(super) is_temporary: bool,
    pub(super) history: History,
}

/// Who keeps what came before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    /// The service: the request has only what is new.
    Stored,
    /// The client: the request has all of it.
    Sent,
}

impl Place {
    /// A new conversation for a client that sends all of it.
    pub(super) fn new(is_kept: bool) -> Result<Self, ServiceError> {
        Ok(Self {
            conversation: new_conversation(is_kept)?,
            is_temporary: !is_kept,
            history: History::Sent,
        })
    }

    /// A conversation by its name, which goes with the run only if the service has made it for that.
    async fn named(service: &Service, caller: &Caller, id: &str) -> Result<Self, ServiceError> {
        Ok(Self {
            conversation: id.into(),
            is_temporary: service.is_temporary(caller, id).await?,
            history: History::Stored,
        })
    }

    /// The conversation that the calls of a client wait in that sends all of it; `None` if they wait no more, so that
    /// the client's own record of the conversation is all that there is.
    pub(super) async fn of_waiting(
        service: &Service,
        caller: &Caller,
        waiting: &WaitingOutputs,
    ) -> Result<Option<Self>, ServiceError> {
        let id = &waiting.conversation;
        let outputs = &waiting.given.outputs;
        if !service.waits_for_outputs(caller, id, outputs).await? {
            return Ok(None);
        }
        Ok(Some(Self {
            conversation: id.clone(),
            is_temporary: service.is_temporary(caller, id).await?,
            history: History::Sent,
        }))
    }
}

/// Locks the conversation that calls wait in, once no run of it is under way: the same request may have been sent before.
pub(super) async fn lock_waiting(
    service: &Service,
    caller: &Caller,
    waiting: &WaitingOutputs,
) -> Result<ConversationLock, ServiceError> {
    let id = &waiting.conversation;
    let lock = service.lock_conversation(caller, id).await?;
    service.wait_for_runs(caller, id).await?;
    Ok(lock)
}

/// Returns `true` if a request says what conversation it goes on with.
pub(super) fn names_conversation(body: &Map<String, Value>) -> bool {
    let is_given = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    is_given("conversation") || is_given("previous_response_id")
}

/// Finds the conversation that a request goes on with, if it says one.
pub(super) async fn named_place(
    service: &Service,
    caller: &Caller,
    body: &Map<String, Value>,
) -> Result<Option<Place>, ServiceError> {
    let conversation = match body.get("conversation") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(object) => match object["id"].as_str() {
            Some(id) => Some(id),
            None => {
                return Err(ServiceError::invalid(
                    "conversation is an identifier, or an object with an id",
                ));
            }
        },
    };
    match (conversation, text(body, "previous_response_id")?) {
        (Some(_), Some(_)) => Err(ServiceError::invalid(
            "conversation and previous_response_id exclude each other",
        )),
        (Some(id), None) => Place::named(service, caller, id).await.map(Some),
        (None, Some(previous)) => Ok(Some(Place {
            conversation: continue_from(service, caller, previous).await?,
            is_temporary: false,
            history: History::Stored,
        })),
        (None, None) => Ok(None),
    }
}

/// The conversation of an earlier response: the same one if nothing has followed, otherwise a copy up to there.
async fn continue_from(
    service: &Service,
    caller: &Caller,
    previous: &str,
) -> Result<Arc<str>, ServiceError> {
    let record = ResponseRecord::load(service, caller, previous).await?;
    let next = record.next.ok_or_else(|| {
        ServiceError::new(
            ServiceErrorKind::Conflict,
            "the previous response has not ended",
        )
    })?;
    let failed = |error| ServiceError::of_store(&error);
    let conversation = service.conversation(caller, &record.conversation)?;
    let head = conversation.head().await.map_err(failed)?;
    let head = head.ok_or_else(|| {
        ServiceError::not_found("the conversation of the previous response was deleted")
    })?;
    if head.revision.next == next {
        return Ok(record.conversation.into());
    }
    let copy = new_conversation(true)?;
    service
        .fork(caller, &record.conversation, &copy, Some(next))
        .await?;
    Ok(copy)
}
