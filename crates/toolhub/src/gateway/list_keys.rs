//! The names and URIs of the items of one list, without the items. They are read once per list instead of once per request.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

use super::resource_uri::canonicalize_uri;

/// The names or URIs of the items of a list, in its order.
#[derive(Debug, Default)]
pub(super) struct ListKeys {
    keys: Vec<String>,
    /// A digest of the canonical spelling of each, computed on first use.
    digests: OnceLock<Vec<u64>>,
}

impl FromIterator<String> for ListKeys {
    fn from_iter<I: IntoIterator<Item = String>>(keys: I) -> Self {
        Self { keys: keys.into_iter().collect(), digests: OnceLock::new() }
    }
}

impl ListKeys {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Whether the list has this name or URI, in this spelling.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }

    /// The listed URIs that are spellings of a canonical URI.
    pub(super) fn spellings(&self, canonical_uri: &str) -> impl Iterator<Item = &str> {
        let digests =
            self.digests.get_or_init(|| self.keys.iter().map(|key| digest(&canonicalize_uri(key))).collect());
        let wanted = digest(canonical_uri);
        let may_be = self.keys.iter().zip(digests).filter(move |(_, digest)| **digest == wanted);
        may_be.map(|(key, _)| key.as_str()).filter(move |key| canonicalize_uri(key) == canonical_uri)
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const URI: &str = "(file|FILE|note)://(h|H|localhost)?/(\\./|x/\\.\\./)?(a|%61|b)(\\?q|#f)?";

    proptest! {
        #[test]
        fn spellings_are_those_with_the_same_canonical_form(
            uris in proptest::collection::vec(URI, 0..12),
            uri in URI,
        ) {
            let wanted = canonicalize_uri(&uri);
            let keys: ListKeys = uris.iter().cloned().collect();
            let expected: Vec<&str> =
                uris.iter().map(String::as_str).filter(|one| canonicalize_uri(one) == wanted).collect();
            prop_assert_eq!(keys.spellings(&wanted).collect::<Vec<_>>(), expected);
        }
    }
}
