//! Many writers, many conversations, and writers that go away.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::join_all;
use switchboard_core::conversation::{Conversations, ListQuery, SearchQuery};

use crate::*;

/// The number of conversations side by side.
fn conversations() -> usize {
    let number = std::env::var("SWITCHBOARD_TEST_CONVERSATIONS").ok();
    number.map_or(500, |number| number.parse().unwrap())
}

/// Commits until there is no conflict, as a run does that is tried again.
async fn commit_at_head(
    store: &impl ConversationStore,
    id: &str,
    run: &str,
    number: u32,
    texts: &[&str],
) {
    loop {
        let head = store.head(id).await.unwrap();
        let expected = head.map_or(Expected::New, |head| Expected::At(head.revision));
        let commit = commit(expected, run, number, texts);
        if store.commit(id, commit).await.unwrap() != Committed::Conflict {
            return;
        }
    }
}

tests! {
    async fn of_64_writers_of_one_conversation_none_loses_anything(backend) {
        let stores = [backend.open().await, backend.open().await];
        const COMMITS: u32 = 5;
        let writers = (0..64).map(|writer| {
            let store = stores[writer % 2].clone();
            tokio::spawn(async move {
                let run = format!("writer {writer}");
                for number in 1..=COMMITS {
                    let texts = [format!("{run}, {number}, first"), format!("{run}, {number}, second")];
                    commit_at_head(&store, "c", &run, number, &texts.each_ref().map(|text| &**text)).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let stored = all(&stores[0], "c").await;
        assert_eq!(stored.len(), 64 * COMMITS as usize * 2);
        assert_eq!(stored, all(&stores[1], "c").await);
        let mut last = std::collections::HashMap::new();
        for (pair, position) in stored.chunks(2).zip((0..).step_by(2)) {
            let [first, second] = pair else { panic!("{pair:?}") };
            assert_eq!((first.position, second.position), (position, position + 1));
            let number = last.entry(first.run.clone()).or_insert(0);
            *number += 1;
            let text = |entry: &Entry| entry.content.item().unwrap().text().unwrap().into_owned();
            assert_eq!(text(first), format!("{}, {number}, first", first.run));
            assert_eq!(text(second), format!("{}, {number}, second", first.run));
        }
        assert!(last.values().all(|number| *number == COMMITS));
    }

    async fn appends_of_many_tasks_are_all_stored_and_stay_together(backend) {
        let store = backend.open().await;
        let writers = (0..32).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..5 {
                    let text = format!("{writer} {number}");
                    committed(&store, "c", commit(Expected::Any, "", 0, &[&text, &text, &text])).await;
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let stored = texts(&store, "c").await;
        assert_eq!(stored.len(), 32 * 5 * 3);
        assert!(stored.chunks(3).all(|three| three.iter().all(|(_, text)| *text == three[0].1)));
    }

    async fn many_conversations_go_on_side_by_side(backend) {
        let store = backend.open().await;
        let number = conversations();
        // As many at a time as a busy service has.
        let ids: Vec<String> = (0..number).map(|number| format!("conversation {number}")).collect();
        for ids in ids.chunks(250) {
            join_all(ids.iter().map(async |id| {
                commit_at_head(&store, id, "r", 1, &[&format!("{id}, 1")]).await;
                commit_at_head(&store, id, "r", 2, &[&format!("{id}, 2")]).await;
            }))
            .await;
        }
        assert_eq!(store.list(&ListQuery::default()).await.unwrap().len(), number);
        for id in ids.iter().step_by(ids.len() / 50) {
            assert_eq!(texts(&store, id).await, [(0, format!("{id}, 1")), (1, format!("{id}, 2"))]);
        }
    }

    async fn two_handles_see_the_same_conversation(backend) {
        let first = Conversations::new(backend.open().await);
        let second = Conversations::new(backend.open().await);
        let (here, there) = (first.get("c"), second.get("c"));
        here.set_agent(Some("A")).await.unwrap();
        assert_eq!(there.agent().await.unwrap().as_deref(), Some("A"));
        there.set_agent(Some("B")).await.unwrap();
        assert_eq!(here.agent().await.unwrap().as_deref(), Some("B"));
        assert_eq!(here.head().await.unwrap(), there.head().await.unwrap());
        assert!(second.delete("c").await.unwrap());
        assert_eq!(here.head().await.unwrap(), None);
    }

    async fn a_commit_that_was_dropped_is_done_before_anything_later_or_never(backend) {
        let store = backend.open().await;
        let mut revision = committed(&store, "c", commit(Expected::New, "r", 1, &["start"])).await;
        let mut done = 0;
        for number in 2..150_u32 {
            let next = commit(Expected::At(revision), "r", number, &["x"]);
            {
                // Polled a few times, with time between, and dropped.
                let mut future = pin!(store.commit("c", next));
                for _ in 0..number % 4 {
                    let is_ready = poll_fn(|context| {
                        Poll::Ready(future.as_mut().poll(context).is_ready())
                    });
                    if is_ready.await {
                        break;
                    }
                    tokio::time::sleep(Duration::from_micros(u64::from(number % 7) * 100)).await;
                }
            }
            let seen = head(&store, "c").await.revision;
            tokio::time::sleep(Duration::from_millis(u64::from(number % 3) * 3)).await;
            assert_eq!(head(&store, "c").await.revision, seen, "commit {number}");
            done += u64::from(seen != revision);
            assert_eq!(seen.next, 1 + done);
            revision = seen;
        }
        // With no poll at all, nothing is done.
        assert!(done < 140);
        assert_eq!(all(&store, "c").await.len() as u64, 1 + done);
    }

    async fn a_clear_or_delete_beside_writers_leaves_whole_commits(backend) {
        let store = backend.open().await;
        for round in 0..5 {
            let id = format!("c{round}");
            let writers = (0..8).map(|writer| {
                let (store, id) = (store.clone(), id.clone());
                tokio::spawn(async move {
                    for number in 1..=10 {
                        commit_at_head(&store, &id, &format!("w{writer}"), number, &["a", "b"]).await;
                    }
                })
            });
            let writers: Vec<_> = writers.collect();
            for _ in 0..4 {
                store.clear(&id).await.unwrap();
                store.delete(&id).await.unwrap();
                let entries = all(&store, &id).await;
                let number = entries.len();
                assert!(entries.chunks(2).all(|two| two.len() == 2 && two[0].run == two[1].run), "{number}");
            }
            for writer in writers {
                writer.await.unwrap();
            }
            let head = head(&store, &id).await;
            let stored = all(&store, &id).await;
            assert_eq!(stored.len() as u64, head.entries());
            store.clear(&id).await.unwrap();
            // Nothing of it is left to be found.
            assert_eq!(store.search(&SearchQuery::new("a", 10)).await.unwrap(), []);
        }
    }
}
