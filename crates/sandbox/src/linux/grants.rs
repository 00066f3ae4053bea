//! Everything that a confined process may open, as open descriptors. Only this module turns a path into a grant.
//!
//! Possible grants: system files (`system_files`), the file and installation of a program (`installation`), the code
//! itself (`SandboxPolicy::own`), the configured paths (`SandboxPolicy::read`, `SandboxPolicy::write`) and the private folder.

use std::path::{Component, Path, PathBuf};

use super::installation::{self, ExcludedFolders};
use super::path_handle::PathHandle;
use super::system_files;
use crate::error::SandboxError;
use crate::policy::SandboxPolicy;

/// A path that may be opened.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) path_handle: PathHandle,
    /// The path by which the process refers to it; it may contain symbolic links.
    pub(super) named: PathBuf,
}

/// All grants except system files.
#[derive(Debug)]
pub(super) struct Grants {
    pub(super) read: Vec<Grant>,
    pub(super) write: Vec<Grant>,
    /// Symbolic links that lead to grants, to be recreated in Bubblewrap's file system.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Grants {
    /// Opens the grants of `policy`; `private` is the private folder.
    pub(super) fn open(policy: &SandboxPolicy, private: &Path) -> Result<Self, SandboxError> {
        let excluded = ExcludedFolders::new(&policy.protected);
        let mut read = Vec::new();
        let mut links = Vec::new();
        for path in &policy.own {
            read.push(own(path, &excluded)?);
        }
        for program in &policy.programs {
            let refused = |refusal| SandboxError::Program { path: program.path.clone(), refusal };
            let needs = installation::needs(program, &excluded).map_err(refused)?;
            read.extend(needs.read.into_iter().map(|(path_handle, named)| Grant { path_handle, named }));
            links.extend(needs.links);
        }
        for path in &policy.read {
            read.push(of_owner(path, &excluded)?);
        }
        let mut write = Vec::new();
        for path in &policy.write {
            write.push(of_owner(path, &excluded)?);
        }
        write.push(by_name(private, PathHandle::follow)?);
        // Folders precede their content, so that a later mount does not hide an earlier one.
        for some in [&mut read, &mut write] {
            some.sort_by(|one, other| {
                one.path_handle.path().cmp(other.path_handle.path()).then(one.named.cmp(&other.named))
            });
            some.dedup_by(|one, other| {
                one.path_handle.identity() == other.path_handle.identity() && one.named == other.named
            });
        }
        links.sort();
        links.dedup();
        Ok(Self { read, write, links })
    }

    /// All readable paths, for messages.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let both = |grant: &Grant| [grant.path_handle.path().to_path_buf(), grant.named.clone()];
        self.read.iter().chain(&self.write).flat_map(both).chain(system_files::readable()).collect()
    }
}

fn by_name(path: &Path, open: impl Fn(&Path) -> std::io::Result<PathHandle>) -> Result<Grant, SandboxError> {
    let grant = |source| SandboxError::Grant { path: path.to_path_buf(), source };
    let named = std::path::absolute(path).map_err(grant)?;
    Ok(Grant { path_handle: open(&named).map_err(grant)?, named })
}

/// Opens a path of the confined code itself, which must be canonical.
fn own(path: &Path, excluded: &ExcludedFolders) -> Result<Grant, SandboxError> {
    let grant = by_name(path, PathHandle::exact)?;
    too_wide(&grant, excluded).map_or(Ok(grant), Err)
}

/// Opens a configured path. Rejects a link to a folder that is too wide, such as `/` or the home folder.
fn of_owner(path: &Path, excluded: &ExcludedFolders) -> Result<Grant, SandboxError> {
    let grant = by_name(path, PathHandle::follow)?;
    if grant.path_handle.path() == without_dots(&grant.named) {
        return Ok(grant);
    }
    too_wide(&grant, excluded).map_or(Ok(grant), Err)
}

fn too_wide(grant: &Grant, excluded: &ExcludedFolders) -> Option<SandboxError> {
    excluded.is_too_wide(&grant.path_handle).then(|| SandboxError::TooWide {
        path: grant.named.clone(),
        target: grant.path_handle.path().to_path_buf(),
    })
}

/// Resolves `.` and `..` lexically.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
#[path = "grants_properties.rs"]
mod properties;
