//! Errors of PostgreSQL.

use std::io;

use crate::error::{Place, StoreError, StoreErrorKind};

/// Returns `true` if the connection is lost, so that the outcome of the statement is not known.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        // admin_shutdown, crash_shutdown, idle_session_timeout, and class 08
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            matches!(&*code, "57P01" | "57P02" | "57P05") || code.starts_with("08")
        }),
        _ => false,
    }
}

/// Returns `true` if the server is starting or has no room for another connection yet.
pub(super) fn is_starting(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    // cannot_connect_now, too_many_connections
    error
        .code()
        .is_some_and(|code| matches!(&*code, "57P03" | "53300"))
}

/// The error of a statement that the server did not answer in time.
pub(super) fn no_answer() -> sqlx::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time").into()
}

/// Converts an error of a statement, or of connecting.
pub(super) fn convert(error: sqlx::Error, place: &Place) -> StoreError {
    let (kind, message) = match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            // PostgreSQL quotes values in the details of an error, not in its message.
            let message = format!("{} (SQLSTATE {code})", database.message());
            (kind_from_code(&code), message)
        }
        sqlx::Error::Io(error) => (StoreErrorKind::Unreachable, error.to_string()),
        sqlx::Error::Tls(error) => (
            StoreErrorKind::Unreachable,
            format!(
                "no encrypted connection: {error}; `sslmode` and `sslrootcert` of the address set what is accepted"
            ),
        ),
        sqlx::Error::Configuration(error) => (
            StoreErrorKind::Address,
            format!(
                "the address is invalid ({error}); write postgres://user:password@host:port/database"
            ),
        ),
        error => (StoreErrorKind::Storage, error.to_string()),
    };
    StoreError::new(kind, place.clone(), message).caused_by(error)
}

fn kind_from_code(code: &str) -> StoreErrorKind {
    match code {
        // invalid_authorization_specification, invalid_password, insufficient_privilege, and
        // read_only_sql_transaction of a standby
        "28000" | "28P01" | "42501" | "25006" => StoreErrorKind::Permission,
        // invalid_catalog_name: there is no such database
        "3D000" => StoreErrorKind::Address,
        // duplicate_table, undefined_table, undefined_column: other tables than ours
        "42P07" | "42P01" | "42703" => StoreErrorKind::Foreign,
        // disk_full, out_of_memory
        "53100" | "53200" => StoreErrorKind::Full,
        // query_canceled by its timeout, lock_not_available, too_many_connections,
        // deadlock_detected, serialization_failure
        "57014" | "55P03" | "53300" | "40P01" | "40001" => StoreErrorKind::Busy,
        // admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout
        "57P01" | "57P02" | "57P03" | "57P05" => StoreErrorKind::Unreachable,
        // data_corrupted, index_corrupted
        "XX001" | "XX002" => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Storage,
    }
}
