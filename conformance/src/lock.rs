//! Locks that survive panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Nothing here panics while it holds one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
