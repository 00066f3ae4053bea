//! A bounded cache of results by the digest of their token.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ring::digest::SHA256;

/// SHA-256 of a token.
pub(super) type TokenDigest = [u8; 32];

/// Uses `ring`, which takes half the time of `sha2` on processors without instructions for SHA-256: every call hashes its token.
pub(super) fn digest(token: &str) -> TokenDigest {
    let mut digest = TokenDigest::default();
    digest.copy_from_slice(ring::digest::digest(&SHA256, token.as_bytes()).as_ref());
    digest
}

/// Two generations of entries. When the young one is full, it replaces the old one, so that entries that are used stay, and the
/// rest is dropped without a search.
pub(super) struct TokenCache<V> {
    generations: Mutex<Generations<V>>,
    /// Maximum entries of one generation.
    capacity: usize,
}

struct Generations<V> {
    young: HashMap<TokenDigest, CachedToken<V>>,
    old: HashMap<TokenDigest, CachedToken<V>>,
}

struct CachedToken<V> {
    value: V,
    until: Instant,
}

impl<V: Clone> TokenCache<V> {
    /// A cache of at most `capacity` entries.
    pub(super) fn new(capacity: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { generations: Mutex::new(generations), capacity: (capacity / 2).max(1) }
    }

    /// The value, unless its time is over.
    pub(super) fn get(&self, digest: &TokenDigest, now: Instant) -> Option<V> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = generations.young.get(digest) {
            return (now < entry.until).then(|| entry.value.clone());
        }
        let entry = generations.old.remove(digest).filter(|entry| now < entry.until)?;
        let value = entry.value.clone();
        generations.insert(*digest, entry, self.capacity);
        Some(value)
    }

    /// Keeps a value until `until`, which is exclusive.
    pub(super) fn insert(&self, digest: TokenDigest, value: V, until: Instant) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.old.remove(&digest);
        generations.insert(digest, CachedToken { value, until }, self.capacity);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let generations = self.generations.lock().unwrap();
        generations.young.len() + generations.old.len()
    }
}

impl<V> Generations<V> {
    fn insert(&mut self, digest: TokenDigest, entry: CachedToken<V>, capacity: usize) {
        if self.young.len() >= capacity && !self.young.contains_key(&digest) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stays_bounded_and_keeps_used_entries() {
        let cache = TokenCache::new(100);
        let now = Instant::now();
        let until = now + Duration::from_secs(1);
        cache.insert(digest("used"), 0, until);
        for number in 1..10_000 {
            cache.insert(digest(&number.to_string()), number, until);
            assert_eq!(cache.get(&digest("used"), now), Some(0));
            assert!(cache.len() <= 100, "{}", cache.len());
        }
        assert_eq!(cache.get(&digest("1"), now), None);
        assert_eq!(cache.get(&digest("9999"), now), Some(9999));
    }

    #[test]
    fn entries_end_at_their_time() {
        let cache = TokenCache::new(4);
        let now = Instant::now();
        cache.insert(digest("a"), 1, now + Duration::from_secs(5));
        assert_eq!(cache.get(&digest("a"), now + Duration::from_millis(4999)), Some(1));
        assert_eq!(cache.get(&digest("a"), now + Duration::from_secs(5)), None);
        cache.insert(digest("a"), 2, now + Duration::from_secs(9));
        assert_eq!(cache.get(&digest("a"), now + Duration::from_secs(8)), Some(2));
        assert_eq!(cache.get(&digest("b"), now), None);
    }
}
