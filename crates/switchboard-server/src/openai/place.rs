//! The conversation of a request, and how long it is kept.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_core::Item;

use super::input::{WaitingOutputs, given_outputs, new_conversation, waiting_outputs};
use super::record::ResponseRecord;
use super::responses::text;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::service::{Caller, ConversationLock, GivenOutputs, Service};

/// The conversation, response or calls that a request continues.
pub(super) enum Origin {
    /// Nothing that is stored: a client sends all of its conversation.
    New,
    /// A conversation by its name.
    Conversation(Arc<str>),
    /// An earlier response.
    Response(Previous),
    /// Calls that wait, whose outputs are at the end of what the client sends.
    Calls(WaitingOutputs),
}

/// An earlier response, which has ended.
pub(super) struct Previous {
    conversation: Arc<str>,
    /// The position after its last entry.
    next: u64,
    is_temporary: bool,
}

impl Origin {
    /// Reads the origin from a request of the Responses protocol.
    pub(super) async fn of_response(
        service: &Service,
        caller: &Caller,
        body: &Map<String, Value>,
        items: &[Item],
    ) -> Result<Self, ServiceError> {
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
            (Some(id), None) => Ok(Self::Conversation(id.into())),
            (None, Some(previous)) => {
                let previous = Previous::load(service, caller, previous).await?;
                Ok(Self::Response(previous))
            }
            (None, None) => Ok(Self::of_history(items)),
        }
    }

    /// Reads the origin from the history that a client sends.
    pub(super) fn of_history(items: &[Item]) -> Self {
        waiting_outputs(items).map_or(Self::New, Self::Calls)
    }

    /// The stored conversation that the request goes on with, or copies.
    pub(super) fn conversation(&self) -> Option<&str> {
        match self {
            Self::New => None,
            Self::Conversation(id) => Some(id),
            Self::Response(previous) => Some(&previous.conversation),
            Self::Calls(waiting) => Some(&waiting.conversation),
        }
    }
}

impl Previous {
    async fn load(service: &Service, caller: &Caller, id: &str) -> Result<Self, ServiceError> {
        let record = ResponseRecord::load(service, caller, id).await?;
        let next = record.next.ok_or_else(|| {
            ServiceError::new(
                ServiceErrorKind::Conflict,
                "the previous response has not ended",
            )
        })?;
        Ok(Self {
            conversation: record.conversation.into(),
            next,
            is_temporary: record.is_temporary,
        })
    }

    /// The conversation to go on in: the same one if nothing has followed, otherwise a copy up to there.
    async fn continue_from(
        self,
        service: &Service,
        caller: &Caller,
    ) -> Result<Arc<str>, ServiceError> {
        let conversation = service.conversation(caller, &self.conversation)?;
        let head = conversation.head().await;
        match head.map_err(|error| ServiceError::of_store(&error))? {
            Some(head) if head.revision.next == self.next => Ok(self.conversation),
            Some(_) => {
                let copy = new_conversation(true)?;
                service
                    .fork(caller, &self.conversation, &copy, Some(self.next))
                    .await?;
                Ok(copy)
            }
            // The response failed before anything of it was stored.
            None if self.next == 0 && !self.is_temporary => Ok(self.conversation),
            None => Err(ServiceError::not_found(
                "the conversation of the previous response was deleted",
            )),
        }
    }
}

/// The conversation of a request.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) conversation: Arc<str>,
    /// Set if the conversation is a new one that goes with the run, unless it waits.
    pub(super) is_temporary: bool,
    /// The outputs of calls that may wait in it.
    pub(super) given: GivenOutputs,
    /// The input of the run, where it is not what the request has.
    pub(super) input: Option<Vec<Item>>,
}

impl Place {
    /// The conversation of a request. It was locked before, if it is a stored one.
    pub(super) async fn of(
        service: &Service,
        caller: &Caller,
        origin: Origin,
        items: &[Item],
        is_kept: bool,
    ) -> Result<Self, ServiceError> {
        match origin {
            Origin::New => {}
            Origin::Conversation(id) => {
                let given = given_outputs(items);
                let is_message = given.outputs.is_empty();
                if !is_message
                    && let Some(place) = Self::of_outputs(service, caller, &id, &given).await?
                {
                    return Ok(place);
                }
                return Ok(Self::stored(id, given));
            }
            Origin::Response(previous) => {
                let id = previous.continue_from(service, caller).await?;
                return Ok(Self::stored(id, given_outputs(items)));
            }
            Origin::Calls(WaitingOutputs {
                conversation,
                given,
            }) => {
                let place = Self::of_outputs(service, caller, &conversation, &given);
                if let Some(place) = place.await? {
                    return Ok(place);
                }
                // They were answered: the client's own record of the conversation is all that there is.
            }
        }
        Ok(Self {
            conversation: new_conversation(is_kept)?,
            is_temporary: !is_kept,
            given: GivenOutputs::default(),
            input: None,
        })
    }

    fn stored(conversation: Arc<str>, given: GivenOutputs) -> Self {
        Self {
            conversation,
            is_temporary: false,
            given,
            input: None,
        }
    }

    /// A conversation that waits for outputs, or has them and has not answered them; `None` if it has.
    async fn of_outputs(
        service: &Service,
        caller: &Caller,
        id: &Arc<str>,
        given: &GivenOutputs,
    ) -> Result<Option<Self>, ServiceError> {
        let outputs = &given.outputs;
        if service.waits_for_outputs(caller, id, outputs).await? {
            return Ok(Some(Self::stored(id.clone(), given.clone())));
        }
        let left = service.left_unanswered(caller, id, given).await?;
        Ok(left.map(|input| Self {
            input: Some(input),
            ..Self::stored(id.clone(), GivenOutputs::default())
        }))
    }
}

/// Locks the stored conversation that a request goes on with, once no run of it is under way: the same request may have
/// been sent before.
pub(super) async fn lock_origin(
    service: &Service,
    caller: &Caller,
    origin: &Origin,
) -> Result<Option<ConversationLock>, ServiceError> {
    let Some(id) = origin.conversation() else {
        return Ok(None);
    };
    let lock = service.lock_conversation(caller, id).await?;
    service.wait_for_runs(caller, id).await?;
    Ok(Some(lock))
}
