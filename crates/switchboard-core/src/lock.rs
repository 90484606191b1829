//! Locking a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex under which nothing panics, so that a poisoned one is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
