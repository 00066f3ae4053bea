//! The location of a folder and of its project.

use std::path::{Path, PathBuf};

use super::files;

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

impl FolderLocation {
    /// Whether a file lies directly in the folder: a config of it that was named on the command line applies to it.
    pub(super) fn contains_file(&self, file: &Path) -> bool {
        let parent = std::path::absolute(file).ok().and_then(|file| file.parent()?.canonicalize().ok());
        parent.as_ref() == Some(&self.folder)
    }
}

/// The folders of the project: the current one, and its parents up to the root of its repository. The user's home and its parents
/// belong to no project. A repository that another user created in a world-writable folder does not count.
pub(super) fn project_folders(here: &Path, home_dir: Option<&Path>) -> Vec<PathBuf> {
    let inside = |folder: &&Path| Some(*folder) != home_dir;
    let above: Vec<&Path> = here.ancestors().take_while(inside).collect();
    if above.is_empty() {
        return vec![here.to_owned()];
    }
    let has_repository = |folder: &&Path| {
        let git = folder.join(".git");
        git.exists() && !(files::is_open_to_all(folder) && files::is_foreign(&git))
    };
    let top = above.iter().position(has_repository).unwrap_or(0);
    above.into_iter().take(top + 1).map(Path::to_path_buf).collect()
}

/// Whether the data folder is inside a project, which could then contain its own list of trusted folders. The user's home is not
/// a project.
pub(super) fn contains_data_folder(folder: &Path, data: &Path, home_dir: Option<&Path>) -> bool {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let data = data.ancestors().find_map(|part| part.canonicalize().ok()).unwrap_or(data);
    data.starts_with(folder) && !home_dir.is_some_and(|home_dir| home_dir.starts_with(folder))
}
