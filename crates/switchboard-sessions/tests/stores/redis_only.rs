//! Redis: keys, scripts, and servers and networks that fail.

use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use switchboard_core::conversation::{ListQuery, SearchQuery};
use switchboard_sessions::{RedisOptions, RedisStore, StoreErrorKind};

use crate::backends::{Backend, Redis, address, unique_name};
use crate::proxy::{Proxy, host_and_port};
use crate::*;

fn server() -> String {
    address("SWITCHBOARD_TEST_REDIS")
}

async fn connection() -> MultiplexedConnection {
    let client = redis::Client::open(server()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// A store through a network that can fail.
async fn behind_proxy() -> (Proxy, RedisStore) {
    let proxy = Proxy::to(host_and_port(&server())).await;
    let options = RedisOptions::new(&format!("redis://127.0.0.1:{}/", proxy.port)).unwrap();
    let options = options
        .prefix(unique_name())
        .connect_timeout(Duration::from_secs(1))
        .response_timeout(Duration::from_millis(500));
    let store = options.open().await.unwrap();
    // The server has all scripts.
    for number in 1..=2 {
        committed(&store, "warm", commit(Expected::Any, "r", number, &["x"])).await;
    }
    assert_eq!(all(&store, "warm").await.len(), 2);
    (proxy, store)
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn all_keys_are_in_one_slot_of_a_cluster_and_are_gone_after_a_delete() {
    let prefix = unique_name();
    let store = RedisOptions::new(&server())
        .unwrap()
        .prefix(&prefix)
        .open()
        .await
        .unwrap();
    for id in ["a", "{b}", "c:d"] {
        let mut first = commit(Expected::New, "r", 1, &["x"]);
        first.expires = Some(Some(time(0)));
        committed(&store, id, first).await;
        assert!(store.lease(id, "owner", LONG).await.unwrap());
    }
    let mut connection = connection().await;
    let keys: Vec<String> = connection.keys(format!("*{prefix}*")).await.unwrap();
    assert_eq!(keys.len(), 3 * 3 + 4);
    assert!(
        keys.iter()
            .all(|key| key.starts_with(&format!("{{{prefix}}}:"))),
        "{keys:?}"
    );
    for id in ["a", "{b}", "c:d"] {
        store.release(id, "owner").await.unwrap();
        assert!(store.delete(id).await.unwrap());
    }
    let keys: Vec<String> = connection.keys(format!("*{prefix}*")).await.unwrap();
    assert_eq!(keys, [format!("{{{prefix}}}:version")]);
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn conversations_of_the_version_before_get_into_the_lists_of_their_folders() {
    let prefix = unique_name();
    let options = || RedisOptions::new(&server()).unwrap().prefix(&prefix);
    let store = options().open().await.unwrap();
    for id in ["acme/a", "b"] {
        committed(&store, id, commit(Expected::New, "r", 1, &["x"])).await;
    }
    let mut connection = connection().await;
    let folders = ["acme/", ""].map(|folder| format!("{{{prefix}}}:folder:{folder}"));
    let _: () = connection.del(&folders[..]).await.unwrap();
    let version = format!("{{{prefix}}}:version");
    let _: () = connection.set(&version, 1).await.unwrap();

    let store = options().open().await.unwrap();
    let mut query = ListQuery::default();
    query.folder = Some("acme/".into());
    let listed = store.list(&query).await.unwrap();
    assert_eq!(listed, [head(&store, "acme/a").await]);
    let version: u32 = connection.get(&version).await.unwrap();
    assert_eq!(version, 2);
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn conversations_of_a_later_version_are_refused() {
    let prefix = unique_name();
    let options = RedisOptions::new(&server()).unwrap().prefix(&prefix);
    let mut connection = connection().await;
    let _: () = connection
        .set(format!("{{{prefix}}}:version"), 99)
        .await
        .unwrap();
    let error = options.open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Newer);
    assert_eq!(
        error.to_string(),
        format!(
            "conversations at redis://{}/0: the conversations under \"{{{prefix}}}\" are of version 99, \
             which is later than this program knows; use the version of Switchboard that made it, or a \
             later one; nothing was changed",
            host_and_port(&server())
        )
    );
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_key_of_another_program_makes_a_commit_fail_as_a_whole() {
    for (kind, id) in [
        ("head", "c"),
        ("entries", "c"),
        ("changed", ""),
        ("expires", ""),
    ] {
        let prefix = unique_name();
        let store = RedisOptions::new(&server())
            .unwrap()
            .prefix(&prefix)
            .open()
            .await
            .unwrap();
        let mut connection = connection().await;
        let suffix = if id.is_empty() {
            String::new()
        } else {
            format!(":{id}")
        };
        let _: () = connection
            .set(format!("{{{prefix}}}:{kind}{suffix}"), "x")
            .await
            .unwrap();
        let error = store
            .commit("c", commit(Expected::New, "r", 1, &["x"]))
            .await
            .unwrap_err();
        assert_eq!(
            store_error(&error).kind(),
            StoreErrorKind::Foreign,
            "{error}"
        );
        let keys: Vec<String> = connection.keys(format!("*{prefix}*")).await.unwrap();
        assert_eq!(keys.len(), 2, "{keys:?}");
    }
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn scripts_that_the_server_has_forgotten_are_sent_again() {
    let store = Redis::new().open().await;
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    let mut connection = connection().await;
    let flush = async |connection: &mut MultiplexedConnection| {
        let _: () = redis::cmd("SCRIPT")
            .arg("FLUSH")
            .query_async(connection)
            .await
            .unwrap();
    };
    flush(&mut connection).await;
    committed(&store, "c", commit(Expected::At(first), "r", 2, &["b"])).await;
    flush(&mut connection).await;
    assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_search_reads_no_more_entries_than_it_may() {
    let options = RedisOptions::new(&server()).unwrap().prefix(unique_name());
    let store = options.search_limit(300).open().await.unwrap();
    for (id, at) in [("old", 1), ("new", 2)] {
        let mut commit = commit(Expected::New, "r", 1, &["word"; 250]);
        commit.time = time(at);
        commit
            .entries
            .iter_mut()
            .for_each(|entry| entry.time = time(at));
        committed(&store, id, commit).await;
    }
    let found = store
        .search(&SearchQuery::new("word", 1_000))
        .await
        .unwrap();
    let of = |id: &str| {
        found
            .iter()
            .filter(|found| &*found.conversation == id)
            .count()
    };
    assert_eq!(of("new"), 250);
    assert!((1..250).contains(&of("old")));
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_closed_store_says_so() {
    let store = Redis::new().open().await;
    store.close().await;
    store.close().await;
    let error = store.head("c").await.unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Closed,
        "{error}"
    );
    let error = store
        .commit("c", commit(Expected::New, "r", 1, &["x"]))
        .await
        .unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Closed,
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis; ./test starts one"]
async fn a_lost_connection_is_made_again() {
    let (proxy, store) = behind_proxy().await;
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    proxy.cut();
    assert_eq!(head(&store, "c").await.revision, first);
    proxy.cut();
    let second = committed(&store, "c", commit(Expected::At(first), "", 0, &["b"])).await;
    proxy.cut();
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().len(), 2);
    proxy.cut();
    store.clear("c").await.unwrap();
    assert_eq!(head(&store, "c").await.first, second.next);
}

/// Commits whose answer is lost. The server has stored them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis; ./test starts one"]
async fn a_commit_whose_answer_is_lost_is_stored_once() {
    let (proxy, store) = behind_proxy().await;
    proxy.lose_next_answer();
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    proxy.lose_next_answer();
    let second = committed(&store, "c", commit(Expected::At(first), "r", 2, &["b"])).await;
    proxy.lose_next_answer();
    let third = committed(&store, "c", commit(Expected::Any, "r", 3, &["c"])).await;
    assert_eq!((first.next, second.next, third.next), (1, 2, 3));
    assert_eq!(
        texts(&store, "c").await,
        [(0, "a".into()), (1, "b".into()), (2, "c".into())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis; ./test starts one"]
async fn a_commit_without_a_number_whose_answer_is_lost_may_be_stored() {
    let (proxy, store) = behind_proxy().await;
    proxy.lose_next_answer();
    let error = store
        .commit("c", commit(Expected::Any, "", 0, &["b"]))
        .await
        .unwrap_err();
    let error = store_error(&error);
    assert_eq!(
        (error.kind(), error.conversation()),
        (StoreErrorKind::UnknownOutcome, Some("c"))
    );
    let advice = "load the conversation to see if it was stored, and try again if it was not";
    assert!(error.to_string().ends_with(advice), "{error}");
    assert_eq!(texts(&store, "c").await, [(0, "b".into())]);
    let at = head(&store, "c").await.revision;
    proxy.lose_next_answer();
    let error = store
        .commit("c", commit(Expected::At(at), "", 0, &["c"]))
        .await
        .unwrap_err();
    assert_eq!(store_error(&error).kind(), StoreErrorKind::UnknownOutcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis; ./test starts one"]
async fn a_server_that_falls_silent_is_given_up_and_used_again_later() {
    let (proxy, store) = behind_proxy().await;
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    proxy.fall_silent();
    let error = store.head("c").await.unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Unreachable,
        "{error}"
    );
    let again = commit(Expected::At(first), "r", 2, &["b"]);
    let error = store.commit("c", again.clone()).await.unwrap_err();
    let kind = store_error(&error).kind();
    assert!(
        matches!(
            kind,
            StoreErrorKind::Unreachable | StoreErrorKind::UnknownOutcome
        ),
        "{error}"
    );
    proxy.restore();
    committed(&store, "c", again).await;
    assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);
}

/// A commit that the network delivers after its connection was given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis; ./test starts one"]
async fn a_commit_of_a_connection_that_was_lost_is_not_stored_later() {
    let (proxy, store) = behind_proxy().await;
    proxy.hold_next_request();
    let late = store.commit("c", commit(Expected::Any, "", 0, &["late"]));
    let error = late.await.unwrap_err();
    assert_eq!(store_error(&error).kind(), StoreErrorKind::UnknownOutcome);
    assert_eq!(store.head("c").await.unwrap(), None);

    proxy.forward_late();
    tokio::time::sleep(Duration::from_millis(300)).await;

    assert_eq!(store.head("c").await.unwrap(), None);
}
