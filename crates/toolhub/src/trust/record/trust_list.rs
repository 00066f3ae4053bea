//! The list of trusted folders: `trust.json` in the data folder, replaced atomically, readable only by its owner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_private_files::{SyncMode, open_private_file, replace_private};
use toolhub_store::private_file;

use super::edit_record::{self, OwnEditRecord};
use crate::trust::files;

/// A trusted folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The digest of the reviewed state.
    pub sha256: String,
    /// The user who trusted it; `None` on systems without user ids.
    pub uid: Option<u32>,
    /// When it was trusted, in seconds since 1970.
    pub at: u64,
    /// A short digest of each file by its path, for naming changed files. The decision depends on `sha256` only.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What the owner's own servers load from the folder: a digest of the files by a digest of the entry.
    #[serde(default, rename = "own")]
    pub user_servers: BTreeMap<String, String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    folders: BTreeMap<String, TrustRecord>,
    /// Edits of the owner in folders that are trusted for one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_edits: Vec<OwnEditRecord>,
}

const VERSION: u32 = 1;

/// The trusted folders of a data folder.
#[derive(Debug, Clone)]
pub struct TrustList {
    data_dir: PathBuf,
    /// The records by canonical path.
    pub folders: BTreeMap<String, TrustRecord>,
    own_edits: Vec<OwnEditRecord>,
}

impl TrustList {
    /// Reads the list of a data folder. A list that is unreadable, or that another user owns or can write to, counts as empty.
    pub fn read(data_dir: &Path) -> Self {
        let TrustFile { folders, own_edits, .. } = stored_file(data_dir).unwrap_or_default();
        Self { data_dir: data_dir.to_owned(), folders, own_edits }
    }

    /// Records an edit of the owner.
    pub(super) fn add_own_edit(&mut self, edit: OwnEditRecord) -> Result<(), LocalizedText> {
        self.write(|stored| edit_record::add(&mut stored.own_edits, edit))
    }

    /// Whether edits of the owner lead from one state of a folder's config files to another.
    pub(in crate::trust) fn has_own_edits(&self, folder: &Path, before: &str, after: &str) -> bool {
        folder.to_str().is_some_and(|folder| edit_record::connect(&self.own_edits, folder, before, after))
    }

    /// Changes the list under an advisory lock and writes it. A list that cannot be read is not replaced.
    pub fn change(
        &mut self,
        edit: impl FnOnce(&mut BTreeMap<String, TrustRecord>),
    ) -> Result<(), LocalizedText> {
        self.write(|stored| edit(&mut stored.folders))
    }

    fn write(&mut self, edit: impl FnOnce(&mut TrustFile)) -> Result<(), LocalizedText> {
        let failed = |error: std::io::Error| {
            let file = self.data_dir.join("trust.json");
            let file = file.display();
            LocalizedText::new(
                format!("`{file}` cannot be written: {error}"),
                format!("无法写入 `{file}`：{error}"),
            )
        };
        let refused = |error: private_file::PrivateError| {
            LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))
        };
        private_file::prepare(&self.data_dir).map_err(refused)?;
        let lock = self.data_dir.join("trust.lock");
        let mut options = std::fs::OpenOptions::new();
        let lock = open_private_file(&lock, options.create(true).truncate(false).write(true));
        let _lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(failed)?;
        let mut stored = TrustFile { version: VERSION, ..stored_file(&self.data_dir)? };
        edit(&mut stored);
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| failed(error.into()))?;
        replace_private(&self.data_dir.join("trust.json"), &text, SyncMode::File).map_err(failed)?;
        self.folders = stored.folders;
        self.own_edits = stored.own_edits;
        Ok(())
    }
}

/// The stored list. Empty if there is none, and for a list that is damaged, or that another user owns or can write to. Fails
/// if the list cannot be read.
fn stored_file(data_dir: &Path) -> Result<TrustFile, LocalizedText> {
    let file = data_dir.join("trust.json");
    let stored = files::read(&file)?;
    let mine = stored.filter(|(_, state)| state.owner == files::current_user() && !writable_by_others(&file));
    let mine = mine.filter(|_| is_mine(data_dir));
    let stored = mine.and_then(|(bytes, _)| serde_json::from_slice::<TrustFile>(&bytes).ok());
    let stored = stored.filter(|stored| stored.version == VERSION);
    Ok(stored.unwrap_or_default())
}

/// Whether the folder belongs to the current user and others cannot write to it.
fn is_mine(folder: &Path) -> bool {
    let found = std::fs::metadata(folder);
    found.is_ok_and(|found| files::owner_of(&found) == files::current_user()) && !writable_by_others(folder)
}

fn writable_by_others(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o022 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> TrustRecord {
        TrustRecord {
            sha256: "ab".to_owned(),
            uid: files::current_user(),
            at: 1,
            files: BTreeMap::new(),
            user_servers: BTreeMap::new(),
        }
    }

    #[test]
    fn trust_list_is_private_and_ignored_if_writable_by_others() {
        let data_dir = tempfile::tempdir().unwrap();
        let data_dir = data_dir.path().join("data");
        let mut list = TrustList::read(&data_dir);
        list.change(|folders| drop(folders.insert("/a".to_owned(), record()))).unwrap();
        assert_eq!(TrustList::read(&data_dir).folders.get("/a"), Some(&record()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = data_dir.join("trust.json");
            let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&file), mode(&data_dir)), (0o600, 0o700));
            assert_eq!(mode(&data_dir.join("trust.lock")), 0o600);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
            assert!(TrustList::read(&data_dir).folders.is_empty());
        }
        std::fs::write(data_dir.join("trust.json"), "{").unwrap();
        assert!(TrustList::read(&data_dir).folders.is_empty());
    }

    #[test]
    fn unreadable_trust_list_is_not_replaced() {
        let data_dir = tempfile::tempdir().unwrap();
        let file = data_dir.path().join("trust.json");
        let length = files::MAX_CONFIG_BYTES + 1;
        std::fs::File::create(&file).unwrap().set_len(length).unwrap();
        let mut list = TrustList::read(data_dir.path());
        assert!(list.folders.is_empty());
        assert!(list.change(|folders| drop(folders.insert("/a".to_owned(), record()))).is_err());
        assert_eq!(file.metadata().unwrap().len(), length);
    }
}
