//! Encrypted conversations in a SQLite file.

use std::path::Path;

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, filters, handoff};
use switchboard_sessions::{EncryptedStore, EncryptionErrorKind, Keys, SqliteStore};

use crate::{append_each, encrypted, first_key, kind, texts};

/// Long enough not to stand in a random identifier, a time or a ciphertext by chance.
const WORDS: [&str; 5] = [
    "4111 1111",
    "[CARD]",
    "is pomegranate.",
    "And persimmon.",
    "transfer_to",
];

/// The bytes of the file and of those beside it.
fn bytes(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder).unwrap();
    files
        .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect()
}

fn found(folder: &Path) -> Vec<&'static str> {
    let bytes = bytes(folder);
    let is_in = |word: &&str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    WORDS.into_iter().filter(is_in).collect()
}

/// Runs a conversation with a handoff and a filter.
async fn converse(conversations: &Conversations) {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("The word is pomegranate.")
        .say("And persimmon.");
    let session = conversations.get("c");
    let runner = Runner::new(&triage).model(model).session(&session);
    runner.run("My card is 4111 1111 1111 1111").await.unwrap();
    runner.run("And the next word?").await.unwrap();
}

#[tokio::test]
async fn the_file_contains_no_word_of_a_conversation_while_it_is_open_and_when_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("c.db")).await.unwrap();
    let conversations = encrypted(&store);
    converse(&conversations).await;
    assert_eq!(found(folder.path()), [""; 0]);
    conversations.close().await;
    assert_eq!(found(folder.path()), [""; 0]);

    // The words are found if nothing is encrypted.
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("c.db")).await.unwrap();
    let conversations = Conversations::new(store);
    converse(&conversations).await;
    conversations.close().await;
    assert_eq!(found(folder.path()), WORDS);
}

#[tokio::test]
async fn an_encrypted_file_is_opened_again_rotated_and_opened_with_the_new_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let conversations = encrypted(&store);
    append_each(&conversations.get("c"), &["pomegranate"]).await;
    conversations.close().await;

    let new_key = || Keys::new("second", [2; 32]);
    let store = SqliteStore::open(&path).await.unwrap();
    let keys = new_key().and_older("first", [1; 32]);
    let rotating = EncryptedStore::new(store, keys);
    let rotation = rotating.rotate_all().await.unwrap();
    assert_eq!((rotation.rotated, rotation.failed.len()), (1, 0));
    Conversations::new(rotating).close().await;

    let store = SqliteStore::open(&path).await.unwrap();
    let conversation = Conversations::new(EncryptedStore::new(store.clone(), new_key())).get("c");
    append_each(&conversation, &["persimmon"]).await;
    assert_eq!(
        texts(&conversation).await.unwrap(),
        ["pomegranate", "persimmon"]
    );
    let old = Conversations::new(EncryptedStore::new(store, first_key())).get("c");
    let error = texts(&old).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::MissingKey);
    conversation.conversations().close().await;
    assert_eq!(found(folder.path()), [""; 0]);
}

#[tokio::test]
async fn entries_that_were_exchanged_or_removed_in_the_file_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let conversations = encrypted(&store);
    append_each(
        &conversations.get("c"),
        &["pomegranate", "persimmon", "quince"],
    )
    .await;
    append_each(
        &conversations.get("d"),
        &["pomegranate", "persimmon", "quince"],
    )
    .await;
    conversations.close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let id = |name: &str| -> i64 {
        let sql = "SELECT id FROM conversation WHERE name = ?";
        connection.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let remove = "DELETE FROM entry WHERE conversation = ? AND position = 1";
    connection.execute(remove, [id("c")]).unwrap();
    let exchange = "UPDATE entry SET json = (SELECT json FROM entry AS other \
                    WHERE other.conversation = entry.conversation AND other.position = 2 - entry.position) \
                    WHERE conversation = ? AND position IN (0, 2)";
    assert_eq!(connection.execute(exchange, [id("d")]).unwrap(), 2);
    drop(connection);

    let store = SqliteStore::open(&path).await.unwrap();
    let conversations = encrypted(&store);
    for (name, position) in [("c", 1), ("d", 0)] {
        let error = texts(&conversations.get(name)).await.unwrap_err();
        assert_eq!(kind(&error), EncryptionErrorKind::Tampered);
        let place = format!("the entry at position {position} of the conversation {name:?}");
        assert!(error.to_string().starts_with(&place), "{error}");
    }
    conversations.close().await;
}
