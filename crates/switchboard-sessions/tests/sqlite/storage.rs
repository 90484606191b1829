//! Storing and loading items.

use std::time::{Duration, SystemTime};

use sqlx::Connection;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, Session};
use switchboard_sessions::{SessionErrorKind, SqliteSessions};

use crate::{execute, jsons, new_path, new_sessions, raw, session_error, user_items};

#[tokio::test]
async fn items_are_loaded_byte_for_byte_also_from_a_reopened_file() {
    let (_folder, path) = new_path();
    let deep = format!(r#"{{"deep":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let texts = [
        r#"{ "type" : "hologram",  "depth":3.0e0, "id":null }"#,
        r#"{"role":"user","content":"a lone \ud800 surrogate"}"#,
        r#"{"\ud800":1,"type":"function_call"}"#,
        r#"{"type":"a","type":"b","big":123456789012345678901234567890}"#,
        "{\"role\":\"user\",\"content\":\"\u{1F600} é \u{2028} \u{FEFF} \u{7f}\"}",
        r#"{"role":"user","content":"\u0000 '; DROP TABLE item; --"}"#,
        "{\n\t\"pretty\":\r\n true\n}",
        "{}",
        &deep,
    ];
    let items: Vec<Item> = texts.map(|text| Item::from_json(text).unwrap()).into();

    let sessions = SqliteSessions::open(&path).await.unwrap();
    sessions.session("a").append(&items).await.unwrap();
    assert_eq!(jsons(&sessions.session("a")).await, texts);
    sessions.close().await;

    let sessions = SqliteSessions::open(&path).await.unwrap();
    assert_eq!(jsons(&sessions.session("a")).await, texts);
}

#[tokio::test]
async fn an_item_of_ten_megabytes_is_stored() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("a");
    let huge = Item::user("é\n".repeat(2_500_000));
    assert!(huge.as_json().len() >= 10_000_000);
    session
        .append(&[Item::user("before"), huge.clone()])
        .await
        .unwrap();

    assert_eq!(session.load(Some(1)).await.unwrap().last(), Some(&huge));
    assert_eq!(session.pop().await.unwrap(), Some(huge));
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("before")));
}

#[tokio::test]
async fn a_limit_loads_the_latest_items_in_order() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("a");
    let items = user_items(&["1", "2", "3", "4"]);
    session.append(&items[..1]).await.unwrap();
    session.append(&items[1..]).await.unwrap();

    for (limit, skipped) in [(0, 4), (1, 3), (3, 1), (4, 0), (usize::MAX, 0)] {
        let found = session.load(Some(limit)).await.unwrap();
        let found: Vec<Item> = found.iter().cloned().collect();
        assert_eq!(found, items[skipped..], "limit {limit}");
    }
}

#[tokio::test]
async fn a_limit_does_not_read_earlier_items() {
    let (_folder, path) = new_path();
    let sessions = SqliteSessions::open(&path).await.unwrap();
    let session = sessions.session("a");
    session.append(&user_items(&["1", "2", "3"])).await.unwrap();
    // Reading this item would fail.
    let mut file = raw(&path).await;
    execute(
        &mut file,
        "UPDATE item SET json = 'broken' WHERE position = 0",
    )
    .await;

    assert_eq!(session.load(Some(2)).await.unwrap().len(), 2);
    assert!(session.load(Some(3)).await.is_err());
    // SQLite does not sort or scan the other items.
    let plan = "EXPLAIN QUERY PLAN SELECT position, json FROM item \
                WHERE session = 1 ORDER BY position DESC LIMIT 2";
    let plan: Vec<(i64, i64, i64, String)> =
        sqlx::query_as(plan).fetch_all(&mut file).await.unwrap();
    let plan: Vec<String> = plan.into_iter().map(|(_, _, _, detail)| detail).collect();
    assert_eq!(
        plan,
        ["SEARCH item USING INDEX sqlite_autoindex_item_1 (session=?)"]
    );
}

#[tokio::test]
async fn an_unreadable_item_is_reported_and_kept() {
    for broken in [
        "'not JSON'",
        "'[\"secret\"]'",
        "CAST(x'ff' AS TEXT)",
        "'{} {}'",
        "''",
    ] {
        let (_folder, path) = new_path();
        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("customer-42");
        session.append(&user_items(&["1", "2"])).await.unwrap();
        let mut file = raw(&path).await;
        let sql = format!("UPDATE item SET json = {broken} WHERE position = 1");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut file)
            .await
            .unwrap();

        for error in [
            session.load(None).await.unwrap_err(),
            session.pop().await.unwrap_err(),
        ] {
            let error = session_error(&error);
            let place = (error.kind(), error.session(), error.position());
            assert_eq!(
                place,
                (SessionErrorKind::Item, Some("customer-42"), Some(1))
            );
            let message = format!(
                "sessions in {path:?}, session \"customer-42\", item 1: this is not an item (an item \
                 is one JSON object); it is still in the file: repair it with `sqlite3`, or load only \
                 the items after it"
            );
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(sessions.list().await.unwrap()[0].items, 2);
        // Later items can be stored and loaded.
        session.append(&user_items(&["3"])).await.unwrap();
        let last = session.load(Some(1)).await.unwrap();
        assert_eq!(last.last(), Some(&Item::user("3")));
        file.close().await.unwrap();
    }
}

#[tokio::test]
async fn an_append_after_a_pop_takes_its_position() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("a");
    assert_eq!(session.pop().await.unwrap(), None);
    assert_eq!(sessions.list().await.unwrap(), []);

    session.append(&user_items(&["1", "2"])).await.unwrap();
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("2")));
    session.append(&user_items(&["3"])).await.unwrap();
    let found = session.load(None).await.unwrap();
    assert_eq!(
        found.iter().cloned().collect::<Vec<_>>(),
        user_items(&["1", "3"])
    );
}

#[tokio::test]
async fn a_name_may_be_any_text() {
    let (_folder, sessions) = new_sessions().await;
    let long = "n".repeat(100_000);
    let names = [
        "",
        " ",
        "  ",
        "a",
        "A",
        "'",
        "\"",
        "a'; DROP TABLE session; --",
        "%",
        "_",
        "?1",
        "\0",
        "a\0",
        "a\0b",
        "🙂",
        "é",
        "e\u{301}",
        "Kunde Nr. 42\n",
        ":memory:",
        "NULL",
        "42",
        &long,
    ];
    for name in names {
        sessions
            .session(name)
            .append(&user_items(&[name]))
            .await
            .unwrap();
        sessions.session(name).set_agent(name).await.unwrap();
    }
    for name in names {
        let found = sessions.session(name).load(None).await.unwrap();
        assert_eq!(
            found.iter().cloned().collect::<Vec<_>>(),
            user_items(&[name]),
            "{name:?}"
        );
        assert_eq!(
            sessions.session(name).agent().await.unwrap().as_deref(),
            Some(name)
        );
    }
    let mut listed: Vec<String> = sessions
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|s| s.name)
        .collect();
    listed.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    for name in names {
        assert!(sessions.delete(name).await.unwrap(), "{name:?}");
    }
    assert_eq!(sessions.list().await.unwrap(), []);
}

#[tokio::test]
async fn sessions_of_one_file_are_independent() {
    let (_folder, sessions) = new_sessions().await;
    let [a, b] = ["a", "b"].map(|name| sessions.session(name));
    a.append(&user_items(&["1"])).await.unwrap();
    b.append(&user_items(&["2"])).await.unwrap();
    a.append(&user_items(&["3"])).await.unwrap();
    b.set_agent("Billing").await.unwrap();

    assert_eq!(a.load(None).await.unwrap().len(), 2);
    assert_eq!(a.agent().await.unwrap(), None);
    a.clear().await.unwrap();
    assert!(!sessions.delete("c").await.unwrap());
    assert_eq!(b.load(None).await.unwrap().last(), Some(&Item::user("2")));
    assert_eq!(b.agent().await.unwrap().as_deref(), Some("Billing"));
}

#[tokio::test]
async fn a_cleared_session_is_empty_and_has_no_agent_but_stays_in_the_list() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("a");
    session.append(&user_items(&["1", "2"])).await.unwrap();
    session.set_agent("Billing").await.unwrap();
    session.clear().await.unwrap();

    assert_eq!(session.load(None).await.unwrap().len(), 0);
    assert_eq!(session.agent().await.unwrap(), None);
    let listed = sessions.list().await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|s| (&*s.name, s.items, &s.agent))
        .collect();
    assert_eq!(listed, [("a", 0, &None)]);
    // Clearing a session that does not exist does not create it.
    sessions.session("b").clear().await.unwrap();
    assert_eq!(sessions.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing_in_the_file() {
    let (_folder, path) = new_path();
    let sessions = SqliteSessions::open(&path).await.unwrap();
    let secret = "the customer's secret ".repeat(1_000);
    let session = sessions.session("customer-42");
    session
        .append(&[Item::user("kept"), Item::user(&secret)])
        .await
        .unwrap();
    sessions
        .session("other")
        .append(&user_items(&["kept"]))
        .await
        .unwrap();
    assert!(sessions.delete("customer-42").await.unwrap());
    assert!(!sessions.delete("customer-42").await.unwrap());
    sessions.close().await;

    let bytes = std::fs::read(&path).unwrap();
    for gone in ["the customer's secret", "customer-42"] {
        let found = bytes
            .windows(gone.len())
            .any(|bytes| bytes == gone.as_bytes());
        assert!(!found, "{gone}");
    }
    let sessions = SqliteSessions::open(&path).await.unwrap();
    assert_eq!(sessions.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_list_has_the_times_and_begins_with_the_last_change() {
    let (_folder, sessions) = new_sessions().await;
    let before = SystemTime::now() - Duration::from_millis(1);
    sessions
        .session("a")
        .append(&user_items(&["1", "2"]))
        .await
        .unwrap();
    sessions.session("b").set_agent("Triage").await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    sessions
        .session("a")
        .append(&user_items(&["3"]))
        .await
        .unwrap();
    sessions.session("b").append(&[]).await.unwrap();
    sessions.session("c").append(&[]).await.unwrap();

    let listed = sessions.list().await.unwrap();
    let short: Vec<_> = listed
        .iter()
        .map(|s| (&*s.name, s.items, s.agent.as_deref()))
        .collect();
    assert_eq!(short, [("a", 3, None), ("b", 0, Some("Triage"))]);
    let [a, b] = &listed[..] else {
        panic!("{listed:?}")
    };
    assert!(before <= a.created && a.created < a.changed && a.changed <= SystemTime::now());
    assert_eq!(b.created, b.changed);
}

#[tokio::test]
async fn a_run_continues_a_stored_session() {
    let (_folder, path) = new_path();
    let model = ScriptedModel::new().say("Hello!").say("You said hi.");
    let agent: Agent = Agent::new("Support").model(model.clone());
    for words in ["Hi", "What did I say?"] {
        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("customer-42");
        Runner::new(&agent)
            .session(&session)
            .run(words)
            .await
            .unwrap();
        sessions.close().await;
    }

    let sessions = SqliteSessions::open(&path).await.unwrap();
    let items = sessions.session("customer-42").load(None).await.unwrap();
    let texts: Vec<_> = items
        .iter()
        .map(|item| item.text().unwrap().into_owned())
        .collect();
    assert_eq!(texts, ["Hi", "Hello!", "What did I say?", "You said hi."]);
}

#[tokio::test]
async fn the_error_of_a_run_names_the_failed_session_and_the_reason() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("customer-42");
    sessions.close().await;

    let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
    let run = Runner::new(&agent).session(&session).run("Hi").await;
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    let cause = error
        .cause()
        .unwrap()
        .downcast_ref::<switchboard_sessions::SessionError>();
    let cause = cause.unwrap();
    assert_eq!(cause.kind(), SessionErrorKind::Closed);
    assert_eq!(cause.session(), Some("customer-42"));
    assert!(
        error.to_string().contains("the sessions were closed"),
        "{error}"
    );
}
