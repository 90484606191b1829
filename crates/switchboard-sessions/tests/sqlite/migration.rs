//! Files of version 1, which had the tables `session` and `item`.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use switchboard_core::conversation::{Conversations, from_millis};
use switchboard_core::{Item, Session};
use switchboard_sessions::StoreErrorKind;

use crate::child_process::child;
use crate::{execute, jsons, load_all, new_path, open, raw, store_error, user_items};

/// A file that was written by the program that had version 1.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version_1.db");

/// The sessions in a file of version 1: name, agent, times and items.
type Session1 = (String, Option<String>, SystemTime, SystemTime, Vec<String>);

fn sessions_of_version_1(path: &Path) -> Vec<Session1> {
    let file = raw(path);
    let sql = "SELECT name, agent, created, changed, id FROM session ORDER BY name";
    let mut sessions = file.prepare(sql).unwrap();
    let sessions = sessions.query_map([], |row| {
        let sql = "SELECT json FROM item WHERE session = ? ORDER BY position";
        let mut items = file.prepare_cached(sql)?;
        let items = items.query_map([row.get::<_, i64>(4)?], |row| row.get(0))?;
        let time = |index| Ok::<_, rusqlite::Error>(from_millis(row.get(index)?));
        let items = items.collect::<Result<_, _>>()?;
        Ok((row.get(0)?, row.get(1)?, time(2)?, time(3)?, items))
    });
    sessions.unwrap().collect::<Result<_, _>>().unwrap()
}

async fn stored(conversations: &Conversations) -> Vec<Session1> {
    let mut heads = conversations.list(None).await.unwrap();
    heads.sort_by(|a, b| a.id.cmp(&b.id));
    let mut stored = Vec::new();
    for head in heads {
        let items = jsons(&conversations.get(head.id.clone())).await;
        let agent = head.agent.map(|agent| agent.to_string());
        stored.push((
            head.id.to_string(),
            agent,
            head.created,
            head.changed,
            items,
        ));
    }
    stored
}

#[tokio::test]
async fn a_file_of_version_1_keeps_every_item_agent_and_time() {
    let (_folder, path) = new_path();
    fs::copy(FILE, &path).unwrap();
    let expected = sessions_of_version_1(&path);
    let short: Vec<_> = expected
        .iter()
        .map(|(name, agent, _, _, items)| (name.as_str(), agent.as_deref(), items.len()))
        .collect();
    assert_eq!(
        short,
        [
            ("agent only", Some("Triage"), 0),
            ("cleared", None, 0),
            ("customer-42", Some("Billing"), 6),
            ("long", None, 120),
            ("odd '\" %_ \0 🙂", None, 6),
            ("popped", None, 1),
        ]
    );

    for _ in 0..2 {
        let conversations = open(&path).await.unwrap();
        assert_eq!(stored(&conversations).await, expected);
        let heads = conversations.list(None).await.unwrap();
        for head in heads {
            let conversation = conversations.get(head.id.clone());
            let entries = conversation.entries(0..u64::MAX).await.unwrap();
            assert!(entries.iter().all(|entry| entry.time == head.changed));
            assert_eq!(entries.len() as u64, head.revision.next);
            assert!(head.revision.epoch > 0);
        }
        let found = conversations.search("WHICH bill", 9).await.unwrap();
        assert_eq!(found.len(), 1);
        conversations.close().await;
    }
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('session', 'item')";
    let left: i64 = raw(&path).query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_migrated_conversation_goes_on_with_its_agent() {
    let (_folder, path) = new_path();
    fs::copy(FILE, &path).unwrap();
    let conversations = open(&path).await.unwrap();
    let conversation = conversations.get("customer-42");
    conversation.append(&user_items(&["Thanks"])).await.unwrap();
    assert_eq!(
        conversation.pop().await.unwrap(),
        Some(Item::user("Thanks"))
    );
    assert_eq!(load_all(&conversation).await.len(), 6);
    assert_eq!(
        conversation.agent().await.unwrap().as_deref(),
        Some("Billing")
    );
}

#[tokio::test]
async fn items_in_the_write_ahead_log_of_version_1_are_kept() {
    let (_folder, path) = new_path();
    fs::copy(FILE, &path).unwrap();
    let writer = raw(&path);
    let json = r#"{"role":"user","content":"in the log"}"#;
    let sql = "INSERT INTO item (session, position, json) \
               SELECT id, 1, ? FROM session WHERE name = 'popped'";
    assert_eq!(writer.execute(sql, [json]).unwrap(), 1);
    assert!(fs::metadata(path.with_extension("db-wal")).unwrap().len() > 0);

    let conversations = open(&path).await.unwrap();
    assert_eq!(jsons(&conversations.get("popped")).await[1], json);
}

#[tokio::test]
async fn an_unreadable_item_of_version_1_stays_in_the_file() {
    let (_folder, path) = new_path();
    fs::copy(FILE, &path).unwrap();
    execute(
        &path,
        "UPDATE item SET json = CAST(x'7bff' AS TEXT) WHERE position = 1",
    );
    let conversations = open(&path).await.unwrap();
    let error = conversations
        .get("customer-42")
        .load(None)
        .await
        .unwrap_err();
    let error = store_error(&error);
    assert_eq!(
        (error.kind(), error.position()),
        (StoreErrorKind::Entry, Some(1))
    );
    let sql = "SELECT hex(json) FROM entry WHERE position = 1";
    let kept: String = raw(&path).query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "7BFF");
}

#[tokio::test]
async fn a_file_of_version_1_without_its_tables_is_damaged() {
    let (_folder, path) = new_path();
    fs::copy(FILE, &path).unwrap();
    execute(&path, "DROP TABLE item");
    let error = open(&path).await.unwrap_err();
    let message = format!(
        "conversations in {path:?}: its table \"item\" is missing or was changed; restore the file \
         from a copy, or save what is left with `sqlite3 FILE .recover`"
    );
    assert_eq!(
        (error.kind(), error.to_string()),
        (StoreErrorKind::Damaged, message)
    );
}

#[tokio::test]
async fn a_process_killed_during_the_migration_loses_nothing() {
    let (_folder, original) = new_path();
    fs::copy(FILE, &original).unwrap();
    // Large enough that the migration takes some time.
    execute(
        &original,
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
         INSERT INTO item SELECT session.id, i + 1000, '{\"n\":' || i || '}' FROM n, session \
         WHERE name = 'long'",
    );
    let expected = sessions_of_version_1(&original);
    for round in 0..10 {
        let (_folder, path) = new_path();
        fs::copy(&original, &path).unwrap();
        let mut child = child("open_and_close", "", &path).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5 + round * 15));
        child.kill().unwrap();
        child.wait().unwrap();

        let conversations = open(&path).await.unwrap();
        assert!(stored(&conversations).await == expected, "round {round}");
        conversations.close().await;
    }
}
