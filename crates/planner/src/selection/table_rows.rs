//! Rows of the tables of actions and objects: which actions change something, only read, or are special.

use crate::lexer::lexicon;

/// Actions that change something.
pub(super) const CHANGING_VERBS: [&str; 22] = [
    "reschedule",
    "write",
    "create",
    "delete",
    "insert",
    "rename",
    "copy",
    "move",
    "merge",
    "unmerge",
    "format",
    "apply",
    "send",
    "replace",
    "edit",
    "commit",
    "stage",
    "unstage",
    "checkout",
    "mark",
    "book",
    "discard",
];
/// Read-only actions.
pub(super) const READ_ONLY_VERBS: [&str; 4] = ["read", "search", "validate", "calculate"];

/// Whether one of the actions has one of these names.
pub(super) fn is_any_verb(verbs: &[usize], names: &[&str]) -> bool {
    verbs.iter().any(|verb| names.contains(&lexicon::verb(*verb).name))
}

/// Whether one of the actions changes something and none of them is read-only.
pub(super) fn only_changes(verbs: &[usize]) -> bool {
    is_any_verb(verbs, &CHANGING_VERBS) && !is_any_verb(verbs, &READ_ONLY_VERBS)
}

/// Whether all of the actions are marked `!` in the table: a tool must perform them.
pub(super) fn are_special(verbs: &[usize]) -> bool {
    verbs.iter().all(|verb| lexicon::verb(*verb).mark == Some('!'))
}

/// Whether two sets of rows have a row in common.
pub(super) fn overlap(rows: &[usize], others: &[usize]) -> bool {
    rows.iter().any(|row| others.contains(row))
}

/// Adds the rows that are not in the list yet.
pub(super) fn add(to: &mut Vec<usize>, rows: &[usize]) {
    for row in rows {
        if !to.contains(row) {
            to.push(*row);
        }
    }
}
