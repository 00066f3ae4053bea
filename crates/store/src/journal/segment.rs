//! One file of a journal: appended to, and removed when the database has all of its content.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::folder::{JournalFolder, Kind};
use crate::options::Durability;
use crate::private;

/// A file that is longer than this is followed by another.
const MAX_SEGMENT_BYTES: u64 = 4 << 20;

/// The file, for as long as it is needed: by the journal that writes it, and by content that is nowhere else.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    number: u32,
    /// The database did not take something of it: the store that is opened next replays it.
    needed: AtomicBool,
}

impl Segment {
    /// Its number among the files of the store.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Keeps the file for the store that is opened next.
    pub(crate) fn leave(&self) {
        self.needed.store(true, Ordering::Relaxed);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if !self.needed.load(Ordering::Relaxed) {
            // If it stays, it is replayed without effect.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A part of a journal file. Keeps the file until the database has the content.
#[derive(Debug, Clone)]
pub(crate) struct JournalRange {
    pub(crate) segment: Arc<Segment>,
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Offset behind the last byte.
    pub(crate) end: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    segment: Arc<Segment>,
}

/// The end of a journal, where content is appended.
#[derive(Debug)]
pub(crate) struct Tail {
    folder: Arc<JournalFolder>,
    kind: Kind,
    durability: Durability,
    open: Option<Open>,
}

impl Tail {
    pub(crate) fn new(folder: Arc<JournalFolder>, kind: Kind, durability: Durability) -> Self {
        Self { folder, kind, durability, open: None }
    }

    /// Whether the current file is long enough.
    pub(crate) fn is_long(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.length >= MAX_SEGMENT_BYTES)
    }

    /// Begins another file with the next append.
    pub(crate) fn rotate(&mut self) {
        self.open = None;
    }

    /// Appends the parts one after another: all of them, or none.
    pub(crate) fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<JournalRange> {
        let Open { file, length, segment } = match &mut self.open {
            Some(open) => open,
            none => {
                let (path, number) = self.folder.next_file(self.kind)?;
                let file = private::open_file(&path, OpenOptions::new().append(true).create(true))?;
                let segment = Arc::new(Segment { path, number, needed: AtomicBool::new(false) });
                none.insert(Open { file, length: 0, segment })
            }
        };
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let written = write_all(file, parts).and_then(|()| match self.durability {
            Durability::Program => Ok(()),
            Durability::Power => file.sync_data(),
        });
        match written {
            Ok(()) => {
                let start = *length;
                *length += bytes as u64;
                Ok(JournalRange { segment: Arc::clone(segment), start, end: *length })
            }
            Err(error) => {
                // Half an entry would spoil the next one. If it cannot be removed, another file is begun.
                if file.set_len(*length).is_err() {
                    segment.leave();
                    self.open = None;
                }
                Err(error)
            }
        }
    }
}

fn write_all(file: &mut File, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
