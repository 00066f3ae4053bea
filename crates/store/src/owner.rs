//! The id of an open store, which owns the calls that it runs. Each database detects in its own way whether an owner
//! is alive.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// One open store. A call without an end is `running` while its owner is alive, and `unknown` after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnerId(pub(crate) i64);

/// Where calls come from: the open store that runs them, and whether they belong in the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallOrigin {
    pub(crate) owner: OwnerId,
    pub(crate) audit: bool,
}

impl OwnerId {
    /// Creates a unique id.
    pub(crate) fn generate() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let seed = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), SystemTime::now());
        Self(RandomState::new().hash_one(seed).cast_signed())
    }
}
