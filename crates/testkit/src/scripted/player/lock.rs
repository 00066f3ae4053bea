//! Mutexes whose state stays valid when a task panics while it holds the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ignores poisoning.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
