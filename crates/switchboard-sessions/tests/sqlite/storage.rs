//! Storing and loading items.

use std::time::{Duration, SystemTime};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, Session};
use switchboard_sessions::{StoreError, StoreErrorKind};

use crate::{execute, jsons, new_conversations, new_path, open, raw, store_error, user_items};

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
        r#"{"role":"user","content":"\u0000 '; DROP TABLE entry; --"}"#,
        "{\n\t\"pretty\":\r\n true\n}",
        "{}",
        &deep,
    ];
    let items: Vec<Item> = texts.map(|text| Item::from_json(text).unwrap()).into();

    let conversations = open(&path).await.unwrap();
    conversations.get("a").append(&items).await.unwrap();
    assert_eq!(jsons(&conversations.get("a")).await, texts);
    conversations.close().await;

    let conversations = open(&path).await.unwrap();
    assert_eq!(jsons(&conversations.get("a")).await, texts);
}

#[tokio::test]
async fn an_item_of_ten_megabytes_is_stored() {
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("a");
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
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("a");
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
    let conversations = open(&path).await.unwrap();
    let session = conversations.get("a");
    let items: Vec<Item> = (0..200).map(|n| Item::user(n.to_string())).collect();
    session.append(&items).await.unwrap();
    // Reading this item would fail.
    execute(
        &path,
        "UPDATE entry SET json = 'broken' WHERE position = 100",
    );

    let found = session.load(Some(2)).await.unwrap();
    assert_eq!(found.iter().cloned().collect::<Vec<_>>(), items[198..]);
    assert!(session.load(Some(150)).await.is_err());
    // SQLite does not sort or scan the other entries.
    let file = raw(&path);
    let plan = "EXPLAIN QUERY PLAN SELECT json FROM entry \
                WHERE conversation = 1 AND position >= 5 AND position < 7 ORDER BY position";
    let mut plan = file.prepare(plan).unwrap();
    let plan = plan.query_map([], |row| row.get::<_, String>(3)).unwrap();
    assert_eq!(
        plan.collect::<Result<Vec<_>, _>>().unwrap(),
        ["SEARCH entry USING INDEX sqlite_autoindex_entry_1 \
          (conversation=? AND position>? AND position<?)"]
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
        let conversations = open(&path).await.unwrap();
        let session = conversations.get("customer-42");
        session.append(&user_items(&["1", "2"])).await.unwrap();
        let sql = format!("UPDATE entry SET json = {broken} WHERE position = 1");
        execute(&path, &sql);

        for error in [
            session.load(None).await.unwrap_err(),
            session.pop().await.unwrap_err(),
            session.entries(1..2).await.unwrap_err(),
        ] {
            let error = store_error(&error);
            let place = (error.kind(), error.conversation(), error.position());
            assert_eq!(place, (StoreErrorKind::Entry, Some("customer-42"), Some(1)));
            let message = format!(
                "conversations in {path:?}, conversation \"customer-42\", entry 1: this is not an \
                 entry (an item is one JSON object); it is still in the file: repair it with \
                 `sqlite3`, or load only the entries after it"
            );
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(conversations.list(None).await.unwrap()[0].entries(), 2);
        // Later items can be stored and loaded.
        session.append(&user_items(&["3"])).await.unwrap();
        let later = session.entries(2..3).await.unwrap();
        assert_eq!(later[0].content.item(), Some(&Item::user("3")));
    }
}

#[tokio::test]
async fn an_item_that_was_popped_is_gone_also_after_others_follow() {
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("a");
    assert_eq!(session.pop().await.unwrap(), None);
    assert_eq!(conversations.list(None).await.unwrap(), []);

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
    let (_folder, conversations) = new_conversations().await;
    let long = "n".repeat(100_000);
    let names = [
        "",
        " ",
        "  ",
        "a",
        "A",
        "'",
        "\"",
        "a'; DROP TABLE conversation; --",
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
        conversations
            .get(name)
            .append(&user_items(&[name]))
            .await
            .unwrap();
        conversations.get(name).set_agent(Some(name)).await.unwrap();
    }
    for name in names {
        let found = conversations.get(name).load(None).await.unwrap();
        assert_eq!(
            found.iter().cloned().collect::<Vec<_>>(),
            user_items(&[name]),
            "{name:?}"
        );
        assert_eq!(
            conversations.get(name).agent().await.unwrap().as_deref(),
            Some(name)
        );
    }
    let listed = conversations.list(None).await.unwrap();
    let mut listed: Vec<String> = listed.iter().map(|head| head.id.to_string()).collect();
    listed.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    for name in names {
        assert!(conversations.delete(name).await.unwrap(), "{name:?}");
    }
    assert_eq!(conversations.list(None).await.unwrap(), []);
}

#[tokio::test]
async fn sessions_of_one_file_are_independent() {
    let (_folder, conversations) = new_conversations().await;
    let [a, b] = ["a", "b"].map(|name| conversations.get(name));
    a.append(&user_items(&["1"])).await.unwrap();
    b.append(&user_items(&["2"])).await.unwrap();
    a.append(&user_items(&["3"])).await.unwrap();
    b.set_agent(Some("Billing")).await.unwrap();

    assert_eq!(a.load(None).await.unwrap().len(), 2);
    assert_eq!(a.agent().await.unwrap(), None);
    a.clear().await.unwrap();
    assert!(!conversations.delete("c").await.unwrap());
    assert_eq!(b.load(None).await.unwrap().last(), Some(&Item::user("2")));
    assert_eq!(b.agent().await.unwrap().as_deref(), Some("Billing"));
}

#[tokio::test]
async fn a_cleared_session_is_empty_and_has_no_agent_but_stays_in_the_list() {
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("a");
    session.append(&user_items(&["1", "2"])).await.unwrap();
    session.set_agent(Some("Billing")).await.unwrap();
    session.clear().await.unwrap();

    assert_eq!(session.load(None).await.unwrap().len(), 0);
    assert_eq!(session.agent().await.unwrap(), None);
    let listed = conversations.list(None).await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|head| (&*head.id, head.entries(), &head.agent))
        .collect();
    assert_eq!(listed, [("a", 0, &None)]);
    // Clearing a session that does not exist does not create it.
    conversations.get("b").clear().await.unwrap();
    assert_eq!(conversations.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing_in_the_file() {
    let (_folder, path) = new_path();
    let conversations = open(&path).await.unwrap();
    let secret = "the customer's secret ".repeat(1_000);
    let session = conversations.get("customer-42");
    session
        .append(&[Item::user("kept"), Item::user(&secret)])
        .await
        .unwrap();
    conversations
        .get("other")
        .append(&user_items(&["kept"]))
        .await
        .unwrap();
    assert!(conversations.delete("customer-42").await.unwrap());
    assert!(!conversations.delete("customer-42").await.unwrap());
    conversations.close().await;

    let bytes = std::fs::read(&path).unwrap();
    for gone in ["the customer's secret", "customer-42"] {
        let found = bytes
            .windows(gone.len())
            .any(|bytes| bytes == gone.as_bytes());
        assert!(!found, "{gone}");
    }
    let conversations = open(&path).await.unwrap();
    assert_eq!(conversations.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_list_has_the_times_and_begins_with_the_last_change() {
    let (_folder, conversations) = new_conversations().await;
    let before = SystemTime::now() - Duration::from_millis(1);
    conversations
        .get("a")
        .append(&user_items(&["1", "2"]))
        .await
        .unwrap();
    conversations
        .get("b")
        .set_agent(Some("Triage"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    conversations
        .get("a")
        .append(&user_items(&["3"]))
        .await
        .unwrap();
    conversations.get("b").append(&[]).await.unwrap();
    conversations.get("c").append(&[]).await.unwrap();

    let listed = conversations.list(None).await.unwrap();
    let short = listed
        .iter()
        .map(|head| (&*head.id, head.entries(), head.agent.as_deref()));
    let short: Vec<_> = short.collect();
    // The agent is an entry of its own.
    assert_eq!(short, [("a", 3, None), ("b", 1, Some("Triage"))]);
    let [a, b] = &listed[..] else {
        panic!("{listed:?}")
    };
    assert!(before <= a.created && a.created < a.changed && a.changed <= SystemTime::now());
    assert_eq!(b.created, b.changed);
    assert_eq!(conversations.list(1).await.unwrap(), listed[..1]);
}

#[tokio::test]
async fn conversations_expire_when_their_time_is_over() {
    let (_folder, conversations) = new_conversations().await;
    for name in ["kept", "later", "over"] {
        let conversation = conversations.get(name);
        conversation.append(&user_items(&["1"])).await.unwrap();
    }
    let later = SystemTime::now() + Duration::from_secs(3_600);
    conversations.get("later").expire_at(later).await.unwrap();
    let before = SystemTime::now() - Duration::from_secs(1);
    conversations.get("over").expire_at(before).await.unwrap();

    assert_eq!(conversations.delete_expired().await.unwrap(), 1);
    let listed = conversations.list(None).await.unwrap();
    let mut listed: Vec<&str> = listed.iter().map(|head| &*head.id).collect();
    listed.sort_unstable();
    assert_eq!(listed, ["kept", "later"]);
}

#[tokio::test]
async fn a_search_finds_text_in_any_case_the_latest_first() {
    let (_folder, conversations) = new_conversations().await;
    let a = conversations.get("a");
    a.append(&user_items(&["100% of ÄPFEL", "apples"]))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let b = conversations.get("b");
    b.append(&user_items(&["1000 of äpfel_", "x"]))
        .await
        .unwrap();

    for (text, limit, expected) in [
        ("Äpfel", 9, &[("b", 0), ("a", 0)][..]),
        ("Äpfel", 1, &[("b", 0)]),
        ("100%", 9, &[("a", 0)]),
        ("l_", 9, &[("b", 0)]),
        ("APPLE", 9, &[("a", 1)]),
        ("nothing", 9, &[]),
        ("\\", 9, &[]),
    ] {
        let found = conversations.search(text, limit).await.unwrap();
        let found = found
            .iter()
            .map(|found| (&*found.conversation, found.entry.position));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
    }
}

#[tokio::test]
async fn a_run_continues_a_stored_session() {
    let (_folder, path) = new_path();
    let model = ScriptedModel::new().say("Hello!").say("You said hi.");
    let agent: Agent = Agent::new("Support").model(model.clone());
    for words in ["Hi", "What did I say?"] {
        let conversations = open(&path).await.unwrap();
        let session = conversations.get("customer-42");
        Runner::new(&agent)
            .session(&session)
            .run(words)
            .await
            .unwrap();
        conversations.close().await;
    }

    let conversations = open(&path).await.unwrap();
    let items = conversations.get("customer-42").load(None).await.unwrap();
    let texts: Vec<_> = items
        .iter()
        .map(|item| item.text().unwrap().into_owned())
        .collect();
    assert_eq!(texts, ["Hi", "Hello!", "What did I say?", "You said hi."]);
}

#[tokio::test]
async fn the_error_of_a_run_names_the_failed_session_and_the_reason() {
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("customer-42");
    conversations.close().await;

    let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
    let run = Runner::new(&agent).session(&session).run("Hi").await;
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    let cause = error.cause().unwrap().downcast_ref::<StoreError>();
    let cause = cause.unwrap();
    assert_eq!(cause.kind(), StoreErrorKind::Closed);
    assert_eq!(cause.conversation(), Some("customer-42"));
    assert!(
        error.to_string().contains("the store was closed"),
        "{error}"
    );
}
