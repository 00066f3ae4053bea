//! Finds the file of a command without extension on Windows: `npx` is `npx.cmd`, while the standard library only adds `.exe`.
//! Other systems look a command up unchanged.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The extensions that can be started directly, including batch files. Others in `PATHEXT` need an interpreter.
const EXECUTABLE_EXTENSIONS: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// The file of `command` on Windows: the first match by the folders of `path` and the extensions of `PATHEXT`. Returns `None`
/// if the command has an extension, or if there is no such file.
pub fn find_executable(command: &str, path: &OsStr) -> Option<PathBuf> {
    let written = Path::new(command)
        .extension()
        .is_some_and(|ending| is_executable_extension(&ending.to_string_lossy()));
    if command.is_empty() || written {
        return None;
    }
    let executable_extensions = executable_extensions(std::env::var_os("PATHEXT"));
    let in_folder = |file: PathBuf| {
        let with = |ending: &String| {
            let mut name = file.clone().into_os_string();
            name.push(".");
            name.push(ending);
            PathBuf::from(name)
        };
        executable_extensions.iter().map(with).find(|file| file.is_file())
    };
    if command.contains(['/', '\\']) {
        return in_folder(command.into());
    }
    // A relative folder would be resolved against the current folder, which may belong to an untrusted project.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(command)).find_map(in_folder)
}

/// The extensions in the order of `PATHEXT`, in lower case and without their dots.
fn executable_extensions(pathext: Option<OsString>) -> Vec<String> {
    let listed = pathext.map(|list| list.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let listed = listed.split(';').map(|ending| ending.trim_start_matches('.').to_owned());
    let extensions: Vec<String> = listed.filter(|ending| is_executable_extension(ending)).collect();
    if extensions.is_empty() { EXECUTABLE_EXTENSIONS.map(str::to_owned).to_vec() } else { extensions }
}

fn is_executable_extension(ending: &str) -> bool {
    EXECUTABLE_EXTENSIONS.iter().any(|extension| extension.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_extensions_by_pathext() {
        for (pathext, expect) in [
            (Some(".COM;.EXE;.BAT;.CMD;.VBS;.JS"), &["com", "exe", "bat", "cmd"][..]),
            (Some(".CMD;.EXE"), &["cmd", "exe"]),
            (Some(".PY"), &["com", "exe", "bat", "cmd"]),
            (None, &["com", "exe", "bat", "cmd"]),
        ] {
            assert_eq!(executable_extensions(pathext.map(Into::into)), expect, "{pathext:?}");
        }
    }

    #[test]
    fn finds_batch_files_by_name_without_extension() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in [one.path().join("npx"), two.path().join("npx.cmd"), two.path().join("node.exe")] {
            std::fs::write(file, "").unwrap();
        }
        let path = std::env::join_paths([Path::new("relative"), one.path(), two.path()]).unwrap();
        assert_eq!(find_executable("npx", &path), Some(two.path().join("npx.cmd")));
        assert_eq!(find_executable("node", &path), Some(two.path().join("node.exe")));
        let full_path = two.path().join("npx");
        let found = find_executable(full_path.to_str().unwrap(), OsStr::new(""));
        assert_eq!(found, Some(two.path().join("npx.cmd")));
        for none in ["npx.cmd", "NODE.EXE", "uvx", ""] {
            assert_eq!(find_executable(none, &path), None, "{none}");
        }
    }
}
