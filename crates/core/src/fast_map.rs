//! Hash maps for lookups in every call. Not for keys that untrusted peers choose freely and in any number.

use std::collections::HashMap;

/// A map with a fast hash, seeded per process.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
