//! Words of a request that do not denote an action or object, by kind, in both languages.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

const FILLERS: &str = include_str!("../../data/fillers.tsv");

/// Sets of words by the head of their rows. Heads joined by commas share a row.
static SETS: LazyLock<HashMap<&'static str, BTreeSet<String>>> = LazyLock::new(|| {
    let mut sets: HashMap<&'static str, BTreeSet<String>> = HashMap::new();
    let rows = FILLERS.lines().filter(|line| !line.starts_with('#'));
    for (heads, words) in rows.filter_map(|line| line.split_once('\t')) {
        for head in heads.split(',') {
            let set = sets.entry(head).or_default();
            set.extend(words.split_whitespace().map(|word| word.replace('_', " ")));
        }
    }
    sets
});

static NONE: BTreeSet<String> = BTreeSet::new();

/// The words of one kind.
pub(crate) fn of(kind: &str) -> &'static BTreeSet<String> {
    SETS.get(kind).unwrap_or(&NONE)
}

/// Words that are ignored everywhere.
pub(crate) fn always() -> &'static BTreeSet<String> {
    of("always")
}

/// Words that are ignored beside the verbs of a class.
pub(crate) fn of_class(class: &str) -> &'static BTreeSet<String> {
    of(&format!("@{class}"))
}
