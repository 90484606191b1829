//! Records of the service itself: responses and tasks that are kept for clients.
//!
//! A record is an entry in the store of conversations, under a name that no client can use for a conversation. Saving
//! it again appends an entry; the last one counts.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected, Revision,
};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::service::{Caller, Service};

/// The kinds of records, which are a part of their stored names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Response,
    Task,
}

impl RecordKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Task => "task",
        }
    }
}

/// The record as it is to be stored.
pub(crate) struct NewRecord<'a, T> {
    pub(crate) content: &'a T,
    pub(crate) expected: Expected,
    /// A JSON object that lists of records have.
    pub(crate) summary: Option<Arc<str>>,
}

impl Service {
    /// Stores a record of the caller. Returns its revision; `None` if it is not as expected.
    pub(crate) async fn save_record<T: Serialize>(
        &self,
        caller: &Caller,
        kind: RecordKind,
        id: &str,
        record: NewRecord<'_, T>,
    ) -> Result<Option<Revision>, ServiceError> {
        let internal = |error: &dyn std::fmt::Display| {
            let message = format!("a {} cannot be stored: {error}", kind.as_str());
            ServiceError::new(ServiceErrorKind::Internal, message)
        };
        let json = serde_json::to_string(record.content).map_err(|error| internal(&error))?;
        let item = Item::from_json(json).map_err(|error| internal(&error))?;
        let entry = Entry::new(EntryContent::Item(item));
        let mut commit = Commit::new(record.expected, vec![entry]);
        commit.details = record.summary;
        commit.expires = Some(Some(SystemTime::now() + self.inner().limits.keep_responses));
        let name = caller.tenant.record_name(kind.as_str(), id);
        let committed = ConversationStore::commit(&self.inner().store, &name, commit).await;
        let committed = committed.map_err(|error| ServiceError::of_store(&error))?;
        self.inner().records_changed.notify_waiters();
        Ok(match committed {
            Committed::At(revision) => Some(revision),
            _ => None,
        })
    }

    /// Reads a record of the caller, with its revision; `None` if there is none.
    pub(crate) async fn load_record<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        kind: RecordKind,
        id: &str,
    ) -> Result<Option<(T, Revision)>, ServiceError> {
        if !is_record_id(id) {
            return Ok(None);
        }
        let store = &self.inner().store;
        let name = caller.tenant.record_name(kind.as_str(), id);
        let failed = |error| ServiceError::of_store(&error);
        let head = ConversationStore::head(store, &name).await;
        let Some(head) = head.map_err(failed)? else {
            return Ok(None);
        };
        let next = head.revision.next;
        let last = ConversationStore::read(store, &name, next.saturating_sub(1)..next);
        let last = last.await.map_err(failed)?;
        let Some(entry) = last.last() else {
            return Ok(None);
        };
        let record = serde_json::from_str(entry.content.as_json()).map_err(|error| {
            let message = format!("the {} cannot be read: {error}", kind.as_str());
            ServiceError::new(ServiceErrorKind::Internal, message)
        })?;
        Ok(Some((record, head.revision)))
    }

    /// Deletes a record of the caller.
    pub(crate) async fn delete_record(
        &self,
        caller: &Caller,
        kind: RecordKind,
        id: &str,
    ) -> Result<(), ServiceError> {
        let name = caller.tenant.record_name(kind.as_str(), id);
        let deleted = self.inner().store.delete(&name).await;
        deleted
            .map(drop)
            .map_err(|error| ServiceError::of_store(&error))
    }
}

/// Returns `true` for an identifier that the service has made: a word, and 32 hexadecimal digits.
fn is_record_id(id: &str) -> bool {
    let Some((word, key)) = id.split_once('_') else {
        return false;
    };
    word.bytes().all(|byte| byte.is_ascii_lowercase())
        && key.len() == 32
        && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}
