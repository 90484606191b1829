//! Stores of conversations for Switchboard: conversations that outlive the program.
//!
//! [`open`] returns the [`Conversations`] of a store. Each [`Conversation`] of it is a handle for
//! [`Runner::session`](switchboard_core::Runner::session).
//!
//! ```
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! let conversations = switchboard_sessions::open("sqlite:conversations.db").await?;
//! let conversation = conversations.get("customer-42");
//!
//! let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
//! Runner::new(&agent).session(&conversation).run("Hi").await?;
//!
//! // Later, maybe in another process:
//! let listed = &conversations.list(None).await?[0];
//! assert_eq!(&*listed.id, "customer-42");
//! # conversations.close().await;
//! # Ok::<(), switchboard_core::callback::BoxError>(())
//! # })?;
//! # Ok::<(), switchboard_core::callback::BoxError>(())
//! ```
//!
//! Items are stored and loaded byte for byte. Each commit is atomic, and its entries stay together,
//! however many tasks and processes write to the store.
//!
//! [`Conversation`]: switchboard_core::conversation::Conversation

#[cfg(feature = "postgres")]
mod abandoned;
#[cfg(feature = "encryption")]
mod encrypted;
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "redis")),
    allow(
        dead_code,
        reason = "only stores in files and on servers have these errors"
    )
)]
mod error;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
pub mod python;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "encryption")]
mod sealed_run;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(doc)]
use switchboard_core::conversation::Conversations;

#[cfg(feature = "encryption")]
pub use encrypted::{EncryptedStore, EncryptionError, EncryptionErrorKind, Key, Keys, Rotation};
pub use error::{StoreError, StoreErrorKind};
pub use open::{Access, open, open_with};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
#[cfg(feature = "encryption")]
pub use sealed_run::RunSeal;
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteOptions, SqliteStore};
