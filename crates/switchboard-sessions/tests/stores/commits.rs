//! Commits, revisions and positions.

use crate::*;

tests! {
    async fn a_commit_appends_its_entries_and_changes_the_head(backend) {
        let store = backend.open().await;
        assert_eq!(store.head("c").await.unwrap(), None);
        assert_eq!(all(&store, "c").await, []);

        let entries = vec![
            entry("r", 1, item("Hi")),
            entry("r", 1, EntryContent::Replacement(Item::user("summary"))).made_by(Some("A".into())),
            entry("r", 1, EntryContent::State(r#"{"agent":"A"}"#.into())),
            entry("r", 1, EntryContent::Refused(r#"{"on":"input"}"#.into())).committed_at(time(7)),
        ];
        let mut first = commit(Expected::New, "r", 1, &[]);
        first.entries = entries.clone();
        first.agent = Some(Some("A".into()));
        first.details = Some(r#"{"team":"T"}"#.into());
        first.expires = Some(Some(time(99)));
        let revision = committed(&store, "c", first).await;
        assert_eq!(revision.next, 4);
        assert!((1..1 << 53).contains(&revision.epoch));

        let mut expected = Head::new("c", revision, time(0));
        expected.state = Some(2);
        expected.agent = Some("A".into());
        expected.details = Some(r#"{"team":"T"}"#.into());
        expected.expires = Some(time(99));
        assert_eq!(head(&store, "c").await, expected);
        let stored: Vec<Entry> = entries.into_iter().zip(0..).map(|(entry, at)| entry.at(at)).collect();
        assert_eq!(all(&store, "c").await, stored);

        // What a commit does not name stays as it is.
        let mut second = commit(Expected::At(revision), "r", 2, &["More"]);
        second.time = time(5);
        let revision = committed(&store, "c", second).await;
        expected.revision = Revision::new(revision.epoch, 5);
        expected.changed = time(5);
        assert_eq!(revision, expected.revision);
        assert_eq!(head(&store, "c").await, expected);

        let mut third = commit(Expected::At(revision), "r", 3, &["More"]);
        third.entries.push(entry("r", 3, EntryContent::State("{}".into())));
        third.agent = Some(None);
        third.expires = Some(None);
        expected.revision = committed(&store, "c", third).await;
        expected.state = Some(6);
        expected.agent = None;
        expected.expires = None;
        expected.changed = time(0);
        assert_eq!(head(&store, "c").await, expected);
    }

    async fn a_commit_on_another_revision_is_a_conflict_and_stores_nothing(backend) {
        let store = backend.open().await;
        let first = committed(&store, "c", commit(Expected::New, "", 0, &["a"])).await;
        let second = committed(&store, "c", commit(Expected::At(first), "", 0, &["b"])).await;
        let before = head(&store, "c").await;
        let other_epoch = Revision::new(second.epoch ^ 1, second.next);
        let ahead = Revision::new(second.epoch, second.next + 1);
        let expectations = [
            Expected::New,
            Expected::At(first),
            Expected::At(other_epoch),
            Expected::At(ahead),
        ];
        for expected in expectations {
            for number in [0, 7] {
                let mut refused = commit(expected, "r", number, &["x"]);
                refused.agent = Some(Some("A".into()));
                let outcome = store.commit("c", refused).await.unwrap();
                assert_eq!(outcome, Committed::Conflict, "{expected:?}");
            }
        }
        assert_eq!(head(&store, "c").await, before);
        assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);

        let missing = commit(Expected::At(second), "r", 1, &["x"]);
        assert_eq!(store.commit("d", missing).await.unwrap(), Committed::Conflict);
        assert_eq!(store.head("d").await.unwrap(), None);
    }

    async fn a_commit_that_is_made_again_is_stored_once(backend) {
        let store = backend.open().await;
        let new = commit(Expected::New, "r", 1, &["a", "b"]);
        let first = committed(&store, "c", new.clone()).await;
        assert_eq!(committed(&store, "c", new.clone()).await, first);
        let next = commit(Expected::At(first), "r", 2, &["c"]);
        let second = committed(&store, "c", next.clone()).await;
        assert_eq!(committed(&store, "c", next.clone()).await, second);
        // Also after others have gone on; the revision is then the current one.
        let other = commit(Expected::At(second), "other", 1, &["d"]);
        let third = committed(&store, "c", other).await;
        assert_eq!(committed(&store, "c", next.clone()).await, third);
        assert_eq!(committed(&store, "c", new).await, third);
        let stored = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(texts(&store, "c").await, (0..).zip(stored).collect::<Vec<_>>());

        // Another run, another number, or none: a commit of its own.
        for (run, number) in [("x", 2), ("r", 3), ("r", 0)] {
            let mut differs = next.clone();
            (differs.run, differs.number) = (run.into(), number);
            let outcome = store.commit("c", differs).await.unwrap();
            assert_eq!(outcome, Committed::Conflict, "{run} {number}");
        }
        // The entries were made before the expected revision.
        let later = commit(Expected::At(second), "r", 2, &["c"]);
        assert_eq!(store.commit("c", later).await.unwrap(), Committed::Conflict);
        // The conversation of that name is another one.
        assert!(store.delete("c").await.unwrap());
        committed(&store, "c", commit(Expected::New, "r", 2, &["c"])).await;
        assert_eq!(store.commit("c", next).await.unwrap(), Committed::Conflict);
    }

    async fn a_commit_that_expects_nothing_creates_or_appends(backend) {
        let store = backend.open().await;
        let first = committed(&store, "c", commit(Expected::Any, "", 0, &["a"])).await;
        let second = committed(&store, "c", commit(Expected::Any, "", 0, &["a", "b"])).await;
        assert_eq!(second, Revision::new(first.epoch, 3));
        let stored = ["a", "a", "b"].map(String::from);
        assert_eq!(texts(&store, "c").await, (0..).zip(stored).collect::<Vec<_>>());
    }

    async fn positions_go_on_after_a_clear(backend) {
        let store = backend.open().await;
        store.clear("c").await.unwrap();
        assert_eq!(store.head("c").await.unwrap(), None);

        let mut first = commit(Expected::New, "r", 1, &["a", "b"]);
        first.entries.push(entry("r", 1, EntryContent::State("{}".into())));
        first.agent = Some(Some("A".into()));
        first.details = Some("{}".into());
        first.expires = Some(Some(time(9)));
        let before = committed(&store, "c", first.clone()).await;
        store.clear("c").await.unwrap();
        let cleared = head(&store, "c").await;
        assert_ne!(cleared.revision.epoch, before.epoch);
        let revision = Revision::new(cleared.revision.epoch, 3);
        let mut expected = Head::new("c", revision, time(0));
        expected.first = 3;
        expected.changed = cleared.changed;
        assert_eq!(cleared, expected);
        assert!(cleared.changed > time(0));
        assert_eq!(all(&store, "c").await, []);
        // The entries that would tell that it was made before are gone.
        assert_eq!(store.commit("c", first).await.unwrap(), Committed::Conflict);

        // What was loaded before cannot be committed any more.
        let late = commit(Expected::At(before), "r", 2, &["c"]);
        assert_eq!(store.commit("c", late).await.unwrap(), Committed::Conflict);
        let next = committed(&store, "c", commit(Expected::At(revision), "r", 2, &["c"])).await;
        assert_eq!(next, Revision::new(revision.epoch, 4));
        assert_eq!(texts(&store, "c").await, [(3, "c".into())]);
        assert_eq!(store.read("c", 0..3).await.unwrap(), []);
        store.clear("c").await.unwrap();
        assert_eq!(head(&store, "c").await.first, 4);
    }

    async fn a_conversation_that_is_created_again_has_another_epoch(backend) {
        let store = backend.open().await;
        assert!(!store.delete("c").await.unwrap());
        let before = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
        assert!(store.delete("c").await.unwrap());
        assert!(!store.delete("c").await.unwrap());
        assert_eq!(store.head("c").await.unwrap(), None);
        assert_eq!(all(&store, "c").await, []);
        let late = commit(Expected::At(before), "r", 2, &["b"]);
        assert_eq!(store.commit("c", late.clone()).await.unwrap(), Committed::Conflict);

        let after = committed(&store, "c", commit(Expected::New, "s", 1, &["c"])).await;
        assert_ne!(after.epoch, before.epoch);
        assert_eq!(after.next, 1);
        assert_eq!(store.commit("c", late).await.unwrap(), Committed::Conflict);
        assert_eq!(texts(&store, "c").await, [(0, "c".into())]);
    }

    async fn a_range_is_read_without_positions_that_have_no_entry(backend) {
        let store = backend.open().await;
        committed(&store, "c", commit(Expected::New, "", 0, &["a", "b", "c", "d"])).await;
        let positions = async |range: std::ops::Range<u64>| {
            let entries = store.read("c", range).await.unwrap();
            entries.iter().map(|entry| entry.position).collect::<Vec<_>>()
        };
        assert_eq!(positions(0..4).await, [0, 1, 2, 3]);
        assert_eq!(positions(1..3).await, [1, 2]);
        assert_eq!(positions(2..100).await, [2, 3]);
        assert_eq!(positions(3..u64::MAX).await, [3]);
        assert_eq!(positions(0..1).await, [0]);
        assert_eq!(positions(4..9).await, [0; 0]);
        assert_eq!(positions(u64::MAX - 1..u64::MAX).await, [0; 0]);
        assert_eq!(positions(2..2).await, [0; 0]);
        #[allow(clippy::reversed_empty_ranges, reason = "a caller may compute one")]
        let reversed = 3..1;
        assert_eq!(positions(reversed).await, [0; 0]);
    }

    async fn a_commit_of_many_entries_is_stored_as_a_whole(backend) {
        let store = backend.open().await;
        let texts: Vec<String> = (0..12_345).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let revision = committed(&store, "c", commit(Expected::New, "r", 1, &texts)).await;
        assert_eq!(revision.next, 12_345);
        let stored = crate::texts(&store, "c").await;
        assert_eq!(stored, (0..).zip(texts.iter().map(|text| (*text).to_owned())).collect::<Vec<_>>());
        let middle = store.read("c", 6_000..6_003).await.unwrap();
        assert_eq!(middle.iter().map(|entry| entry.position).collect::<Vec<_>>(), [6_000, 6_001, 6_002]);
    }

    async fn what_was_committed_is_there_when_the_store_is_opened_again(backend) {
        let store = backend.open().await;
        let revision = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
        store.close().await;
        let store = backend.open().await;
        assert_eq!(head(&store, "c").await, Head::new("c", revision, time(0)));
        let next = committed(&store, "c", commit(Expected::At(revision), "r", 2, &["b"])).await;
        assert_eq!(next.next, 2);
        assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);
    }
}
