//! The id of a recorded call.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use crate::millis::unix_millis;

/// Identifies a recorded call, and is the handle of its full result. Unlike a call id, which the caller may choose,
/// it is unique across machines; it sorts by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(Arc<str>);

/// Crockford's base 32 alphabet: unambiguous characters in ASCII order.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Number of letters of the time.
const TIME_LETTERS: usize = 9;

/// Writes the low bits of a number, the highest first.
fn write_letters(mut number: u64, letters: &mut [u8]) {
    for letter in letters.iter_mut().rev() {
        *letter = LETTERS[(number & 31) as usize];
        number >>= 5;
    }
}

impl RecordId {
    /// Wraps a stored id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Creates an id from the time in milliseconds, a counter, and a random number per process.
    pub fn generate() -> Self {
        Self::at(SystemTime::now())
    }

    /// Creates an id for a known time.
    pub fn at(now: SystemTime) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 18];
        let (time, rest) = id.split_at_mut(TIME_LETTERS);
        let (counted, process) = rest.split_at_mut(3);
        for (number, letters) in [(unix_millis(now), time), (count, counted), (*PROCESS, process)] {
            write_letters(number, letters);
        }
        Self(std::str::from_utf8(&id).unwrap_or_default().into())
    }

    /// A lower bound of all ids that are created for this time or a later one. It is not the id of a call.
    pub fn lower_bound(time: SystemTime) -> Self {
        let mut letters = [0; TIME_LETTERS];
        write_letters(unix_millis(time), &mut letters);
        Self(std::str::from_utf8(&letters).unwrap_or_default().into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
