//! The location of a folder and of its project.

use std::path::PathBuf;

/// The location of a scanned folder.
#[derive(Debug, Clone)]
pub(crate) struct FolderLocation {
    /// The canonical path of the folder.
    pub(crate) folder: PathBuf,
    /// The root of its project.
    pub(crate) project: PathBuf,
    /// Whether it is the user's home, whose skills are the user's own.
    pub(crate) is_home: bool,
}
