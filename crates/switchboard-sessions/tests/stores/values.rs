//! Values that are stored as they are, whatever is in them.

use switchboard_core::conversation::ListQuery;

use crate::*;

/// Items that a store may be tempted to change.
fn odd_items() -> Vec<String> {
    let text = |text: &str| format!(r#"{{"type":"message","role":"user","content":"{text}"}}"#);
    let mut items = vec![
        text(r"\ud800 and \udc00\ud800"),
        text(r"\u0000 in \u0000 between"),
        text("e\u{301} \u{e9} \u{1f600} \u{10ffff} \u{feff} \u{202e} \u{fffd} \u{2028}"),
        text(r#"\"\\\/\b\f\n\r\t \\0 %_*[ ' '' $1 {schema} ?"#),
        r#" { "b" : 1.0e0 , "a" : 12345678901234567890123456789 , "a" : -0 } "#.to_owned(),
        "{\n\t\"type\": \"message\",\r\n\"content\": []}".to_owned(),
        r#"{"type":"x","null":null,"nested":{"a":[[],{},""]}}"#.to_owned(),
    ];
    let of_5_mb: String = (0..500_000_u32).map(|at| format!("{at:09} ")).collect();
    items.push(text(&of_5_mb));
    items
}

/// Names that a store may take for something else.
fn odd_names() -> Vec<String> {
    let names = [
        "",
        " ",
        "  ",
        "a",
        "A",
        "a ",
        "a:b",
        "{a}",
        "a}b{",
        "a%_*?[b]^",
        "\\",
        "\\\\",
        "\\0",
        "\0",
        "\0\0",
        "a\0b",
        "\n",
        "\r\n",
        "'; DROP TABLE entries; --",
        "\"",
        "\u{e9}",
        "e\u{301}",
        "\u{1f600}",
        "\u{10ffff}",
        "\u{feff}",
        "null",
        "0",
        "-1",
    ];
    let mut names: Vec<String> = names.map(String::from).into();
    names.push("long".repeat(400));
    names
}

tests! {
    async fn items_are_stored_byte_for_byte(backend) {
        let store = backend.open().await;
        let items = odd_items();
        let items: Vec<Item> = items.into_iter().map(|json| Item::from_json(json).unwrap()).collect();
        let mut odd = commit(Expected::New, "r", 1, &[]);
        odd.entries = items.iter().map(|item| entry("r", 1, EntryContent::Item(item.clone()))).collect();
        committed(&store, "c", odd).await;
        let stored = all(&store, "c").await;
        assert_eq!(stored.len(), items.len());
        for (entry, item) in stored.iter().zip(&items) {
            assert!(entry.content.as_json() == item.as_json(), "{:.200}", item.as_json());
        }
    }

    async fn names_of_conversations_agents_and_runs_may_be_any_text(backend) {
        let store = backend.open().await;
        for name in odd_names() {
            let mut first = commit(Expected::New, &name, 1, &[&format!("for {name}")]);
            first.entries[0].agent = Some(name.as_str().into());
            first.agent = Some(Some(name.as_str().into()));
            let revision = committed(&store, &name, first.clone()).await;
            assert_eq!(committed(&store, &name, first.clone()).await, revision, "{name:?}");
            let mut expected = Head::new(name.as_str(), revision, time(0));
            expected.agent = first.agent.clone().unwrap();
            assert_eq!(head(&store, &name).await, expected);
            assert_eq!(all(&store, &name).await, first.entries);
            assert!(store.lease(&name, &name, LONG).await.unwrap());
            assert!(!store.lease(&name, "another", LONG).await.unwrap());
            store.release(&name, &name).await.unwrap();
        }
        let listed = store.list(&ListQuery::default()).await.unwrap();
        let mut listed: Vec<String> = listed.iter().map(|head| head.id.to_string()).collect();
        let mut names = odd_names();
        listed.sort();
        names.sort();
        assert_eq!(listed, names);
        for name in names {
            store.clear(&name).await.unwrap();
            assert!(store.delete(&name).await.unwrap(), "{name:?}");
        }
        assert_eq!(store.list(&ListQuery::default()).await.unwrap(), []);
    }

    async fn numbers_and_times_are_stored_up_to_their_limits(backend) {
        let store = backend.open().await;
        let far = from_millis(253_402_300_799_999);
        let mut limits = commit(Expected::New, "r", u32::MAX, &["a", "b"]);
        limits.time = far;
        limits.expires = Some(Some(far));
        limits.entries[0] = Entry::new(item("a")).made_in("r", u32::MAX, u32::MAX).committed_at(far);
        limits.entries[1] = Entry::new(item("b")).made_in("r", 0, 0).committed_at(from_millis(0)).at(1);
        let revision = committed(&store, "c", limits.clone()).await;
        assert_eq!(committed(&store, "c", limits.clone()).await, revision);
        assert_eq!(all(&store, "c").await, limits.entries);
        let mut expected = Head::new("c", revision, far);
        expected.expires = Some(far);
        assert_eq!(head(&store, "c").await, expected);
    }
}
