//! Stored responses: what `GET /v1/responses/ID` returns, and where a response with `previous_response_id` goes on.
//!
//! A response is an entry of its own record in the store of conversations, under a name that no client can use.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected,
};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::service::{Caller, Service};

/// A stored response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    pub(super) response: Value,
    /// The items of the request.
    pub(super) input: Vec<Value>,
    /// The conversation's identifier.
    pub(super) conversation: String,
    /// The position after the last entry of the response; `None` before its end.
    pub(super) next: Option<u64>,
}

impl ResponseRecord {
    /// Stores the response as it is now.
    pub(super) async fn save(
        &self,
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ServiceError> {
        let internal = |error: &dyn std::fmt::Display| {
            ServiceError::new(
                ServiceErrorKind::Internal,
                format!("a response cannot be stored: {error}"),
            )
        };
        let json = serde_json::to_string(self).map_err(|error| internal(&error))?;
        let item = Item::from_json(json).map_err(|error| internal(&error))?;
        let entry = Entry::new(EntryContent::Item(item));
        let mut commit = Commit::new(Expected::Any, vec![entry]);
        commit.expires = Some(Some(
            SystemTime::now() + service.inner().limits.keep_responses,
        ));
        let name = caller.tenant.record_name("response", id);
        let committed = ConversationStore::commit(&service.inner().store, &name, commit).await;
        match committed.map_err(|error| ServiceError::of_store(&error))? {
            Committed::At(_) => Ok(()),
            _ => Err(internal(&"it was changed meanwhile")),
        }
    }

    /// Reads a response of the caller.
    pub(super) async fn load(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<Self, ServiceError> {
        let missing = || ServiceError::not_found(format!("there is no response {id:?}"));
        if !is_response_id(id) {
            return Err(missing());
        }
        let store = &service.inner().store;
        let name = caller.tenant.record_name("response", id);
        let failed = |error| ServiceError::of_store(&error);
        let head = ConversationStore::head(store, &name)
            .await
            .map_err(failed)?;
        let next = head.ok_or_else(missing)?.revision.next;
        let last = ConversationStore::read(store, &name, next.saturating_sub(1)..next);
        let last = last.await.map_err(failed)?;
        let json = last.last().map(|entry| entry.content.as_json());
        let json = json.ok_or_else(missing)?;
        serde_json::from_str(json).map_err(|error| {
            let message = format!("the response cannot be read: {error}");
            ServiceError::new(ServiceErrorKind::Internal, message)
        })
    }

    /// Deletes a response of the caller. Its conversation stays.
    pub(super) async fn delete(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ServiceError> {
        Self::load(service, caller, id).await?;
        let name = caller.tenant.record_name("response", id);
        let deleted = service.inner().store.delete(&name).await;
        deleted
            .map(drop)
            .map_err(|error| ServiceError::of_store(&error))
    }
}

/// Returns `true` for an identifier that the service has made.
fn is_response_id(id: &str) -> bool {
    let key = id.strip_prefix("resp_").unwrap_or_default();
    key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The run of a response.
pub(super) fn run_id(response: &str) -> String {
    response.replacen("resp_", "run_", 1)
}
