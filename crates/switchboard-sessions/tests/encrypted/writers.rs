//! Several writers, repeated commits, and conversations that are cleared meanwhile.

use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, EntryContent, Expected,
};
use switchboard_core::{Item, Session};
use switchboard_sessions::EncryptedStore;

use crate::edited_store::EditedStore;
use crate::{append_each, encrypted, first_key, stored, texts, with_messages};

fn commit(expected: Expected, text: &str, number: u32) -> Commit {
    let content = EntryContent::Item(Item::user(text));
    let entry = Entry::new(content).made_in("run-1", 1, number);
    let mut commit = Commit::new(expected, vec![entry]);
    commit.run = "run-1".into();
    commit.number = number;
    commit
}

#[tokio::test]
async fn a_commit_that_is_made_again_changes_nothing() {
    let store = with_messages(&["one"]).await;
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let revision = encrypted.head("c").await.unwrap().unwrap().revision;
    let commit = commit(Expected::At(revision), "two", 3);
    let first = encrypted.commit("c", commit.clone()).await.unwrap();
    let before = stored(&store, "c").await;
    let second = encrypted.commit("c", commit.clone()).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(stored(&store, "c").await, before);

    let mut other = commit;
    other.number = 4;
    assert_eq!(
        encrypted.commit("c", other).await.unwrap(),
        Committed::Conflict
    );
    let conversation = Conversations::new(encrypted).get("c");
    assert_eq!(texts(&conversation).await.unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn a_first_commit_that_is_made_again_changes_nothing() {
    let store = with_messages(&[]).await;
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let commit = commit(Expected::New, "one", 1);
    let first = encrypted.commit("c", commit.clone()).await.unwrap();
    assert_eq!(encrypted.commit("c", commit).await.unwrap(), first);
    let conversation = Conversations::new(encrypted).get("c");
    assert_eq!(texts(&conversation).await.unwrap(), ["one"]);
}

#[tokio::test]
async fn a_commit_to_a_conversation_that_was_deleted_is_a_conflict() {
    let store = with_messages(&["one"]).await;
    let encrypted = EncryptedStore::new(store.clone(), first_key());
    let revision = encrypted.head("c").await.unwrap().unwrap().revision;
    store.delete("c").await.unwrap();
    let late = commit(Expected::At(revision), "two", 1);
    assert_eq!(
        encrypted.commit("c", late).await.unwrap(),
        Committed::Conflict
    );
    assert_eq!(store.head("c").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_of_many_writers_append_to_one_conversation() {
    let store = with_messages(&[]).await;
    let conversations = encrypted(&store);
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let conversation = conversations.get("c");
            tokio::spawn(async move {
                for message in 0..8 {
                    append_each(&conversation, &[&format!("{writer}.{message}")]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut all = texts(&conversations.get("c")).await.unwrap();
    all.sort();
    let mut expected: Vec<String> = (0..16)
        .flat_map(|writer| (0..8).map(move |message| format!("{writer}.{message}")))
        .collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn what_is_committed_while_the_conversation_is_cleared_stays_readable() {
    let store = with_messages(&["one", "two"]).await;
    let conversation = encrypted(&store).get("c");
    conversation.set_agent(Some("Support")).await.unwrap();
    let clearing = EditedStore::new(&store).clear_before("commit");
    let other = encrypted(&clearing).get("c");
    other.append(&[Item::user("three")]).await.unwrap();
    assert_eq!(texts(&conversation).await.unwrap(), ["three"]);
    assert_eq!(conversation.agent().await.unwrap(), None);
    append_each(&conversation, &["four"]).await;
    assert_eq!(texts(&conversation).await.unwrap(), ["three", "four"]);
}

#[tokio::test]
async fn a_conversation_that_is_cleared_while_it_is_read_is_empty() {
    let store = with_messages(&["one", "two"]).await;
    let clearing = EditedStore::new(&store).clear_before("read");
    let conversation = encrypted(&clearing).get("c");
    assert_eq!(texts(&conversation).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_conversation_that_is_cleared_while_its_key_is_rotated_goes_on() {
    let store = with_messages(&["one"]).await;
    let clearing = EditedStore::new(&store).clear_before("commit");
    let keys = switchboard_sessions::Keys::new("second", [2; 32]).and_older("first", [1; 32]);
    let rotating = EncryptedStore::new(clearing, keys);
    rotating.rotate("c").await.unwrap();
    let conversation = Conversations::new(rotating).get("c");
    assert_eq!(texts(&conversation).await.unwrap(), [""; 0]);
    append_each(&conversation, &["two"]).await;
    assert_eq!(texts(&conversation).await.unwrap(), ["two"]);
}
