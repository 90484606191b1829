//! Lists, expiry and search.

use switchboard_core::conversation::{Conversations, Found, ListQuery, Listed, SearchQuery, now};

use crate::*;

fn query(change: impl FnOnce(&mut ListQuery)) -> ListQuery {
    let mut query = ListQuery::default();
    change(&mut query);
    query
}

async fn ids(store: &impl ConversationStore, query: &ListQuery) -> Vec<String> {
    let heads = store.list(query).await.unwrap();
    heads.iter().map(|head| head.id.to_string()).collect()
}

/// The texts that a search finds.
async fn found(store: &impl ConversationStore, text: &str) -> Vec<String> {
    let found = store.search(&SearchQuery::new(text, 100)).await.unwrap();
    let text = |found: &Found| {
        let text = found.entry.content.searchable_text();
        format!("{}: {}", found.conversation, text.unwrap())
    };
    found.iter().map(text).collect()
}

tests! {
    async fn the_last_changed_conversations_are_listed_first(backend) {
        let store = backend.open().await;
        assert_eq!(ids(&store, &ListQuery::default()).await, [""; 0]);
        for (id, at) in [("b", 2), ("a", 2), ("d", 4), ("c", 1)] {
            let mut commit = commit(Expected::New, "r", 1, &["x"]);
            commit.time = time(at);
            committed(&store, id, commit).await;
        }
        assert_eq!(ids(&store, &ListQuery::default()).await, ["d", "a", "b", "c"]);
        let mut again = commit(Expected::Any, "r", 2, &["y"]);
        again.time = time(5);
        committed(&store, "c", again).await;
        assert_eq!(ids(&store, &ListQuery::default()).await, ["c", "d", "a", "b"]);
        assert_eq!(ids(&store, &query(|query| query.limit = Some(2))).await, ["c", "d"]);
        assert_eq!(ids(&store, &query(|query| query.limit = Some(0))).await, [""; 0]);
        let before = query(|query| query.changed_before = Some(time(4)));
        assert_eq!(ids(&store, &before).await, ["a", "b"]);
        let both = query(|query| {
            query.changed_before = Some(time(5));
            query.limit = Some(1);
        });
        assert_eq!(ids(&store, &both).await, ["d"]);
        assert_eq!(store.list(&both).await.unwrap(), [head(&store, "d").await]);
        store.clear("b").await.unwrap();
        assert_eq!(ids(&store, &ListQuery::default()).await, ["b", "c", "d", "a"]);
        assert!(store.delete("c").await.unwrap());
        assert_eq!(ids(&store, &ListQuery::default()).await, ["b", "d", "a"]);
    }

    async fn a_folder_is_listed_and_searched_without_the_others(backend) {
        let store = backend.open().await;
        let names = ["a", "acme/b", "acme/c", "acme/~run/d", "ac/e", "acmeX/f", "/g"];
        for (id, at) in names.iter().zip(1..) {
            let mut commit = commit(Expected::New, "r", 1, &["word"]);
            commit.time = time(at);
            for entry in &mut commit.entries {
                entry.time = time(at);
            }
            committed(&store, id, commit).await;
        }
        let listed = async |folder: &str| {
            let inside = query(|query| query.folder = Some(folder.into()));
            ids(&store, &inside).await
        };
        assert_eq!(listed("acme/").await, ["acme/c", "acme/b"]);
        assert_eq!(listed("").await, ["a"]);
        assert_eq!(listed("/").await, ["/g"]);
        assert_eq!(listed("acme/~run/").await, ["acme/~run/d"]);
        assert_eq!(listed("acme").await, [""; 0]);
        let before = query(|query| {
            query.folder = Some("acme/".into());
            query.changed_before = Some(time(3));
            query.limit = Some(1);
        });
        assert_eq!(ids(&store, &before).await, ["acme/b"]);

        let mut search = SearchQuery::new("WORD", 10);
        search.folder = Some("acme/".into());
        let found = store.search(&search).await.unwrap();
        let found: Vec<&str> = found.iter().map(|found| &*found.conversation).collect();
        assert_eq!(found, ["acme/c", "acme/b"]);

        let mut again = commit(Expected::Any, "r", 2, &["word"]);
        again.time = time(20);
        committed(&store, "acme/b", again).await;
        assert_eq!(listed("acme/").await, ["acme/b", "acme/c"]);
        store.clear("acme/c").await.unwrap();
        assert_eq!(listed("acme/").await, ["acme/c", "acme/b"]);
        assert!(store.delete("acme/b").await.unwrap());
        assert_eq!(listed("acme/").await, ["acme/c"]);
    }

    async fn conversations_whose_time_has_passed_are_listed_and_deleted(backend) {
        let store = backend.open().await;
        let soon = now() + LONG;
        let expiries = [("past", Some(time(3))), ("older", Some(time(1))), ("soon", Some(soon)), ("never", None)];
        for (id, expires) in expiries {
            let mut commit = commit(Expected::New, "r", 1, &["x"]);
            commit.expires = Some(expires);
            committed(&store, id, commit).await;
        }
        let expired = |at| query(|query| query.expired_before = Some(at));
        assert_eq!(ids(&store, &expired(time(3))).await, ["older", "past"]);
        assert_eq!(ids(&store, &expired(time(2))).await, ["older"]);
        assert_eq!(ids(&store, &expired(time(0))).await, [""; 0]);

        let conversations = Conversations::new(store.clone());
        assert_eq!(conversations.delete_expired().await.unwrap(), 2);
        assert_eq!(conversations.delete_expired().await.unwrap(), 0);
        let left = async || ids(&store, &ListQuery::default()).await;
        assert_eq!(left().await, ["never", "soon"]);
        conversations.get("soon").expire_at(None).await.unwrap();
        assert_eq!(ids(&store, &expired(now() + LONG * 2)).await, [""; 0]);
        conversations.get("never").expire_at(now()).await.unwrap();
        assert_eq!(conversations.delete_expired().await.unwrap(), 1);
        assert_eq!(left().await, ["soon"]);
    }

    async fn what_expires_is_listed_page_by_page_in_the_order_of_its_time(backend) {
        let store = backend.open().await;
        let expiries = [
            ("fourth", Some(7)), ("b/third", Some(5)), ("never", None), ("a/second", Some(5)), ("first", Some(2)),
            ("switchboard-run:a/1", Some(5)),
        ];
        for (id, expires) in expiries {
            let mut commit = commit(Expected::New, "r", 1, &["x"]);
            commit.expires = Some(expires.map(time));
            committed(&store, id, commit).await;
        }
        let listed = async |from, until: Option<i64>, limit, folder: Option<&str>| {
            let query = query(|query| {
                (query.expired_from, query.expired_before) = (Some(time(from)), until.map(time));
                (query.limit, query.folder) = (limit, folder.map(Into::into));
            });
            ids(&store, &query).await
        };
        let all = ["first", "a/second", "b/third", "fourth"];
        assert_eq!(listed(0, None, None, None).await, all);
        assert_eq!(listed(2, Some(5), None, None).await, all[..3]);
        assert_eq!(listed(3, Some(9), None, None).await, all[1..]);
        assert_eq!(listed(5, Some(9), Some(2), None).await, all[1..3]);
        assert_eq!(listed(6, Some(9), Some(2), None).await, all[3..]);
        assert_eq!(listed(8, None, None, None).await, [""; 0]);
        assert_eq!(listed(0, Some(9), Some(1), Some("b/")).await, ["b/third"]);
        assert_eq!(listed(6, None, None, Some("b/")).await, [""; 0]);
        let journals = query(|query| {
            (query.expired_from, query.listed) = (Some(time(1)), Listed::Journals);
            query.limit = Some(1);
        });
        assert_eq!(ids(&store, &journals).await, ["switchboard-run:a/1"]);
    }

    async fn what_has_expired_in_a_folder_is_listed_without_what_has_expired_elsewhere(backend) {
        let store = backend.open().await;
        let expiries = [
            ("acme/past", Some(1)), ("acme/later", Some(9)), ("acme/never", None), ("acme/inner/past", Some(1)),
            ("other/past", Some(1)), ("past", Some(1)), ("acme/also", Some(2)),
        ];
        for (id, expires) in expiries {
            let mut commit = commit(Expected::New, "r", 1, &["x"]);
            commit.expires = Some(expires.map(time));
            committed(&store, id, commit).await;
        }
        let expired = async |folder: &str, at| {
            let query = query(|query| {
                (query.expired_before, query.folder) = (Some(time(at)), Some(folder.into()));
            });
            let mut ids = ids(&store, &query).await;
            ids.sort();
            ids
        };
        assert_eq!(expired("acme/", 2).await, ["acme/also", "acme/past"]);
        assert_eq!(expired("acme/", 9).await, ["acme/also", "acme/later", "acme/past"]);
        assert_eq!(expired("", 9).await, ["past"]);
        assert_eq!(expired("acme/inner/", 9).await, ["acme/inner/past"]);
        assert_eq!(expired("nobody/", 9).await, [""; 0]);
        // More of one folder than of all that expire, and the other way.
        for number in 0..9 {
            let commit = commit(Expected::New, "r", 1, &["x"]);
            committed(&store, &format!("acme/{number}"), commit).await;
        }
        assert_eq!(expired("acme/", 1).await, ["acme/past"]);
    }

    async fn a_conversation_is_deleted_by_its_time_only_if_that_has_passed(backend) {
        let store = backend.open().await;
        for (id, expires) in [("early", Some(time(3))), ("never", None)] {
            let mut commit = commit(Expected::New, "r", 1, &["x"]);
            commit.expires = Some(expires);
            committed(&store, id, commit).await;
        }
        assert!(!store.delete_expired("early", time(2)).await.unwrap());
        assert!(!store.delete_expired("never", now()).await.unwrap());
        assert!(!store.delete_expired("missing", now()).await.unwrap());
        // The time was extended since the conversation was listed.
        let mut extended = Commit::new(Expected::Any, Vec::new());
        extended.expires = Some(Some(time(5)));
        committed(&store, "early", extended).await;
        assert!(!store.delete_expired("early", time(4)).await.unwrap());
        assert_eq!(texts(&store, "early").await, [(0, "x".to_owned())]);
        assert!(store.delete_expired("early", time(5)).await.unwrap());
        assert_eq!(ids(&store, &ListQuery::default()).await, ["never"]);
        assert_eq!(all(&store, "early").await, []);
    }

    async fn the_time_of_expiry_is_no_change_for_other_writers(backend) {
        let store = backend.open().await;
        let seen = committed(&store, "c", commit(Expected::New, "r", 1, &["x"])).await;
        let session = Conversations::new(store.clone()).get("c");
        session.expire_at(time(1)).await.unwrap();
        assert_eq!(head(&store, "c").await.expires, Some(time(1)));
        let next = committed(&store, "c", commit(Expected::At(seen), "r", 2, &["y"])).await;
        assert_eq!(next, Revision::new(seen.epoch, 2));
        assert_eq!(head(&store, "c").await.expires, Some(time(1)));
        // What begins anew has no expiry.
        store.clear("c").await.unwrap();
        assert_eq!(head(&store, "c").await.expires, None);
        let expired = query(|query| query.expired_before = Some(now()));
        assert_eq!(ids(&store, &expired).await, [""; 0]);
    }

    async fn a_search_finds_text_as_it_is_whatever_the_case(backend) {
        let store = backend.open().await;
        let words = [
            "100% sure", "100 sure", "snake_case", "snakeXcase", r"back\slash", "a*b[c]?d", "It's \"fine\"",
            "GROẞE ÉTÉ \u{1f600}", "nul\0byte",
        ];
        committed(&store, "c", commit(Expected::New, "r", 1, &words)).await;
        for (searched, expected) in [
            ("100%", vec!["100% sure"]),
            ("100", vec!["100 sure", "100% sure"]),
            ("E_C", vec!["snake_case"]),
            ("_", vec!["snake_case"]),
            ("%", vec!["100% sure"]),
            (r"k\S", vec![r"back\slash"]),
            (r"\", vec![r"back\slash"]),
            ("*B[C]?", vec!["a*b[c]?d"]),
            ("'s \"F", vec!["It's \"fine\""]),
            ("été", vec!["GROẞE ÉTÉ \u{1f600}"]),
            ("große", vec!["GROẞE ÉTÉ \u{1f600}"]),
            ("\u{1f600}", vec!["GROẞE ÉTÉ \u{1f600}"]),
            ("l\0b", vec!["nul\0byte"]),
            ("nowhere", vec![]),
        ] {
            let expected: Vec<String> = expected.iter().map(|text| format!("c: {text}")).collect();
            assert_eq!(found(&store, searched).await, expected, "{searched:?}");
        }
        assert_eq!(found(&store, "").await.len(), words.len());
    }

    async fn a_search_returns_the_latest_entries_first(backend) {
        let store = backend.open().await;
        for (id, at) in [("b", 3), ("a", 9), ("c", 5)] {
            let mut commit = commit(Expected::New, "r", 1, &["first word", "second word"]);
            commit.time = time(at);
            for entry in &mut commit.entries {
                entry.time = time(at);
            }
            committed(&store, id, commit).await;
        }
        let expected = [
            "a: second word", "a: first word", "c: second word", "c: first word", "b: second word", "b: first word",
        ];
        assert_eq!(found(&store, "WORD").await, expected);
        let two = store.search(&SearchQuery::new("first", 2)).await.unwrap();
        let entries = [
            Found::new("a", entry("r", 1, item("first word")).committed_at(time(9))),
            Found::new("c", entry("r", 1, item("first word")).committed_at(time(5))),
        ];
        assert_eq!(two, entries);
        assert_eq!(store.search(&SearchQuery::new("first", 0)).await.unwrap(), []);
    }

    async fn a_search_looks_through_what_was_said_and_done_only(backend) {
        let store = backend.open().await;
        let mut commit = commit(Expected::New, "r", 1, &["needle said"]);
        commit.entries.extend([
            entry("r", 1, EntryContent::Item(Item::function_call("1", "find", r#"{"what":"needle called"}"#))),
            entry("r", 1, EntryContent::Item(Item::function_call_output("1", "needle returned"))),
            entry("r", 1, EntryContent::Replacement(Item::user("needle replaced"))),
            entry("r", 1, EntryContent::State(r#"{"agent":"needle"}"#.into())),
            entry("r", 1, EntryContent::Refused(r#"{"guardrail":"needle"}"#.into())),
        ]);
        committed(&store, "needle", commit).await;
        let expected = [
            "needle: needle returned", r#"needle: {"what":"needle called"}"#, "needle: needle said",
        ];
        assert_eq!(found(&store, "needle").await, expected);
        store.clear("needle").await.unwrap();
        assert_eq!(found(&store, "needle").await, [""; 0]);
        committed(&store, "needle", crate::commit(Expected::Any, "r", 2, &["needle again"])).await;
        assert_eq!(found(&store, "needle").await, ["needle: needle again"]);
        assert!(store.delete("needle").await.unwrap());
        assert_eq!(found(&store, "needle").await, [""; 0]);
    }
}
