//! Opens the store of an address.

use switchboard_core::conversation::Conversations;

use crate::error::{Place, StoreError, StoreErrorKind};

/// The purpose for which a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Access {
    /// Reading and writing. A file that does not exist is created.
    #[default]
    Create,
    /// Reading and writing. A file that does not exist or is empty is an error.
    Existing,
    /// Reading. A file that does not exist or is empty is an error, and one that cannot be written is read as it is. Where
    /// it can be written, one of an earlier version is migrated, as otherwise nothing could read it.
    Read,
}

/// Opens the store of an address.
///
/// | address | store | feature |
/// | --- | --- | --- |
/// | `memory:` | in memory, as long as the program runs | |
/// | `sqlite:conversations.db`, `sqlite:/data/conversations.db` | `SqliteStore`, in the file of that path | `sqlite` |
/// | `postgres://user:password@host:port/database` | `PostgresStore` | `postgres` |
/// | `redis://user:password@host:port/database`, `rediss://...` | `RedisStore` | `redis` |
///
/// The path of `sqlite:` is taken as it is, without escapes. `sqlite:///data/conversations.db` is
/// another way to write `sqlite:/data/conversations.db`.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let conversations = switchboard_sessions::open("memory:").await?;
/// # assert_eq!(conversations.list(None).await?, []);
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
///
/// # Errors
/// Returns an error if the scheme is unknown or its feature is off, or if the store cannot be opened.
pub async fn open(address: &str) -> Result<Conversations, StoreError> {
    open_with(address, Access::Create).await
}

/// Opens the store of an address as [`open`] does, for a purpose. Stores on servers are opened for writing in any case.
///
/// ```
/// use switchboard_sessions::{Access, StoreErrorKind, open_with};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// let error = open_with("sqlite:typo.db", Access::Read).await.unwrap_err();
/// assert_eq!(error.kind(), StoreErrorKind::Address);
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Returns an error as [`open`] does, and if the file does not exist or is empty and may not be created.
#[cfg_attr(
    not(feature = "sqlite"),
    allow(unused_variables, reason = "only files are not there")
)]
pub async fn open_with(address: &str, access: Access) -> Result<Conversations, StoreError> {
    let (scheme, rest) = address.split_once(':').unwrap_or(("", address));
    match scheme {
        "memory" if rest.is_empty() => Ok(Conversations::in_memory()),
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            let store = crate::SqliteStore::options()
                .access(access)
                .open(path)
                .await?;
            Ok(Conversations::new(store))
        }
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(without_feature(scheme, "sqlite")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let store = crate::PostgresStore::open(address).await?;
            Ok(Conversations::new(store))
        }
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => Err(without_feature(scheme, "postgres")),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            let store = crate::RedisStore::open(address).await?;
            Ok(Conversations::new(store))
        }
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" => Err(without_feature(scheme, "redis")),
        _ => Err(unknown(scheme)),
    }
}

/// Only the scheme is told: the rest may hold a password.
fn unknown(scheme: &str) -> StoreError {
    let message = "an address is `memory:`, `sqlite:PATH` as in sqlite:conversations.db, \
                   `postgres://USER:PASSWORD@HOST/DATABASE` or `redis://HOST`";
    StoreError::new(StoreErrorKind::Address, place(scheme), message)
}

fn place(scheme: &str) -> Place {
    match scheme {
        "" => Place::Server("an address without a scheme".to_owned()),
        _ => Place::Server(format!("{scheme}:…")),
    }
}

#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
fn without_feature(scheme: &str, feature: &str) -> StoreError {
    let message = format!(
        "this program was built without the feature {feature:?}; turn it on for the crate \
         `switchboard` (or `switchboard-sessions`)"
    );
    StoreError::new(StoreErrorKind::Feature, place(scheme), message)
}
