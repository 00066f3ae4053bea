//! The files of a folder that changed since it was trusted. Informational: trust is decided by the digest of the whole folder.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use toolhub_core::hex;

use super::trust_list::TrustRecord;
use crate::trust::scan::FolderScan;

/// Bytes of a file's digest that are stored.
const SHORT: usize = 8;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path relative to the folder.
    pub file: String,
    /// How it changed.
    pub kind: ChangeKind,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist before.
    Added,
    /// Its bytes, owner, mode or link target differ.
    Modified,
    /// It no longer exists, or no entry names it any more.
    Removed,
}

impl ChangeKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Removed => "removed",
        }
    }
}

/// A short digest of each file, by its path relative to the folder.
pub(in crate::trust) fn files_of(scan: &FolderScan) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, Sha256> = BTreeMap::new();
    for ((part, path), state) in &scan.parts {
        let name = path.strip_prefix(&scan.location.folder).unwrap_or(path).display().to_string();
        let all = files.entry(name).or_default();
        all.update([*part as u8, u8::from(state.executable)]);
        all.update(state.sha256);
        all.update(state.owner.unwrap_or_default().to_le_bytes());
        all.update(state.target.as_ref().map(|path| path.as_os_str().as_encoded_bytes()).unwrap_or_default());
    }
    let short = |all: Sha256| hex::encode(all.finalize().get(..SHORT).unwrap_or_default());
    files.into_iter().map(|(name, all)| (name, short(all))).collect()
}

/// The files that changed since the folder was trusted.
pub(in crate::trust) fn since(record: &TrustRecord, scan: &FolderScan) -> Vec<FileChange> {
    let (before, now) = (&record.files, files_of(scan));
    let change = |file: &String, kind| FileChange { file: file.clone(), kind };
    let differs = |(file, digest): (&String, &String)| match before.get(file) {
        None => Some(change(file, ChangeKind::Added)),
        Some(known) if known != digest => Some(change(file, ChangeKind::Modified)),
        Some(_) => None,
    };
    let removed = before.keys().filter(|file| !now.contains_key(*file));
    now.iter().filter_map(differs).chain(removed.map(|file| change(file, ChangeKind::Removed))).collect()
}
