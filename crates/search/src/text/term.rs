//! The id of an indexed word: a hash, so that independently analysed documents agree without a shared word list.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A stem, a Chinese character or a pair of them, by the hash of its text.
///
/// With 64 bits, a catalog of a million different words has a collision with a probability of one in 30 million; it
/// would cause one wrong hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Term(u64);

impl Term {
    /// The term of this text.
    pub(crate) fn of(text: &str) -> Self {
        // FNV-1a with a finalizer, so that the low bits are sufficient as a hash table key.
        let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(hash ^ (hash >> 29))
    }

    /// The hash itself.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// A map with terms as keys; they are already hashes and not hashed again.
pub(crate) type TermMap<V> = HashMap<Term, V, BuildHasherDefault<IdentityHasher>>;

/// A hasher that returns the bits of the term.
#[derive(Debug, Default, Clone)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
