//! Who runs a call: the id of one open store. How its life is seen from outside is each database's own way.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// One open store. A call without an end is `running` while its owner lives, and `unknown` from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnerId(pub(crate) i64);

impl OwnerId {
    /// An id that no other store has.
    pub(crate) fn fresh() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let seed = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), SystemTime::now());
        Self(RandomState::new().hash_one(seed).cast_signed())
    }
}
