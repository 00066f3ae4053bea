//! The text files of the project: all files that git tracks, and untracked files that are not ignored.
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::run;

pub(super) struct Source {
    /// Relative to the root of the workspace.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }
}

pub(super) fn read_all(root: &Path) -> Result<Vec<Source>> {
    let mut git = run::program("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = run::read(&mut git).context("tidy asks git which files are the project's")?;
    // A file with a merge conflict is listed once per side.
    let paths: BTreeSet<&str> = listing.split_terminator('\0').collect();
    paths.into_iter().filter_map(|path| read(root, path).transpose()).collect()
}

/// Returns `None` for binary files, and for files in the index that do not exist on disk.
fn read(root: &Path, path: &str) -> Result<Option<Source>> {
    let full_path = root.join(path);
    if !fs::symlink_metadata(&full_path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let bytes = fs::read(&full_path).with_context(|| format!("cannot read `{path}`"))?;
    if bytes.contains(&0) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Source { path: path.into(), text }))
}
