//! The stores under test.

#[cfg(any(feature = "postgres", feature = "redis"))]
use std::sync::atomic::{AtomicU32, Ordering};

use switchboard_core::conversation::{ConversationStore, MemoryStore};

/// A place of conversations, empty at first, that can be opened several times.
pub(crate) trait Backend {
    type Store: ConversationStore + Clone;

    fn open(&self) -> impl Future<Output = Self::Store> + Send;
}

/// A name that no other test has.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{number}", std::process::id())
}

pub(crate) struct Memory(MemoryStore);

impl Memory {
    pub(crate) fn new() -> Self {
        Self(MemoryStore::default())
    }
}

impl Backend for Memory {
    type Store = MemoryStore;

    async fn open(&self) -> MemoryStore {
        self.0.clone()
    }
}

#[cfg(feature = "sqlite")]
pub(crate) struct Sqlite(tempfile::TempDir);

#[cfg(feature = "sqlite")]
impl Sqlite {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[cfg(feature = "sqlite")]
impl Backend for Sqlite {
    type Store = switchboard_sessions::SqliteStore;

    async fn open(&self) -> Self::Store {
        let path = self.0.path().join("conversations.db");
        switchboard_sessions::SqliteStore::open(path).await.unwrap()
    }
}

/// The address of a server that the environment names.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn address(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run this with tests/with-servers"))
}

#[cfg(feature = "postgres")]
pub(crate) struct Postgres(pub(crate) switchboard_sessions::PostgresOptions);

#[cfg(feature = "postgres")]
impl Postgres {
    pub(crate) fn new() -> Self {
        let address = address("SWITCHBOARD_TEST_POSTGRES");
        let options = switchboard_sessions::PostgresOptions::new(&address).unwrap();
        Self(options.schema(unique_name()))
    }
}

#[cfg(feature = "postgres")]
impl Backend for Postgres {
    type Store = switchboard_sessions::PostgresStore;

    async fn open(&self) -> Self::Store {
        self.0.clone().open().await.unwrap()
    }
}

#[cfg(feature = "redis")]
pub(crate) struct Redis(pub(crate) switchboard_sessions::RedisOptions);

#[cfg(feature = "redis")]
impl Redis {
    pub(crate) fn new() -> Self {
        let address = address("SWITCHBOARD_TEST_REDIS");
        let options = switchboard_sessions::RedisOptions::new(&address).unwrap();
        Self(options.prefix(unique_name()))
    }
}

#[cfg(feature = "redis")]
impl Backend for Redis {
    type Store = switchboard_sessions::RedisStore;

    async fn open(&self) -> Self::Store {
        self.0.clone().open().await.unwrap()
    }
}
