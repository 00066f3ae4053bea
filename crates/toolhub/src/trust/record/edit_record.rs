//! The records of edits that the owner made with commands: which state of a folder's config files led to which.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The maximum number of records; the oldest are removed first.
const MAX_RECORDS: usize = 256;

/// An edit of the config files of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnEditRecord {
    pub(super) folder: String,
    /// The digest of the config files before it.
    pub(super) before: String,
    /// The digest of the config files after it.
    pub(super) after: String,
}

/// Adds an edit, as the newest one.
pub(super) fn add(edits: &mut Vec<OwnEditRecord>, edit: OwnEditRecord) {
    edits.retain(|known| *known != edit);
    edits.push(edit);
    let excess = edits.len().saturating_sub(MAX_RECORDS);
    edits.drain(..excess);
}

/// Whether recorded edits of a folder lead, in their order, from one state of its config files to another. Edits from before the
/// last one that led to the first state do not count: otherwise a file could be put back to an earlier state.
pub(super) fn connect(edits: &[OwnEditRecord], folder: &str, before: &str, after: &str) -> bool {
    let of_folder = || edits.iter().filter(|edit| edit.folder == folder);
    let led_here = of_folder().enumerate().filter(|(_, edit)| edit.after == before).last();
    let older = led_here.map_or(0, |(at, _)| at + 1);
    let mut reached = BTreeSet::from([before]);
    for edit in of_folder().skip(older) {
        if reached.contains(edit.before.as_str()) {
            reached.insert(&edit.after);
        }
    }
    reached.contains(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(folder: &str, before: &str, after: &str) -> OwnEditRecord {
        OwnEditRecord { folder: folder.to_owned(), before: before.to_owned(), after: after.to_owned() }
    }

    #[test]
    fn connects_states_by_recorded_edits_of_the_same_folder() {
        let edits = [edit("/a", "1", "2"), edit("/a", "2", "3"), edit("/b", "3", "4")];
        assert!(connect(&edits, "/a", "1", "3") && connect(&edits, "/a", "2", "3"));
        assert!(!connect(&edits, "/a", "3", "1") && !connect(&edits, "/a", "3", "4"));
    }

    #[test]
    fn earlier_edits_do_not_put_back_a_state() {
        let mut edits = vec![edit("/a", "1", "2"), edit("/a", "2", "1")];
        assert!(!connect(&edits, "/a", "1", "2"), "both were made before the run");
        add(&mut edits, edit("/a", "1", "2"));
        assert!(connect(&edits, "/a", "1", "2"));
        assert!(!connect(&edits, "/a", "2", "1"), "the owner has not made it since");
    }

    #[test]
    fn keeps_the_newest_records_once() {
        let mut edits = Vec::new();
        for number in 0..=MAX_RECORDS {
            add(&mut edits, edit("/a", "0", &number.to_string()));
            add(&mut edits, edit("/a", "0", &number.to_string()));
        }
        assert_eq!(edits.len(), MAX_RECORDS);
        assert_eq!(edits.first(), Some(&edit("/a", "0", "1")));
    }
}
