//! The progress of listing servers, for display.

use std::sync::{Mutex, MutexGuard, PoisonError};

use toolhub_core::ServerId;

/// The progress of listing servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListingProgress {
    /// Servers to be listed.
    pub total: usize,
    /// Servers that were listed or failed.
    pub done: usize,
    /// Servers that are starting or being listed.
    pub running: Vec<ServerId>,
}

#[derive(Debug, Default)]
pub(crate) struct ProgressCell(Mutex<ListingProgress>);

impl ProgressCell {
    fn lock(&self) -> MutexGuard<'_, ListingProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> ListingProgress {
        self.lock().clone()
    }

    /// Counts a server until the guard is dropped.
    pub(crate) fn count<'a>(&'a self, server: &'a ServerId) -> ProgressGuard<'a> {
        self.lock().total += 1;
        ProgressGuard { cell: self, server }
    }
}

/// A server that is waiting to be listed or being listed.
#[derive(Debug)]
pub(crate) struct ProgressGuard<'a> {
    cell: &'a ProgressCell,
    server: &'a ServerId,
}

impl ProgressGuard<'_> {
    /// Marks that the listing has started.
    pub(crate) fn start(&self) {
        self.cell.lock().running.push(self.server.clone());
    }
}

impl Drop for ProgressGuard<'_> {
    fn drop(&mut self) {
        let mut progress = self.cell.lock();
        progress.done += 1;
        if let Some(index) = progress.running.iter().position(|id| id == self.server) {
            progress.running.remove(index);
        }
        if progress.done == progress.total {
            *progress = ListingProgress::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_until_all_are_done() {
        let (cell, [a, b]) = (ProgressCell::default(), ["a", "b"].map(ServerId::new));
        let (first, second) = (cell.count(&a), cell.count(&b));
        first.start();
        assert_eq!(cell.get(), ListingProgress { total: 2, done: 0, running: vec![a.clone()] });
        drop(first);
        assert_eq!(cell.get(), ListingProgress { total: 2, done: 1, running: vec![] });
        drop(second);
        assert_eq!(cell.get(), ListingProgress::default());
    }
}
