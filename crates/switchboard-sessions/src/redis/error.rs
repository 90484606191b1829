//! Errors of Redis.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::{Place, StoreError, StoreErrorKind};

/// Returns `true` if the connection cannot be used further, so that the outcome of the command is not
/// known.
pub(super) fn is_connection_lost(error: &RedisError) -> bool {
    error.is_unrecoverable_error() || error.is_timeout() || error.is_io_error()
}

/// Returns `true` if the server is loading its data, or another one is about to take over.
pub(super) fn is_starting(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, TryAgain};
    matches!(
        error.kind(),
        ErrorKind::Server(BusyLoading | MasterDown | ClusterDown | TryAgain)
    )
}

pub(super) fn convert(error: RedisError, place: &Place) -> StoreError {
    use ServerErrorKind as Server;
    let kind = match error.kind() {
        ErrorKind::Io => StoreErrorKind::Unreachable,
        ErrorKind::AuthenticationFailed | ErrorKind::Server(Server::NoPerm | Server::ReadOnly) => {
            StoreErrorKind::Permission
        }
        ErrorKind::InvalidClientConfig | ErrorKind::Server(Server::Moved | Server::Ask) => {
            StoreErrorKind::Address
        }
        ErrorKind::Server(Server::BusyLoading | Server::MasterDown | Server::ClusterDown) => {
            StoreErrorKind::Unreachable
        }
        _ => match error.code() {
            Some("OOM" | "MISCONF") => StoreErrorKind::Full,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => StoreErrorKind::Permission,
            Some("WRONGTYPE") => StoreErrorKind::Foreign,
            Some("BUSY") => StoreErrorKind::Busy,
            _ if error.to_string().contains("WRONGTYPE") => StoreErrorKind::Foreign,
            _ if error.to_string().contains("OOM") => StoreErrorKind::Full,
            _ if error.is_io_error() => StoreErrorKind::Unreachable,
            _ => StoreErrorKind::Storage,
        },
    };
    StoreError::new(kind, place.clone(), error.to_string()).caused_by(error)
}
