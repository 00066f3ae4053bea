//! Hashes every file below a folder, for launches whose files cannot be determined. Files that `git` writes at each commit are
//! omitted; its configuration, hooks and everything else in `.git` are not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;

use crate::trust::files::{self, FileState};

/// The maximum number and total size of the files of a project that is bound as a whole.
const MAX_TREE_FILES: usize = 10_000;
const MAX_TREE_BYTES: u64 = 256 << 20;
/// Binary files that `git` itself writes in `.git`.
const GIT_BINARIES: [&str; 2] = ["index", "index.lock"];
/// Text files that `git` itself writes in `.git`. They contain names and messages that others choose, so that a shell could be
/// made to run them.
const GIT_FILES: [&str; 12] = [
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "packed-refs",
    "description",
    "shallow",
    "gc.log",
];
/// Folders of `.git` with files that `git` itself writes.
const GIT_FOLDERS: [&str; 2] = ["refs", "logs"];

/// Folders of installed packages and build output. They are not bound to task runners, which start what they like in a project;
/// its review says so.
pub(in crate::trust) const INSTALLED: [&str; 4] = ["node_modules", "target", ".venv", "venv"];
/// Folders of a package that contain other packages.
const PACKAGES: [&str; 1] = ["node_modules"];

/// The files below a folder that are not bound, besides the binary files that `git` itself writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omitted {
    Nothing,
    /// Text files that `git` itself writes.
    GitTexts,
    /// These, and other packages in a package.
    Packages,
    /// These, and installed packages and build output.
    Installed,
}

impl Omitted {
    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Nothing | Self::GitTexts => &[],
            Self::Packages => &PACKAGES,
            Self::Installed => &INSTALLED,
        }
    }
}

/// Why the files below a folder are not known.
#[derive(Debug)]
pub(super) enum TreeError {
    /// There are more than the limits allow.
    TooLarge,
    Unreadable(LocalizedText),
}

impl From<LocalizedText> for TreeError {
    fn from(why: LocalizedText) -> Self {
        Self::Unreadable(why)
    }
}

/// Adds the state of every file below the folders, except those that are omitted. Links are followed; each folder is scanned once.
pub(super) fn add(
    roots: impl IntoIterator<Item = PathBuf>,
    omitted: Omitted,
    found: &mut BTreeMap<PathBuf, FileState>,
) -> Result<(), TreeError> {
    let mut waiting: Vec<PathBuf> = roots.into_iter().collect();
    let (mut seen, mut bytes) = (BTreeSet::new(), 0_u64);
    while let Some(folder) = waiting.pop() {
        let Ok(real) = folder.canonicalize() else { continue };
        if !seen.insert(real) {
            continue;
        }
        let entries = std::fs::read_dir(&folder).map_err(|error| files::unreadable(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| files::unreadable(&folder, &error))?;
            let path = entry.path();
            let is_omitted = |name: &&str| entry.file_name() == **name;
            if omitted.folders().iter().any(is_omitted) && path.is_dir() {
                continue;
            }
            let kind = entry.file_type().map_err(|error| files::unreadable(&path, &error))?;
            if kind.is_symlink() && path.is_dir() {
                let state = files::link(&path);
                found.insert(path.clone(), state);
                waiting.push(path);
            } else if kind.is_dir() {
                waiting.push(path);
            } else if path.is_file() && !is_written_by_git(&path, omitted != Omitted::Nothing) {
                bytes = bytes.saturating_add(std::fs::metadata(&path).map_or(0, |about| about.len()));
                if bytes <= MAX_TREE_BYTES
                    && let Some(state) = files::hash(&path)?
                {
                    found.insert(path, state);
                }
            }
            if found.len() + waiting.len() > MAX_TREE_FILES || bytes > MAX_TREE_BYTES {
                return Err(TreeError::TooLarge);
            }
        }
    }
    Ok(())
}

/// Whether `git` itself writes the file: a binary one, or any. Executable files do not count.
fn is_written_by_git(file: &Path, any: bool) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let Some(at) = parts.iter().rposition(|part| *part == ".git") else { return false };
    let inside = parts.get(at + 1..).unwrap_or_default();
    let known = match inside {
        [name] => GIT_BINARIES.contains(name) || (any && GIT_FILES.contains(name)),
        ["objects", folder, name] => is_object(folder, name),
        [folder, .., _] => any && GIT_FOLDERS.contains(folder),
        [] => false,
    };
    known && file.symlink_metadata().is_ok_and(|about| about.is_file() && !files::is_executable(&about))
}

fn is_object(folder: &str, name: &str) -> bool {
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match folder {
        "pack" => {
            name.strip_prefix("pack-").and_then(|rest| rest.split_once('.')).is_some_and(|(id, ending)| {
                is_hexadecimal(id) && ["pack", "idx", "rev", "bitmap", "mtimes", "keep"].contains(&ending)
            })
        }
        "info" => ["packs", "commit-graph"].contains(&name),
        _ => folder.len() == 2 && is_hexadecimal(folder) && name.len() >= 38 && is_hexadecimal(name),
    }
}

impl TreeError {
    /// The error of an entry of a project, with what to do.
    pub(super) fn of_project(self) -> LocalizedText {
        match self {
            Self::Unreadable(why) => why,
            Self::TooLarge => {
                let (en, zh) = too_large();
                LocalizedText::new(
                    format!(
                        "an entry {en}: start an interpreter with a script of the project, a server of a package registry (`npx`, `uvx`) or a container, in plain words and without options that name folders; or add the server to your own configuration with `toolhub servers add`"
                    ),
                    format!(
                        "某个条目{zh}：请用普通的参数启动项目中的脚本、软件包仓库中的服务器（`npx`、`uvx`）或容器，且不使用指定目录的选项；或用 `toolhub servers add` 将服务器加入你自己的配置"
                    ),
                )
            }
        }
    }

    /// The error of an entry of the owner.
    pub(super) fn of_owner(self) -> LocalizedText {
        match self {
            Self::Unreadable(why) => why,
            Self::TooLarge => {
                let (en, zh) = too_large();
                LocalizedText::new(format!("it {en}"), format!("它{zh}"))
            }
        }
    }
}

fn too_large() -> (String, String) {
    let size = MAX_TREE_BYTES >> 20;
    (
        format!(
            "may load any file of the project, and there are more than {MAX_TREE_FILES} files or {size} MiB to check"
        ),
        format!("可能加载项目的任何文件，而需要检查的文件超过 {MAX_TREE_FILES} 个或 {size} MiB"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_only_files_written_by_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let object = "a".repeat(38);
        for file in [".git/HEAD", ".git/packed-refs", ".git/refs/heads/main", ".git/logs/HEAD"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let mut found = BTreeMap::new();
            add([root.clone()], Omitted::Nothing, &mut found).unwrap();
            assert!(found.contains_key(&path), "a shell could run the text of {file}");
        }
        for (file, bound) in [
            ("run.sh", true),
            (".git/config", true),
            (".git/hooks/pre-commit", true),
            (".git/run.sh", true),
            (".git/info/attributes", true),
            (".git/objects/run.sh", true),
            (".git/objects/ab/run.sh", true),
            (".git/modules/a/config", true),
            (".git/HEAD", false),
            (".git/index", false),
            (".git/refs/heads/main", false),
            (".git/logs/HEAD", false),
            (&format!(".git/objects/ab/{object}"), false),
            (&format!(".git/objects/pack/pack-{object}.idx"), false),
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let mut found = BTreeMap::new();
            add([root.clone()], Omitted::Installed, &mut found).unwrap();
            assert_eq!(found.contains_key(&path), bound, "{file}");
            let mut found = BTreeMap::new();
            add([root.clone()], Omitted::GitTexts, &mut found).unwrap();
            assert_eq!(found.contains_key(&path), bound, "{file}");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
                add([root.clone()], Omitted::Installed, &mut found).unwrap();
                assert!(found.contains_key(&path), "{file}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_to_folders_once() {
        let outer = tempfile::tempdir().unwrap();
        let top = outer.path().canonicalize().unwrap();
        let root = top.join("project");
        std::fs::create_dir_all(top.join("outside")).unwrap();
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(top.join("outside/run.sh"), "").unwrap();
        std::os::unix::fs::symlink("../outside", root.join("link")).unwrap();
        std::os::unix::fs::symlink(".", root.join("itself")).unwrap();
        let mut found = BTreeMap::new();
        add([root.clone()], Omitted::Nothing, &mut found).unwrap();
        let names: Vec<&PathBuf> = found.keys().collect();
        assert_eq!(names, [&root.join("itself"), &root.join("link"), &root.join("link/run.sh")]);
    }
}
