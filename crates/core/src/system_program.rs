//! Programs of the system that the hub starts for itself, such as the browser opener and the keyring's program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Prefixes of system installations, whose programs are used although the current folder may be one of these.
const SYSTEM_FOLDERS: [&str; 5] = ["/", "/usr", "/usr/local", "/opt", "/nix"];

/// Searches `PATH` for a program. Relative folders and folders inside the current project are skipped: they may belong to a clone,
/// whose programs run only after `toolhub trust`.
pub fn system_program(name: &str) -> Option<PathBuf> {
    let project = env::current_dir().ok().map(|current| project_root(&current, env::home_dir().as_deref()));
    find(name, &env::var_os("PATH")?, project.as_deref())
}

fn find(name: &str, path: &OsStr, project: Option<&Path>) -> Option<PathBuf> {
    let outside =
        |folder: &PathBuf| folder.is_absolute() && !project.is_some_and(|project| is_inside(folder, project));
    env::split_paths(path).filter(outside).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The value of `PATH` without relative folders and those inside `project`.
pub fn path_outside(path: &OsStr, project: &Path) -> OsString {
    let outside = |folder: &PathBuf| folder.is_absolute() && !is_inside(folder, project);
    // Fails only if a folder contains the separator, which a folder that was split cannot.
    env::join_paths(env::split_paths(path).filter(outside)).unwrap_or_default()
}

fn is_inside(folder: &Path, project: &Path) -> bool {
    // The path of the project has no symbolic links, so that of the folder must have none.
    let canonical_folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    // A folder without `.` and `..` that does not exist yet may be created later.
    let is_in_project = |folder: &Path| folder.starts_with(project);
    !SYSTEM_FOLDERS.iter().any(|system| Path::new(system) == project)
        && (is_in_project(&canonical_folder) || is_in_project(folder))
}

/// The root of the repository around a folder; the folder itself if there is none. The user's home is no project.
fn project_root(folder: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.and_then(|home| home.canonicalize().ok());
    let above =
        folder.ancestors().take_while(|above| !home.as_ref().is_some_and(|home| home.starts_with(above)));
    let root = above.filter(|above| above.join(".git").exists()).last();
    root.unwrap_or(folder).to_path_buf()
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
        // Folders of the repository around the current folder.
        std::fs::create_dir_all(clone.join("sub/inner")).unwrap();
        assert_eq!(project_root(&clone.join("sub/inner"), None), clone.join("sub/inner"));
        std::fs::create_dir(clone.join(".git")).unwrap();
        assert_eq!(project_root(&clone.join("sub/inner"), None), clone);
        assert_eq!(project_root(&clone.join("sub/inner"), Some(&clone)), clone.join("sub/inner"));
        let path = env::join_paths([Path::new("bin"), &bin, system.path(), &clone.join("later")]).unwrap();
        assert_eq!(path_outside(&path, &clone), system.path().as_os_str());
    }
}
