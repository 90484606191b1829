//! Sessions for Switchboard: conversations that outlive the program.
//!
//! [`SqliteSessions`] stores any number of conversations in one SQLite file. A [`SqliteSession`] is a
//! handle to one of them, for [`Runner::session`](switchboard_core::Runner::session).
//!
//! ```
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//! use switchboard_sessions::SqliteSessions;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("conversations.db");
//! let sessions = SqliteSessions::open(path).await?;
//! let session = sessions.session("customer-42");
//!
//! let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
//! let result = Runner::new(&agent).session(&session).run("Hi").await?;
//! session.set_agent(result.last_agent().name()).await?;
//!
//! // Later, maybe in another process:
//! let listed = &sessions.list().await?[0];
//! assert_eq!((listed.name.as_str(), listed.items), ("customer-42", 2));
//! assert_eq!(session.agent().await?.as_deref(), Some("Support"));
//! # sessions.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Items are stored and loaded byte for byte. Each append is atomic, and its items stay together,
//! however many tasks and processes write to the file.

#[cfg(feature = "postgres")]
mod abandoned;
mod error;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod sqlite;
#[allow(dead_code, reason = "until the stores use it")]
mod store_error;

pub use error::{SessionError, SessionErrorKind};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
pub use store_error::{StoreError, StoreErrorKind};
pub use sqlite::{SessionInfo, SqliteSession, SqliteSessions};
