//! Local journals of finished calls that dead stores left before the database contained all of them.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::blocks::{BlockBuilder, MIN_BLOCK_CALLS, frame};
use crate::journal::JournalKind;
use crate::journal::folder::{self, JournalFile};
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::recorder::RecordedCalls;
use crate::rows::{cutoff_micros, unix_micros};

/// The folder of this store's journals, if it has any.
pub(super) struct Journals {
    pub(super) folder: Option<PathBuf>,
    pub(super) owner: OwnerId,
}

impl Journals {
    /// The journals of dead stores.
    pub(super) fn journals_of_dead_stores(&self) -> Vec<JournalFile> {
        let folder = self.folder.as_deref();
        folder
            .map(|folder| folder::journals_of_dead_stores(folder, self.owner, JournalKind::Calls))
            .unwrap_or_default()
    }

    /// Removes the lock files of dead stores.
    pub(super) fn sweep(&self) {
        if let Some(folder) = &self.folder {
            folder::sweep(folder);
        }
    }
}

/// The calls of a journal that are not in blocks, in groups that are stored as rows: an existing row is not counted
/// twice.
pub(super) fn missing(bytes: &[u8], stored: &[(u64, u64)], retention: &Retention) -> Vec<RecordedCalls> {
    let too_old = cutoff_micros(SystemTime::now(), retention.calls);
    let frames: Vec<_> = frame::read(bytes)
        .filter(|frame| !stored.iter().any(|(start, end)| (*start..*end).contains(&frame.offset)))
        .filter(|frame| unix_micros(frame.start.at) >= too_old)
        .collect();
    frames
        .chunks(MIN_BLOCK_CALLS - 1)
        .map(|chunk| {
            // All calls of a journal are of one store.
            let mut builder = BlockBuilder::new(chunk.iter().any(|frame| frame.audit));
            for frame in chunk {
                builder.add(&frame.start, &frame.end);
            }
            RecordedCalls { blocks: builder.seal().into_iter().collect(), ..RecordedCalls::default() }
        })
        .collect()
}
