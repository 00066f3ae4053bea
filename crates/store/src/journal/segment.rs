//! One journal file: append-only, and removed when the database contains all of it.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolhub_private_files::open_private_file;

use super::folder::{JournalFolder, JournalKind};
use crate::options::Durability;

/// Size from which a new file is started.
const MAX_SEGMENT_BYTES: u64 = 4 << 20;

/// A journal file. It exists while the journal writes to it or the database lacks some of its content.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    number: u32,
    /// The database rejected some of its content: the next store that is opened replays the file.
    needed: AtomicBool,
}

impl Segment {
    /// Its number among the files of the store.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Keeps the file for the next store that is opened.
    pub(crate) fn keep_for_replay(&self) {
        self.needed.store(true, Ordering::Relaxed);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if !self.needed.load(Ordering::Relaxed) {
            // Replaying a remaining file has no effect.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A range of a journal file. Keeps the file until the database contains the range.
#[derive(Debug, Clone)]
pub(crate) struct JournalRange {
    pub(crate) segment: Arc<Segment>,
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Offset after the last byte.
    pub(crate) end: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    segment: Arc<Segment>,
}

/// The end of a journal, to which content is appended.
#[derive(Debug)]
pub(crate) struct Tail {
    folder: Arc<JournalFolder>,
    kind: JournalKind,
    durability: Durability,
    open: Option<Open>,
}

impl Tail {
    pub(crate) fn new(folder: Arc<JournalFolder>, kind: JournalKind, durability: Durability) -> Self {
        Self { folder, kind, durability, open: None }
    }

    /// Whether the current file has reached its maximum size.
    pub(crate) fn is_long(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.length >= MAX_SEGMENT_BYTES)
    }

    /// Starts a new file with the next append.
    pub(crate) fn rotate(&mut self) {
        self.open = None;
    }

    /// Appends the parts consecutively: all of them, or none.
    pub(crate) fn append(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<JournalRange> {
        let Open { file, length, segment } = match &mut self.open {
            Some(open) => open,
            none => {
                let (path, number) = self.folder.next_file(self.kind)?;
                let file = open_private_file(&path, OpenOptions::new().append(true).create(true))?;
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
                // A partial entry would corrupt the next one. If it cannot be truncated, a new file is started.
                if file.set_len(*length).is_err() {
                    segment.keep_for_replay();
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

#[cfg(all(test, target_os = "linux"))]
impl Tail {
    /// Redirects appends to this file.
    pub(crate) fn append_to(&mut self, file: File) {
        let segment = Segment { path: PathBuf::new(), number: 0, needed: AtomicBool::new(true) };
        self.open = Some(Open { file, length: 0, segment: Arc::new(segment) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::owner::OwnerId;

    fn tail(folder: &std::path::Path, durability: Durability) -> Tail {
        Tail::new(Arc::new(JournalFolder::new(folder, OwnerId(1))), JournalKind::Intents, durability)
    }

    fn append(tail: &mut Tail, bytes: &[u8]) -> io::Result<JournalRange> {
        tail.append(&mut [IoSlice::new(&bytes[..1]), IoSlice::new(&bytes[1..])])
    }

    #[cfg(target_os = "linux")]
    const IN_CHILD: &str = "TOOLHUB_TEST_LIMITED_FILE_SIZE";

    /// A file size limit makes the kernel write a part of an entry and then fail. The limit applies to a whole
    /// process, so that this test runs itself in a child process.
    #[cfg(target_os = "linux")]
    #[test]
    fn failed_append_leaves_no_partial_entry() {
        if std::env::var_os(IN_CHILD).is_none() {
            // By default, the signal of the limit (SIGXFSZ) would end the process. A block has 512 or 1,024 bytes.
            let script = r#"trap '' XFSZ; ulimit -f 8; exec "$0" --exact --nocapture "$1""#;
            let name = "journal::segment::tests::failed_append_leaves_no_partial_entry";
            let child = std::process::Command::new("sh")
                .args(["-c", script])
                .arg(std::env::current_exe().unwrap())
                .arg(name)
                .env(IN_CHILD, "1")
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && stdout.contains("1 passed"), "{stdout}{child:?}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut tail = tail(folder.path(), Durability::Program);
        let first = append(&mut tail, b"first\n").unwrap();
        let error = append(&mut tail, &[b'x'; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let second = append(&mut tail, b"second\n").unwrap();
        assert_eq!((first.start, first.end, second.start, second.end), (0, 6, 6, 13));
        assert_eq!(first.segment.number(), second.segment.number());
        assert_eq!(std::fs::read(&second.segment.path).unwrap(), b"first\nsecond\n");
    }

    /// A file that cannot be truncated is kept for the next store, and the next entry is appended to a new one.
    #[test]
    fn append_that_cannot_be_rolled_back_starts_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = tail(folder.path(), Durability::Program);
        let first = append(&mut tail, b"first\n").unwrap();
        let path = first.segment.path.clone();
        tail.open.as_mut().unwrap().file = File::open(&path).unwrap();
        append(&mut tail, b"lost\n").unwrap_err();
        let second = append(&mut tail, b"second\n").unwrap();
        assert_eq!((second.start, second.end), (0, 7));
        assert_eq!(std::fs::read(&second.segment.path).unwrap(), b"second\n");
        drop(first);
        assert_eq!(std::fs::read(&path).unwrap(), b"first\n", "kept for the next store");
    }

    /// `/dev/null` accepts every write, and fails every `fdatasync`.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_power_durability_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, is_synced) in [(Durability::Program, false), (Durability::Power, true)] {
            let mut tail = tail(folder.path(), durability);
            tail.append_to(OpenOptions::new().append(true).open("/dev/null").unwrap());
            assert_eq!(append(&mut tail, b"entry\n").is_err(), is_synced, "{durability:?}");
        }
    }
}
