//! One file of a journal: appended to, and removed when all that it says is in the database.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::owner;
use crate::options::Durability;
use crate::owner::OwnerId;
use crate::private;

/// A file that is longer than this is followed by another.
const LONG: u64 = 4 << 20;

/// The file, for as long as somebody holds it: the journal that writes it, or what stands in it and nowhere else.
#[derive(Debug)]
pub(in crate::sqlite) struct Segment {
    path: PathBuf,
    /// Something in it could not be moved into the database: whoever opens the store next does it.
    needed: AtomicBool,
}

impl Segment {
    /// Says that the file must stay.
    pub(in crate::sqlite) fn leave(&self) {
        self.needed.store(true, Ordering::Relaxed);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if !self.needed.load(Ordering::Relaxed) {
            // What is left is read again and changes nothing.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The end of a journal, where lines are added.
#[derive(Debug)]
pub(super) struct Tail {
    folder: PathBuf,
    owner: OwnerId,
    durability: Durability,
    count: u32,
    open: Option<(File, u64, Arc<Segment>)>,
}

impl Tail {
    pub(super) fn new(folder: &Path, owner: OwnerId, durability: Durability) -> Self {
        Self { folder: folder.to_owned(), owner, durability, count: 0, open: None }
    }

    /// Adds lines, all or none; the file they are in.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<Arc<Segment>> {
        let (file, length, segment) = match &mut self.open {
            Some(open) if open.1 < LONG => open,
            open => {
                let path = owner::journal(&self.folder, self.owner, self.count);
                self.count += 1;
                let file = private::open_file(&path, OpenOptions::new().append(true).create(true))?;
                open.insert((file, 0, Arc::new(Segment { path, needed: AtomicBool::new(false) })))
            }
        };
        let written = file.write_all(lines).and_then(|()| match self.durability {
            Durability::Program => Ok(()),
            Durability::Power => file.sync_data(),
        });
        match written {
            Ok(()) => {
                *length += lines.len() as u64;
                Ok(Arc::clone(segment))
            }
            Err(error) => {
                // Half a line would spoil the next one. Where it stays, another file is begun.
                if file.set_len(*length).is_err() {
                    segment.leave();
                    self.open = None;
                }
                Err(error)
            }
        }
    }
}
