//! Conversations that are encrypted: what the store gets, keys, changes from outside, and runs.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod edited_store;
mod keys;
mod plain;
mod properties;
mod runs;
mod sealed_runs;
#[cfg(feature = "sqlite")]
mod sqlite_file;
mod storage;
mod tampering;
mod writers;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Conversation, ConversationStore, Conversations, Entry, MemoryStore,
};
use switchboard_core::{Item, Session};
use switchboard_sessions::{EncryptedStore, EncryptionError, EncryptionErrorKind, Keys};

/// The keys that most tests use.
fn first_key() -> Keys {
    Keys::new("first", [1; 32])
}

/// The conversations of a store, encrypted with [`first_key`].
fn encrypted(store: &(impl ConversationStore + Clone)) -> Conversations {
    Conversations::new(EncryptedStore::new(store.clone(), first_key()))
}

/// A store with an encrypted conversation `c` of these messages, one commit each.
async fn with_messages(texts: &[&str]) -> MemoryStore {
    let store = MemoryStore::default();
    append_each(&encrypted(&store).get("c"), texts).await;
    store
}

async fn append_each(conversation: &Conversation, texts: &[&str]) {
    for text in texts {
        conversation.append(&[Item::user(text)]).await.unwrap();
    }
}

/// The texts of all items of a conversation.
async fn texts(conversation: &Conversation) -> Result<Vec<String>, BoxError> {
    let items = conversation.load(None).await?;
    Ok(items
        .iter()
        .map(|item| item.text().unwrap_or_default().into_owned())
        .collect())
}

/// The entries as the store has them.
async fn stored(store: &MemoryStore, id: &str) -> Vec<Entry> {
    store.read(id, 0..1_000).await.unwrap()
}

fn kind(error: &BoxError) -> EncryptionErrorKind {
    error.downcast_ref::<EncryptionError>().unwrap().kind()
}
