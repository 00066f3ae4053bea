//! Programs of the system that the hub starts for itself, such as the browser opener and the keyring's program.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Searches `PATH` for a program. Relative folders and folders inside the current one are skipped: they may belong to a cloned
/// project, whose programs run only after `toolhub trust`.
pub fn system_program(name: &str) -> Option<PathBuf> {
    let current = env::current_dir().ok();
    find(name, &env::var_os("PATH")?, current.as_deref())
}

fn find(name: &str, path: &OsStr, current: Option<&Path>) -> Option<PathBuf> {
    // The path of the current folder has no symbolic links, so that of the other folder must have none.
    let inside = |folder: &Path| {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        current.is_some_and(|current| current.parent().is_some() && folder.starts_with(current))
    };
    env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !inside(folder))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_current_folder_are_not_found() {
        let system = tempfile::tempdir().unwrap();
        let clone = tempfile::tempdir().unwrap();
        let clone = clone.path().canonicalize().unwrap();
        let bin = clone.join("bin");
        std::fs::create_dir(&bin).unwrap();
        for folder in [&clone, &bin] {
            std::fs::write(folder.join("opener"), "").unwrap();
        }
        let found = |folders: &[&Path]| find("opener", &env::join_paths(folders).unwrap(), Some(&clone));
        assert_eq!(found(&[Path::new("bin"), Path::new(""), Path::new("."), &bin, &clone]), None);
        std::fs::write(system.path().join("opener"), "").unwrap();
        assert_eq!(found(&[Path::new("."), &bin, system.path()]), Some(system.path().join("opener")));
        // A shell in the root folder hides nothing.
        let path = env::join_paths([system.path()]).unwrap();
        assert_eq!(find("opener", &path, Some(Path::new("/"))), Some(system.path().join("opener")));
    }
}
