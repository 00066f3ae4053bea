//! A journal in a private file: one JSON object per line, locked while a run uses it.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhub_core::BoxFuture;
use toolhub_private_files::open_private_file;

use crate::journal::{EntryDurability, Journal, JournalEntry, RunHeader};
use crate::protocol::append_line;

/// Bytes of entries that are buffered.
const MAX_BUFFERED_BYTES: usize = 64 << 10;

/// A journal in a file with mode 0600.
#[derive(Debug)]
pub struct FileJournal {
    file: Arc<LockedFile>,
    entries: Vec<JournalEntry>,
    /// Whole lines that are not in the file yet.
    buffer: Vec<u8>,
}

/// A file that is unlocked when its last user is gone. Closing it would not be enough: a process that was started
/// meanwhile has a copy of the descriptor until it executes its program, and the lock belongs to all copies.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another run uses it.
    #[error("the journal `{}` is in use by another run", .0.display())]
    InUse(PathBuf),
    /// A line is not an entry.
    #[error("line {line} of the journal `{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file cannot be opened or read.
    #[error("the journal `{}` cannot be opened", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
}

impl FileJournal {
    /// Opens or creates a journal. A last line that a crash cut off is removed: `append` had not returned for it, so
    /// its call was not sent, or its answer was not used.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let file = open_private_file(path, &mut options).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let locked = LockedFile(file);
        let mut file = &locked.0;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut entries = Vec::new();
        let lines = bytes.get(..complete).unwrap_or_default().split(|byte| *byte == b'\n');
        for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let damaged = |_| JournalError::Damaged { path: path.to_owned(), line: index + 1 };
            entries.push(serde_json::from_slice(line).map_err(damaged)?);
        }
        // A file without a single whole line was not written by a crash of this program alone, and is kept as it is.
        if complete > 0 && complete < bytes.len() {
            file.set_len(complete as u64).map_err(failed)?;
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self { file: Arc::new(locked), entries, buffer: Vec::new() })
    }
}

impl FileJournal {
    /// The header of the run that wrote it, before `take_entries` is called.
    pub fn header(&self) -> Option<&RunHeader> {
        match self.entries.first()? {
            JournalEntry::Started(header) => Some(header),
            _ => None,
        }
    }
}

impl FileJournal {
    /// The tools of the calls that were begun, before `take_entries` is called.
    pub fn begun(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            JournalEntry::Begun(call) => Some(call.tool.as_str()),
            _ => None,
        })
    }
}

impl Journal for FileJournal {
    fn take_entries(&mut self) -> Vec<JournalEntry> {
        std::mem::take(&mut self.entries)
    }

    fn append<'a>(
        &'a mut self,
        entry: &'a JournalEntry,
        durability: EntryDurability,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            append_line(&mut self.buffer, entry)?;
            match durability {
                EntryDurability::Buffered if self.buffer.len() < MAX_BUFFERED_BYTES => Ok(()),
                EntryDurability::Buffered | EntryDurability::Process => self.flush(),
                EntryDurability::Disk => {
                    let (file, lines) = (Arc::clone(&self.file), std::mem::take(&mut self.buffer));
                    let write = move || (&file.0).write_all(&lines).and_then(|()| file.0.sync_data());
                    let written = tokio::task::spawn_blocking(write).await;
                    written.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
                }
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = (&self.file.0).write_all(&self.buffer);
        self.buffer.clear();
        // The buffer of a large entry is not kept.
        self.buffer.shrink_to(MAX_BUFFERED_BYTES);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::CallRecord;
    use toolhub_core::RawJson;

    fn started() -> JournalEntry {
        JournalEntry::Started(RunHeader {
            digest: "d".to_owned(),
            seed: u64::MAX,
            clock: -1,
            arguments: None,
        })
    }

    fn begun() -> JournalEntry {
        let arguments = RawJson::parse("{\n\"a\": 1.50}").unwrap();
        JournalEntry::Begun(CallRecord { id: 1, tool: "t".to_owned(), arguments })
    }

    #[tokio::test]
    async fn entries_survive_and_a_torn_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = FileJournal::open(&path).unwrap();
        assert!(journal.take_entries().is_empty());
        let length = || path.metadata().unwrap().len();
        journal.append(&started(), EntryDurability::Buffered).await.unwrap();
        assert_eq!(length(), 0);
        journal.append(&begun(), EntryDurability::Disk).await.unwrap();
        let written = length();
        journal.append(&begun(), EntryDurability::Buffered).await.unwrap();
        assert_eq!(length(), written, "a dropped journal loses what is buffered");
        assert!(matches!(FileJournal::open(&path), Err(JournalError::InUse(_))));
        drop(journal);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let whole = std::fs::read(&path).unwrap();
        for torn in ["{\"answered\":{\"id\":1,", "\u{fffd}", "{"] {
            std::fs::write(&path, [&whole[..], torn.as_bytes()].concat()).unwrap();
            let mut journal = FileJournal::open(&path).unwrap();
            let entries = journal.take_entries();
            assert_eq!(entries.len(), 2, "{torn}");
            let JournalEntry::Begun(begun) = &entries[1] else { panic!() };
            assert_eq!(begun.arguments.get(), "{ \"a\": 1.50}");
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
    }

    #[tokio::test]
    async fn buffered_entries_are_stored_in_order_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = FileJournal::open(&path).unwrap();
        journal.append(&started(), EntryDurability::Buffered).await.unwrap();
        journal.append(&begun(), EntryDurability::Buffered).await.unwrap();
        journal.flush().unwrap();
        let stored = path.metadata().unwrap().len();
        let mut count = 2;
        while path.metadata().unwrap().len() == stored {
            journal.append(&begun(), EntryDurability::Buffered).await.unwrap();
            count += 1;
            assert!(count < 10_000, "the buffer is bounded");
        }
        drop(journal);
        let entries = FileJournal::open(&path).unwrap().take_entries();
        assert_eq!(entries.len(), count);
        assert!(matches!(entries[0], JournalEntry::Started(_)));
    }

    #[test]
    fn rejects_damaged_lines_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "{\"woken\":{\"id\":1}}\nnot json\n").unwrap();
        assert!(matches!(FileJournal::open(&path), Err(JournalError::Damaged { line: 2, .. })));
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert!(matches!(FileJournal::open(&link), Err(JournalError::Io { .. })));
        }
    }
}
