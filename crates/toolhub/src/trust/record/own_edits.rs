//! Edits that the owner makes with a command, or in the console, to the config files of a folder that is trusted for one run. They
//! are recorded in the list of trusted folders, so that a running `serve` uses them, but no other change of these files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;

use super::edit_record::OwnEditRecord;
use super::trust_list::TrustList;
use crate::trust::files::{self, FileState};
use crate::trust::scan::{CONFIG, SERVERS, SHARED_SERVERS};

/// An edit that is being made.
#[derive(Debug)]
pub struct OwnEdit {
    folder: PathBuf,
    data: PathBuf,
    before: BTreeMap<PathBuf, FileState>,
}

impl OwnEdit {
    /// An edit of a folder whose config files had these states before.
    pub(in crate::trust) fn new(folder: &Path, data: &Path, before: BTreeMap<PathBuf, FileState>) -> Self {
        Self { folder: folder.to_owned(), data: data.to_owned(), before }
    }

    /// Records the edit after `edited` was written, unless another config file changed meanwhile.
    pub fn finish(self, edited: &[&Path]) -> Result<(), LocalizedText> {
        let edited: Vec<PathBuf> = edited.iter().map(|file| self.folder.join(file)).collect();
        let now = config_files(&self.folder)?;
        let others = |files: &BTreeMap<PathBuf, FileState>| -> BTreeMap<PathBuf, FileState> {
            let others = files.iter().filter(|(file, _)| !edited.contains(file));
            others.map(|(file, state)| (file.clone(), state.clone())).collect()
        };
        let Some(folder) = self.folder.to_str().filter(|_| others(&self.before) == others(&now)) else {
            return Ok(());
        };
        let (before, after) = (files::digest_of(&self.before), files::digest_of(&now));
        if before == after {
            return Ok(());
        }
        TrustList::read(&self.data).add_own_edit(OwnEditRecord { folder: folder.to_owned(), before, after })
    }
}

/// The config files of a folder, each with its current state.
pub(in crate::trust) fn config_files(folder: &Path) -> Result<BTreeMap<PathBuf, FileState>, LocalizedText> {
    let mut found = BTreeMap::new();
    for name in [CONFIG, SERVERS, SHARED_SERVERS] {
        // The servers file is read only if there are settings.
        if name == SERVERS && found.is_empty() {
            continue;
        }
        let file = folder.join(name);
        if let Some(state) = files::hash(&file)? {
            found.insert(file, state);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_is_recorded_only_if_no_other_file_changed() {
        let (project, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (folder, data) = (project.path().canonicalize().unwrap(), data.path().join("data"));
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let edit = || OwnEdit::new(&folder, &data, config_files(&folder).unwrap());
        let digest = || files::digest_of(&config_files(&folder).unwrap());
        let is_recorded = |before: &str| TrustList::read(&data).has_own_edits(&folder, before, &digest());
        write(".mcp.json", "{}");
        let start = digest();
        let first = edit();
        write(".mcp.json", "{\"mcpServers\": {}}");
        assert!(!is_recorded(&start));
        first.finish(&[Path::new(".mcp.json")]).unwrap();
        assert!(is_recorded(&start));
        let middle = digest();
        let second = edit();
        write(".mcp.json", "{}");
        write("toolhub.toml", "");
        second.finish(&[Path::new(".mcp.json")]).unwrap();
        assert!(!is_recorded(&start) && !is_recorded(&middle));
    }
}
