//! Processes and servers that are killed while conversations are written: nothing that was answered is
//! lost, nothing is stored twice, and the order stays.
//!
//! The servers are those of `with-servers`, whose data survives a kill. By default each test kills a few
//! times; with `SWITCHBOARD_TEST_KILLS=200`, as often as that:
//!
//! ```sh
//! crates/switchboard-sessions/tests/with-servers env SWITCHBOARD_TEST_KILLS=200 \
//!     cargo test -p switchboard-sessions --all-features --test server_crashes \
//!     -- --ignored --test-threads=1 --nocapture
//! ```

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod child;

use std::process::Command;
use std::time::Duration;

use switchboard_core::Item;
use switchboard_core::conversation::{ConversationStore, Entry};
use switchboard_sessions::{PostgresOptions, PostgresStore, RedisOptions, RedisStore, SqliteStore};

use crate::child::{CONVERSATION, Child, batch_size};

/// The name of this run of the tests in the stores.
fn name(test: &str) -> String {
    format!("crash_{test}_{}", std::process::id())
}

async fn postgres(name: &str) -> PostgresStore {
    let address = std::env::var("SWITCHBOARD_TEST_POSTGRES").unwrap();
    let options = PostgresOptions::new(&address).unwrap().schema(name);
    options
        .connect_timeout(Duration::from_secs(60))
        .open()
        .await
        .unwrap()
}

async fn redis(name: &str) -> RedisStore {
    let address = std::env::var("SWITCHBOARD_TEST_REDIS").unwrap();
    let options = RedisOptions::new(&address).unwrap().prefix(name);
    options
        .connect_timeout(Duration::from_secs(60))
        .open()
        .await
        .unwrap()
}

async fn sqlite(name: &str) -> SqliteStore {
    let path = std::env::temp_dir().join(format!("{name}.db"));
    SqliteStore::open(path).await.unwrap()
}

fn kills() -> u32 {
    let number = std::env::var("SWITCHBOARD_TEST_KILLS").ok();
    number.map_or(5, |number| number.parse().unwrap())
}

/// Another time for each kill, up to a quarter of a second.
fn pause(kill: u32) -> Duration {
    Duration::from_millis(u64::from(kill) * 67 % 251)
}

/// Kills a server as a power cut would, and starts it again with its data.
fn kill_and_start(server: &str) {
    for action in ["--kill", "--start"] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/with-servers");
        let status = Command::new(script)
            .args([action, server])
            .status()
            .unwrap();
        assert!(status.success(), "{action} {server}");
    }
}

/// The checks of a conversation, from where the last one ended.
#[derive(Default)]
struct Checked {
    position: u64,
    commit: u32,
    of_commit: usize,
}

impl Checked {
    /// Checks that the commits of a run follow each other, each one complete. Returns the last one.
    fn check(&mut self, entries: &[Entry]) -> u32 {
        for entry in entries {
            assert_eq!(entry.position, self.position);
            self.position += 1;
            if self.of_commit == batch_size(self.commit) {
                self.commit += 1;
                self.of_commit = 0;
            }
            assert_eq!(entry.commit, self.commit, "at {}", entry.position);
            let text = entry
                .content
                .item()
                .and_then(Item::text)
                .unwrap()
                .into_owned();
            assert_eq!(text, format!("{} {}", self.commit, self.of_commit));
            self.of_commit += 1;
        }
        assert_eq!(
            self.of_commit,
            batch_size(self.commit),
            "commit {} is not whole",
            self.commit
        );
        self.commit
    }
}

/// Kills writers, each of which goes on where the one before has ended.
async fn kill_writers(kind: &str, name: &str, store: impl ConversationStore) {
    let mut checked = Checked::default();
    for kill in 0..kills() {
        let mut child = Child::start(kind, name);
        child.wait_for_commit();
        std::thread::sleep(pause(kill));
        let answered = child.kill();
        let entries = store
            .read(CONVERSATION, checked.position..u64::MAX)
            .await
            .unwrap();
        let stored = checked.check(&entries);
        // The last one may have been stored and not told.
        assert!(
            (answered..=answered + 1).contains(&stored),
            "{answered} {stored}"
        );
    }
    println!(
        "{kind}: {} kills of the writer, {} commits",
        kills(),
        checked.commit
    );
    store.close().await;
}

/// Kills the server of one writer, which waits for it or tries again.
async fn kill_server(kind: &str, name: &str, store: impl ConversationStore) {
    let mut checked = Checked::default();
    let mut child = Child::start(kind, name);
    for kill in 0..kills() {
        child.wait_for_commit();
        std::thread::sleep(pause(kill));
        kill_and_start(kind);
        let answered = child.answered();
        let next = store
            .head(CONVERSATION)
            .await
            .unwrap()
            .unwrap()
            .revision
            .next;
        let entries = store
            .read(CONVERSATION, checked.position..next)
            .await
            .unwrap();
        let stored = checked.check(&entries);
        assert!(stored >= answered, "{answered} {stored}");
    }
    child.wait_for_commit();
    let failed = child.failed();
    let answered = child.kill();
    let entries = store
        .read(CONVERSATION, checked.position..u64::MAX)
        .await
        .unwrap();
    let stored = checked.check(&entries);
    assert!(
        (answered..=answered + 1).contains(&stored),
        "{answered} {stored}"
    );
    println!(
        "{kind}: {} kills of the server, {stored} commits, {failed} errors told",
        kills()
    );
    store.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_writer_to_postgres_that_is_killed_leaves_all_that_was_answered() {
    let name = name("writer");
    kill_writers("postgres", &name, postgres(&name).await).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_postgres_server_that_is_killed_has_all_that_was_answered() {
    let name = name("server");
    kill_server("postgres", &name, postgres(&name).await).await;
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_writer_to_redis_that_is_killed_leaves_all_that_was_answered() {
    let name = name("writer");
    kill_writers("redis", &name, redis(&name).await).await;
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_redis_server_that_is_killed_has_all_that_was_answered() {
    let name = name("server");
    kill_server("redis", &name, redis(&name).await).await;
}

/// A server that was started again counts its connections anew, so the number of a lost connection may be that
/// of somebody else's.
#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn a_redis_store_closes_no_connection_of_others_when_the_server_comes_back() {
    kill_and_start("redis");
    let store = redis(&name("numbers")).await;
    kill_and_start("redis");
    let address = std::env::var("SWITCHBOARD_TEST_REDIS").unwrap();
    let client = redis::Client::open(address).unwrap();
    let mut others = Vec::new();
    for _ in 0..20 {
        others.push(client.get_multiplexed_async_connection().await.unwrap());
    }
    assert!(store.head(CONVERSATION).await.unwrap().is_none());
    for other in &mut others {
        let answer: String = redis::cmd("PING").query_async(other).await.unwrap();
        assert_eq!(answer, "PONG");
    }
    store.close().await;
}

#[tokio::test]
#[ignore = "run with those that need a server"]
async fn a_writer_to_sqlite_that_is_killed_leaves_all_that_was_answered() {
    let name = name("writer");
    kill_writers("sqlite", &name, sqlite(&name).await).await;
    for end in [".db", ".db-wal", ".db-shm"] {
        let _ = std::fs::remove_file(std::env::temp_dir().join(format!("{name}{end}")));
    }
}
