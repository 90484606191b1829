//! Conversations of clients that keep their conversations themselves: each goes with its run.
//!
//! One is marked in its details, and has a time of expiry, before its run begins: so it is neither listed nor searched, and
//! goes though its process is killed. If calls of the client's tools wait at the end of the run, it stays until they are
//! answered. If people are asked, it is an ordinary conversation from then on, which expires.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, Conversation, ConversationStore, Expected, Head,
};

use super::{Caller, Service};
use crate::error::ServiceError;

/// The time for which a conversation of a client that keeps its conversations itself is stored.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// The field of the details that marks a temporary conversation.
const MARK: &str = "temporary";

/// The beginning of the names that the service gives to temporary conversations. Clients may choose such names too.
const PREFIX: &str = "temp_";

/// The number of times that the head of a conversation is changed while others change it.
const ATTEMPTS: usize = 8;

/// The end of the run of a temporary conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemporaryEnd {
    /// Nothing waits.
    Ended,
    /// Only calls of the client's tools wait.
    WaitsForClient,
    WaitsForPeople,
    /// The run has come to nothing: the client sends again what it went on from, or another run has the conversation.
    Unchanged,
}

/// Returns `true` if these details are those of a temporary conversation.
pub(super) fn is_marked(details: &Value) -> bool {
    details[MARK] == true
}

/// Creates a temporary conversation. Returns `false` if there is one.
pub(super) async fn create(conversation: &Conversation) -> Result<bool, BoxError> {
    let mut commit = Commit::new(Expected::New, Vec::new());
    let mut details = Map::new();
    details.insert(MARK.to_owned(), true.into());
    commit.details = Some(Value::Object(details).to_string().into());
    commit.expires = Some(Some(SystemTime::now() + KEEP));
    let store = conversation.conversations();
    let committed = ConversationStore::commit(store, conversation.name(), commit).await?;
    Ok(matches!(committed, Committed::At(_)))
}

/// Deletes a temporary conversation after its run, or keeps it for what waits.
pub(super) async fn end(conversation: &Conversation, end: TemporaryEnd) {
    let expires = SystemTime::now() + KEEP;
    let ended = match end {
        TemporaryEnd::Ended => {
            let store = conversation.conversations();
            store.delete(conversation.name()).await.map(drop)
        }
        TemporaryEnd::WaitsForClient => conversation.expire_at(expires).await,
        TemporaryEnd::WaitsForPeople => make_ordinary(conversation, Some(expires)).await,
        TemporaryEnd::Unchanged => Ok(()),
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "a temporary conversation could not be removed");
    }
}

/// Makes a conversation an ordinary one, with another time of expiry, if it is temporary.
pub(super) async fn make_ordinary(
    conversation: &Conversation,
    expires: Option<SystemTime>,
) -> Result<(), BoxError> {
    for _ in 0..ATTEMPTS {
        let Some(head) = conversation.head().await? else {
            return Ok(());
        };
        let mut details = read_details(&head);
        if !is_marked(&details) {
            return Ok(());
        }
        if let Some(fields) = details.as_object_mut() {
            fields.remove(MARK);
        }
        let mut commit = Commit::new(Expected::At(head.revision), Vec::new());
        commit.details = Some(details.to_string().into());
        commit.expires = Some(expires);
        let store = conversation.conversations();
        let committed = ConversationStore::commit(store, conversation.name(), commit);
        if let Committed::At(_) = committed.await? {
            return Ok(());
        }
    }
    Err("the conversation is being changed".into())
}

fn read_details(head: &Head) -> Value {
    let details = head.details.as_deref();
    details
        .and_then(|details| serde_json::from_str(details).ok())
        .unwrap_or_default()
}

impl Service {
    /// Returns `true` for a conversation that goes with its run. One that a client has named never does.
    pub(crate) async fn is_temporary(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<bool, ServiceError> {
        // Most conversations need not be read for it.
        if !id.starts_with(PREFIX) {
            return Ok(false);
        }
        let head = self.conversation(caller, id)?.head().await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        Ok(head.is_some_and(|head| is_marked(&read_details(&head))))
    }
}
