//! The client's list of messages beside the stored conversation.
//!
//! A client sends its whole list with each run. The service remembers the identifiers of the user's messages that it
//! was given, in a record of its own beside the conversation, and compares them in order:
//!
//! | the client's list | what happens |
//! | --- | --- |
//! | all that were given, and others after them | the others are new |
//! | all that were given, and the last of the list is one of them | it is answered again |
//! | some that were given, then others or none | what followed the first difference is taken back; the rest is new |
//! | none that was given, and no answers | all are new: the client sends only what is new |
//! | none that was given, with answers, and nothing is stored | the list is the beginning of the conversation |
//! | none that was given, with answers, and something is stored | refused: it is the history of another conversation |

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, Conversation, ConversationStore, Entry, EntryContent, Expected,
};

use super::input::{Message, Role};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::service::{Caller, Service};

/// A message of the user that the service was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Given {
    /// Its place among those that were given; those from there on are forgotten.
    at: usize,
    id: Arc<str>,
    /// The end of the stored conversation when it was given.
    position: u64,
    /// The number of the user's messages before it that were given with it.
    offset: usize,
}

/// The new part of a client's list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewPart {
    /// The index of the first message that is new.
    pub(super) start: usize,
    /// The index of the first message after the last one that was given before: results of tools follow it.
    pub(super) after_given: usize,
    /// The number of messages that were given before and stay.
    kept: usize,
    /// Set if what was given from there on is taken back.
    is_rewound: bool,
}

/// Finds the new part of a list. `given` are the identifiers of the messages that were given before. With answers to
/// interrupts, no message is answered again.
fn compare<'a>(
    given: impl ExactSizeIterator<Item = &'a Arc<str>>,
    messages: &[Message],
    is_stored: bool,
    is_resumed: bool,
) -> Result<NewPart, ServiceError> {
    let count = given.len();
    let mut users = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message.role == Role::User)
        .peekable();
    let mut kept = 0;
    let mut after_given = 0;
    let mut last_given = None;
    for id in given {
        match users.next_if(|(_, message)| message.id == *id) {
            Some((at, _)) => {
                kept += 1;
                after_given = at + 1;
                last_given = Some(at);
            }
            None => break,
        }
    }
    let next = users.peek().map(|(at, _)| *at);
    let is_same = kept == count && (count > 0 || !is_stored);
    if kept == 0 && !is_same && !messages.iter().all(is_no_answer) {
        return Err(ServiceError::new(
            ServiceErrorKind::Conflict,
            "the messages are not those of this thread: send only the new ones, or use another threadId",
        ));
    }
    let part = |start, kept, is_rewound| NewPart {
        start,
        after_given,
        kept,
        is_rewound,
    };
    Ok(match (next, last_given) {
        // Nothing is new: the last message is answered again, if it is the user's.
        (None, Some(at)) if !is_resumed && messages[at + 1..].iter().all(is_no_answer) => NewPart {
            after_given: at,
            ..part(at, kept - 1, true)
        },
        (None, _) => part(messages.len(), count, false),
        (Some(_), _) if count == 0 && !is_stored => part(0, 0, false),
        (Some(next), None) => part(next, count, false),
        (Some(next), Some(_)) => part(next, kept, !is_same),
    })
}

/// Returns `true` for a message that no agent and no tool has made.
fn is_no_answer(message: &Message) -> bool {
    matches!(
        message.role,
        Role::User | Role::System | Role::Developer | Role::Activity
    )
}

/// The record of the messages that were given, for a conversation.
pub(super) struct History<'a> {
    service: &'a Service,
    record: Arc<str>,
    given: Vec<Given>,
}

impl<'a> History<'a> {
    /// Reads the record.
    pub(super) async fn load(
        service: &'a Service,
        caller: &Caller,
        thread: &str,
    ) -> Result<Self, ServiceError> {
        let record = record_name(caller, thread);
        let failed = |error| ServiceError::of_store(&error);
        let store = &service.inner().store;
        let head = ConversationStore::head(store, &record)
            .await
            .map_err(failed)?;
        let mut given: Vec<Given> = Vec::new();
        if let Some(head) = head {
            let positions = head.first..head.revision.next;
            let entries = ConversationStore::read(store, &record, positions).await;
            for entry in entries.map_err(failed)? {
                let read = serde_json::from_str::<Given>(entry.content.as_json());
                let message = read.map_err(|error| {
                    let message = format!("the record of the thread cannot be read: {error}");
                    ServiceError::new(ServiceErrorKind::Internal, message)
                })?;
                given.truncate(message.at);
                given.push(message);
            }
        }
        Ok(Self {
            service,
            record,
            given,
        })
    }

    /// Brings the stored conversation to where the client has it, and returns the new part of the client's list.
    pub(super) async fn align(
        self,
        conversation: &Conversation,
        messages: &[Message],
        is_resumed: bool,
    ) -> Result<NewPart, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let head = conversation.head().await.map_err(failed)?;
        let is_stored = head.as_ref().is_some_and(|head| head.entries() > 0);
        // What was given to a conversation that was deleted is not known any more.
        let given = if is_stored { &*self.given } else { &[] };
        let ids = given.iter().map(|given| &given.id);
        let part = compare(ids, messages, is_stored, is_resumed)?;
        if is_resumed && part.is_rewound {
            return Err(ServiceError::new(
                ServiceErrorKind::Conflict,
                "the messages before an interrupt cannot be changed while it is answered",
            ));
        }
        let mut position = head.map_or(0, |head| head.revision.next);
        if let Some(first) = given.get(part.kept).filter(|_| part.is_rewound) {
            if let Some(found) = find_entry(conversation, first).await? {
                conversation.rewind(found).await.map_err(failed)?;
            }
            let head = conversation.head().await.map_err(failed)?;
            position = head.map_or(0, |head| head.revision.next);
        }
        let new = messages[part.start..]
            .iter()
            .filter(|message| message.role == Role::User);
        let new = new.enumerate().map(|(offset, message)| Given {
            at: part.kept + offset,
            id: message.id.clone(),
            position,
            offset,
        });
        self.append(new.collect()).await?;
        Ok(part)
    }

    async fn append(&self, given: Vec<Given>) -> Result<(), ServiceError> {
        if given.is_empty() {
            return Ok(());
        }
        let internal = |error: &dyn std::fmt::Display| {
            ServiceError::new(ServiceErrorKind::Internal, error.to_string())
        };
        let entry = |given: &Given| {
            let json = serde_json::to_string(given).map_err(|error| internal(&error))?;
            let item = Item::from_json(json).map_err(|error| internal(&error))?;
            Ok(Entry::new(EntryContent::Item(item)))
        };
        let entries = given
            .iter()
            .map(entry)
            .collect::<Result<_, ServiceError>>()?;
        let store = &self.service.inner().store;
        let commit = Commit::new(Expected::Any, entries);
        let committed = ConversationStore::commit(store, &self.record, commit).await;
        match committed.map_err(|error| ServiceError::of_store(&error))? {
            Committed::At(_) => Ok(()),
            _ => Err(internal(&"the record of the thread was changed meanwhile")),
        }
    }
}

/// The position of the stored entry of a message, if it is there.
async fn find_entry(
    conversation: &Conversation,
    given: &Given,
) -> Result<Option<u64>, ServiceError> {
    let record = conversation.record(None).await;
    let record = record.map_err(|error| ServiceError::of_store(&error))?;
    let is_user = |entry: &&Entry| match &entry.content {
        EntryContent::Item(item) => item.role().as_deref() == Some("user"),
        _ => false,
    };
    let mut users = record
        .iter()
        .filter(|entry| entry.position >= given.position)
        .filter(is_user);
    Ok(users.nth(given.offset).map(|entry| entry.position))
}

/// The name of the record of a thread.
pub(crate) fn record_name(caller: &Caller, thread: &str) -> Arc<str> {
    caller.tenant.record_name("agui", thread)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    /// Messages of the user are numbers, answers are letters.
    fn list(ids: &str) -> Vec<Message> {
        let message = |id: char| {
            let role = if id.is_ascii_digit() {
                "user"
            } else {
                "assistant"
            };
            let json = serde_json::json!({"id": id, "role": role, "content": "x"});
            serde_json::from_value(json).unwrap()
        };
        ids.chars().map(message).collect()
    }

    /// The new messages, and the number of those that stay if something is taken back.
    fn compared(given: &str, ids: &str, is_stored: bool) -> Option<(String, Option<usize>)> {
        let given: Vec<Arc<str>> = given.chars().map(|id| id.to_string().into()).collect();
        let messages = list(ids);
        let part = compare(given.iter(), &messages, is_stored, false).ok()?;
        let new = messages[part.start..].iter().map(|message| &*message.id);
        Some((new.collect(), part.is_rewound.then_some(part.kept)))
    }

    #[test]
    fn only_what_is_new_in_a_list_is_input() {
        let new = |text: &str| Some((text.to_owned(), None));
        assert_eq!(compared("", "1", false), new("1"));
        assert_eq!(compared("1", "1a2", true), new("2"));
        assert_eq!(compared("12", "1a23", true), new("3"));
        assert_eq!(compared("1", "1a", true), new(""));
        assert_eq!(compared("12", "3", true), new("3"));
        assert_eq!(compared("", "1", true), new("1"));
        assert_eq!(compared("", "1a2", false), new("1a2"));
    }

    #[test]
    fn a_list_that_differs_takes_back_what_followed_or_is_refused() {
        let back = |text: &str, kept| Some((text.to_owned(), Some(kept)));
        assert_eq!(compared("12", "1a3", true), back("3", 1));
        assert_eq!(compared("12", "1a2", true), back("2", 1));
        assert_eq!(compared("123", "1a2", true), back("2", 1));
        assert_eq!(compared("123", "1a2b", true), Some((String::new(), None)));
        assert_eq!(compared("12", "3a4", true), None);
        assert_eq!(compared("", "1a2", true), None);
    }
}
