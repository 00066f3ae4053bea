//! The held calls whose page in the console clients were asked to open.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of held calls whose page was opened that are remembered.
const MAX_OPENED_PAGES: usize = 10_000;

/// The held calls whose page clients were asked to open at this replica, oldest first: the page stays open in a browser, and is not
/// opened again.
#[derive(Debug, Default)]
pub(super) struct OpenedPages(Mutex<VecDeque<String>>);

impl OpenedPages {
    /// Adds a held call by its id. Returns whether it is new.
    pub(super) fn add(&self, id: &str) -> bool {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.iter().any(|opened_id| opened_id == id) {
            return false;
        }
        if opened.len() >= MAX_OPENED_PAGES {
            opened.pop_front();
        }
        opened.push_back(id.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_new_once_and_the_oldest_are_forgotten() {
        let opened = OpenedPages::default();
        assert!(opened.add("a") && !opened.add("a"));
        for number in 1..MAX_OPENED_PAGES {
            assert!(opened.add(&number.to_string()));
        }
        assert!(!opened.add("a"));
        assert!(opened.add("b") && opened.add("a"), "the oldest one gave way");
    }
}
