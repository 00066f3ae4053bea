//! The start of a part of the history that has about a number of calls.

use toolhub_core::call_log::RecordId;

/// Blocks of calls, newest first, that make up a part.
#[derive(Debug)]
pub(crate) struct BlockPart {
    /// Number of calls that are missing.
    missing: i64,
    /// The smallest id of the blocks.
    first: Option<String>,
}

impl BlockPart {
    /// A part with this number of calls.
    pub(crate) fn new(calls: usize) -> Self {
        Self { missing: i64::try_from(calls).unwrap_or(i64::MAX), first: None }
    }

    /// Adds a block. Returns whether the part has all its calls.
    pub(crate) fn is_full_with(&mut self, first: String, calls: i64) -> bool {
        self.missing -= calls;
        self.first = Some(match self.first.take() {
            Some(smallest) => smallest.min(first),
            None => first,
        });
        self.missing <= 0
    }

    /// The start of the part, if `single` is the start of the same number of calls that are not in blocks. Calls of both kinds
    /// lie in the same time: the later start gives a part that is not too long.
    pub(crate) fn start(self, single: Option<String>) -> Option<RecordId> {
        let blocks = self.first.filter(|_| self.missing <= 0);
        blocks.max(single).map(RecordId::new)
    }
}
