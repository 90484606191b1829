//! Session files of the Python SDK. That the package itself reads and writes them is tested in
//! `crates/switchboard/tests/python.rs`.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use switchboard_core::conversation::Conversations;
use switchboard_core::{Item, Session};
use switchboard_sessions::{StoreErrorKind, python};

use crate::{execute, jsons, new_path, open, raw, store_error, user_items};

/// The tables of the Python SDK, with two sessions and one that is empty.
const SESSIONS: &str = "
CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
    message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
INSERT INTO agent_sessions VALUES ('b', '2025-01-01 00:00:00', '2025-01-01 00:00:02');
INSERT INTO agent_sessions VALUES ('a', '2025-01-01 00:00:01', '2025-01-01 00:00:01');
INSERT INTO agent_sessions VALUES ('empty', '2025-01-01 00:00:01', '2025-01-01 00:00:01');
INSERT INTO agent_messages (session_id, message_data, created_at) VALUES
    ('b', '{\"role\": \"user\", \"content\": \"a lone \\ud800 \\u00e9\"}', '2025-01-01 00:00:00'),
    ('a', '{\"role\": \"user\",   \"content\": \"Hi\"}', '2025-01-01 00:00:01'),
    ('b', '{\"n\": 1.0e0}', '2025-01-01 00:00:02');
";

/// 2025-01-01 00:00:00 UTC.
const NEW_YEAR: u64 = 1_735_689_600;

async fn import_error(path: &Path, conversations: &Conversations) -> (StoreErrorKind, String) {
    let error = python::import(path, conversations).await.unwrap_err();
    let error = store_error(&error);
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn sessions_are_imported_byte_for_byte_with_their_times() {
    let (_folder, path) = new_path();
    execute(&path, SESSIONS);
    let before = fs::read(&path).unwrap();
    let conversations = Conversations::in_memory();
    let names = python::import(&path, &conversations).await.unwrap();
    assert_eq!(names, ["b", "a"]);
    let b = conversations.get("b");
    assert_eq!(
        jsons(&b).await,
        [
            r#"{"role": "user", "content": "a lone \ud800 \u00e9"}"#,
            r#"{"n": 1.0e0}"#
        ]
    );
    let times = b.entries(0..9).await.unwrap();
    let times: Vec<_> = times.iter().map(|entry| entry.time).collect();
    let time = |seconds| UNIX_EPOCH + Duration::from_secs(NEW_YEAR + seconds);
    assert_eq!(times, [time(0), time(2)]);
    assert!(fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn nothing_is_imported_if_a_name_is_taken_or_an_item_is_invalid() {
    let (_folder, path) = new_path();
    execute(&path, SESSIONS);
    let conversations = Conversations::in_memory();
    conversations
        .get("a")
        .append(&user_items(&["1"]))
        .await
        .unwrap();
    let message = format!(
        "conversations in {path:?}, conversation \"a\": the store has a conversation of this name; \
         choose another name, or delete it first"
    );
    let error = import_error(&path, &conversations).await;
    assert_eq!(error, (StoreErrorKind::Exists, message));
    assert_eq!(conversations.list(None).await.unwrap().len(), 1);

    conversations.delete("a").await.unwrap();
    execute(
        &path,
        "UPDATE agent_messages SET message_data = '[\"secret\"]' WHERE id = 3",
    );
    let (kind, message) = import_error(&path, &conversations).await;
    assert_eq!(kind, StoreErrorKind::Entry);
    let start = format!(
        "conversations in {path:?}, conversation \"b\", entry 1: this is not an item (an item is one \
         JSON object);"
    );
    assert!(message.starts_with(&start), "{message}");
    assert_eq!(conversations.list(None).await.unwrap(), []);
}

#[tokio::test]
async fn a_file_without_sessions_of_python_is_rejected() {
    let (_folder, path) = new_path();
    let conversations = Conversations::in_memory();
    let (kind, message) = import_error(&path, &conversations).await;
    assert_eq!(kind, StoreErrorKind::Address);
    assert_eq!(
        message,
        format!("conversations in {path:?}: there is no such file")
    );
    assert!(!path.exists());

    open(&path).await.unwrap().close().await;
    let before = fs::read(&path).unwrap();
    let (kind, _) = import_error(&path, &conversations).await;
    assert_eq!(kind, StoreErrorKind::Foreign);
    let conversation = conversations.get("a");
    conversation.append(&user_items(&["1"])).await.unwrap();
    let error = python::export(&conversation, &path).await.unwrap_err();
    assert_eq!(store_error(&error).kind(), StoreErrorKind::Foreign);
    assert!(fs::read(&path).unwrap() == before);
    fs::write(&path, "Dear diary, ".repeat(1_000)).unwrap();
    let (kind, _) = import_error(&path, &conversations).await;
    assert_eq!(kind, StoreErrorKind::Foreign);
}

#[tokio::test]
async fn an_export_adds_the_record_to_the_sessions_of_a_file() {
    let (_folder, path) = new_path();
    execute(&path, SESSIONS);
    let conversations = Conversations::in_memory();
    let conversation = conversations.get("c");
    assert_eq!(python::export(&conversation, &path).await.unwrap(), 0);
    conversation.append(&user_items(&["1", "2"])).await.unwrap();
    conversation.set_agent(Some("Billing")).await.unwrap();
    conversation.append(&user_items(&["3"])).await.unwrap();
    assert_eq!(conversation.pop().await.unwrap(), Some(Item::user("3")));
    assert_eq!(python::export(&conversation, &path).await.unwrap(), 2);

    let file = raw(&path);
    let sql = "SELECT session_id, message_data FROM agent_messages ORDER BY id DESC LIMIT 3";
    let mut rows = file.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let rows: Vec<(String, String)> = rows
        .query_map([], row)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let of_c = |text| ("c".to_owned(), Item::user(text).as_json().to_owned());
    assert_eq!(rows[..2], [of_c("2"), of_c("1")]);
    assert_eq!(rows[2].0, "b");

    let error = python::export(&conversation, &path).await.unwrap_err();
    let message = format!(
        "conversations in {path:?}, conversation \"c\": the file has a session of this name; choose \
         another name, or delete it first"
    );
    assert_eq!(store_error(&error).to_string(), message);
    let others = Conversations::in_memory();
    assert_eq!(
        python::import(&path, &others).await.unwrap(),
        ["b", "a", "c"]
    );
}
