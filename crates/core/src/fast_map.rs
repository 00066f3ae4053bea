//! Maps for what every call looks up. Keys that strangers choose freely, and in any number, belong in another.

use std::collections::HashMap;

/// A map whose hash costs little and differs from process to process.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
