//! The entries that the store gets, and those that come back.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, EntryContent, Expected, MemoryStore,
};
use switchboard_core::{Item, Session};
use switchboard_sessions::{EncryptedStore, EncryptionErrorKind};

use crate::{append_each, encrypted, first_key, kind, stored, texts, with_messages};

/// A commit with an entry of each kind, all of which contain the word.
fn commit_of_all_kinds(word: &str) -> Commit {
    let json = format!(r#"{{"secret":"{word}"}}"#);
    let entry = |kind: &str| {
        let content = EntryContent::from_stored(kind, json.clone()).unwrap();
        Entry::new(content)
            .made_in("run-1", 2, 1)
            .made_by(Some("Support".into()))
    };
    let entries = ["item", "replacement", "state", "refused"].map(entry);
    let mut commit = Commit::new(Expected::New, entries.into());
    commit.run = "run-1".into();
    commit.number = 1;
    commit.agent = Some(Some("Support".into()));
    commit.details = Some(json.into());
    commit
}

#[tokio::test]
async fn the_store_gets_no_content_of_any_kind_and_gives_all_of_it_back() {
    let store = MemoryStore::default();
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let commit = commit_of_all_kinds("pomegranate");
    let committed = encrypted.commit("c", commit.clone()).await.unwrap();

    let in_store = format!(
        "{:?} {:?}",
        store.head("c").await.unwrap(),
        stored(&store, "c").await
    );
    assert!(!in_store.contains("pomegranate") && !in_store.contains("secret"));

    let entries = encrypted.read("c", 0..10).await.unwrap();
    let expected: Vec<Entry> = commit
        .entries
        .iter()
        .cloned()
        .zip(0..)
        .map(|(entry, position)| entry.at(position))
        .collect();
    assert_eq!(entries, expected);
    let head = encrypted.head("c").await.unwrap().unwrap();
    assert_eq!(committed, Committed::At(head.revision));
    let mut expected = store.head("c").await.unwrap().unwrap();
    expected.details = commit.details;
    assert_eq!(head, expected);
    let listed = Conversations::new(encrypted).list(None).await.unwrap();
    assert_eq!(listed, [expected]);
}

#[tokio::test]
async fn the_store_gets_the_kind_run_turn_agent_and_time_as_they_are() {
    let store = MemoryStore::default();
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let commit = commit_of_all_kinds("pomegranate");
    encrypted.commit("c", commit.clone()).await.unwrap();
    let stored = stored(&store, "c").await;
    for (stored, mut expected) in stored.into_iter().zip(commit.entries) {
        assert_eq!(stored.content.kind(), expected.content.kind());
        expected.position = stored.position;
        expected.content = stored.content.clone();
        assert_eq!(stored, expected);
        let json: serde_json::Value = serde_json::from_str(stored.content.as_json()).unwrap();
        assert_eq!(json["switchboard_encrypted"]["version"], 1);
        assert_eq!(stored.content.searchable_text(), None);
    }
    let head = store.head("c").await.unwrap().unwrap();
    assert_eq!(
        (head.agent.as_deref(), head.state),
        (Some("Support"), Some(2))
    );
    let details: serde_json::Value = serde_json::from_str(&head.details.unwrap()).unwrap();
    let sealed = &details["switchboard_encrypted"];
    assert_eq!(
        (&sealed["version"], &sealed["key"]),
        (&1.into(), &"first".into())
    );
}

#[tokio::test]
async fn equal_items_are_stored_as_different_bytes() {
    let store = with_messages(&["pomegranate", "pomegranate"]).await;
    let stored = stored(&store, "c").await;
    assert_ne!(stored[0].content, stored[1].content);
}

#[tokio::test]
async fn a_search_says_that_entries_are_encrypted() {
    let store = with_messages(&["pomegranate"]).await;
    let error = encrypted(&store)
        .search("pomegranate", 10)
        .await
        .unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NoSearch);
    assert_eq!(
        error.to_string(),
        "the conversations cannot be searched, because their entries are encrypted; read the ones in \
         question"
    );
}

#[tokio::test]
async fn ranges_are_read_as_from_the_store_within() {
    let store = with_messages(&["a", "b", "c", "d"]).await;
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    for range in [0..4, 0..0, 1..3, 3..9, 4..9, 7..9, 2..u64::MAX] {
        let positions = |entries: Vec<Entry>| -> Vec<u64> {
            entries.iter().map(|entry| entry.position).collect()
        };
        let read = encrypted.read("c", range.clone()).await.unwrap();
        let expected = store.read("c", range.clone()).await.unwrap();
        assert_eq!(positions(read), positions(expected), "{range:?}");
    }
    assert_eq!(encrypted.read("none", 0..9).await.unwrap(), []);
    assert_eq!(encrypted.head("none").await.unwrap(), None);
}

#[tokio::test]
async fn conversations_that_are_open_already_can_be_wrapped() {
    let open = Conversations::in_memory();
    let wrapped = Conversations::new(EncryptedStore::new(open.clone(), first_key()));
    let conversation = wrapped.get("c");
    append_each(&conversation, &["pomegranate"]).await;
    assert_eq!(texts(&conversation).await.unwrap(), ["pomegranate"]);
    let stored = open.get("c").entries(0..1).await.unwrap();
    assert!(!stored[0].content.as_json().contains("pomegranate"));
    assert!(wrapped.delete("c").await.unwrap());
    assert_eq!(open.list(None).await.unwrap(), []);
}

#[tokio::test]
async fn leases_and_expiry_are_those_of_the_store_within() {
    let store = with_messages(&["pomegranate"]).await;
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let minute = Duration::from_secs(60);
    assert!(encrypted.lease("c", "a", minute).await.unwrap());
    assert!(!store.lease("c", "b", minute).await.unwrap());
    encrypted.release("c", "a").await.unwrap();
    assert!(store.lease("c", "b", minute).await.unwrap());

    let conversations = Conversations::new(encrypted);
    let past = std::time::SystemTime::now() - minute;
    conversations.get("c").expire_at(past).await.unwrap();
    assert_eq!(conversations.delete_expired().await.unwrap(), 1);
    assert_eq!(store.head("c").await.unwrap(), None);
}

#[tokio::test]
async fn an_exported_conversation_is_plain_and_is_encrypted_anew_when_it_is_imported() {
    let store = with_messages(&["pomegranate", "persimmon"]).await;
    let conversations = encrypted(&store);
    let exported = conversations.get("c").export().await.unwrap();
    let json = serde_json::to_string(&exported).unwrap();
    assert!(json.contains("pomegranate") && json.contains("persimmon"));

    let copy = conversations.get("copy");
    copy.import(&exported).await.unwrap();
    assert_eq!(texts(&copy).await.unwrap(), ["pomegranate", "persimmon"]);
    let in_store = format!("{:?}", stored(&store, "copy").await);
    assert!(!in_store.contains("pomegranate") && !in_store.contains("persimmon"));
}

#[tokio::test]
async fn a_conversation_that_was_cleared_goes_on() {
    let store = with_messages(&["pomegranate"]).await;
    let conversation = encrypted(&store).get("c");
    conversation.clear().await.unwrap();
    assert_eq!(texts(&conversation).await.unwrap(), [""; 0]);
    conversation
        .append(&[Item::user("persimmon")])
        .await
        .unwrap();
    assert_eq!(texts(&conversation).await.unwrap(), ["persimmon"]);
    let id: Arc<str> = "c".into();
    assert_eq!(conversation.head().await.unwrap().unwrap().id, id);
}

#[tokio::test]
async fn the_time_of_expiry_changes_without_an_entry() {
    let store = with_messages(&["1"]).await;
    let conversations = encrypted(&store);
    let session = conversations.get("c");
    let time = switchboard_core::conversation::now();
    session.expire_at(time).await.unwrap();
    append_each(&session, &["2"]).await;
    assert_eq!(texts(&session).await.unwrap(), ["1", "2"]);
    let head = session.head().await.unwrap().unwrap();
    assert_eq!((head.expires, head.entries()), (Some(time), 2));
    assert_eq!(conversations.delete_expired().await.unwrap(), 1);
    assert_eq!(session.head().await.unwrap(), None);
}
