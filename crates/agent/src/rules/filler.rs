//! Words of a request that say nothing of what is to be done, each kind in both languages.

use std::collections::BTreeSet;
use std::sync::LazyLock;

const FILLERS: &str = include_str!("../../data/fillers.tsv");

/// Words that say nothing of what is to be done, each kind in both languages.
pub(super) struct Small {
    pub(super) always: BTreeSet<String>,
    /// Where something is inserted or created.
    pub(super) insert: BTreeSet<String>,
    /// Where cells are named.
    pub(super) cells: BTreeSet<String>,
    /// Where cells are merged.
    pub(super) merge: BTreeSet<String>,
    /// Where it is said which way cells move.
    pub(super) shift: BTreeSet<String>,
    /// Where something is grouped and summed up.
    pub(super) group: BTreeSet<String>,
    /// Where the result of an earlier step is an argument.
    pub(super) result: BTreeSet<String>,
}

pub(super) static SMALL: LazyLock<Small> = LazyLock::new(|| {
    let rows = |heads: &[&str]| {
        let rows = FILLERS.lines().filter_map(|line| line.split_once('\t'));
        let rows = rows.filter(|(head, _)| heads.contains(head));
        rows.flat_map(|(_, words)| words.split_whitespace()).map(|word| word.replace('_', " ")).collect()
    };
    Small {
        always: rows(&["en", "zh"]),
        insert: rows(&["insert"]),
        cells: rows(&["cells"]),
        merge: rows(&["merge"]),
        shift: rows(&["shift"]),
        group: rows(&["group"]),
        result: rows(&["result"]),
    }
});
