//! Checks whether the current folder can change what a program of the owner runs. Package runners, interpreters, shims and their
//! children read files of their working directory, and no list of such files is complete. So an untrusted folder counts as
//! harmless only if everything in it is known to be data; otherwise the owner's programs are started in another folder.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use super::git_folder;
use crate::trust::files;

/// Extensions of files that every program treats as data.
const DATA: [&str; 52] = [
    "xlsx", "xls", "xlsm", "ods", "csv", "tsv", "parquet", "txt", "md", "rst", "log", "pdf", "doc", "docx",
    "odt", "rtf", "ppt", "pptx", "odp", "epub", "tex", "bib", "png", "jpg", "jpeg", "gif", "webp", "svg",
    "bmp", "tif", "tiff", "ico", "mp3", "mp4", "m4a", "wav", "ogg", "flac", "mov", "avi", "mkv", "webm",
    "zip", "gz", "7z", "db", "sqlite", "sqlite3", "eml", "ics", "vcf", "html",
];
/// Names of files without an extension, and of hidden files, that are data.
const DATA_NAMES: [&str; 8] =
    ["README", "LICENSE", "COPYING", "NOTICE", "AUTHORS", "CHANGELOG", ".gitignore", ".DS_Store"];
/// Names with an extension of data that programs interpret, in lower case.
const NOT_DATA: [&str; 5] =
    ["cmakelists.txt", "entry_points.txt", "top_level.txt", "requirements.txt", "constraints.txt"];
/// Suffixes of folders from which Python loads plugins.
const PYTHON_METADATA: [&str; 3] = [".dist-info", ".egg-info", ".egg"];
/// Prefixes of license files, such as `LICENSE-MIT`. No program searches its folder for them.
const LICENSES: [&str; 4] = ["LICENSE-", "LICENCE-", "COPYING-", "NOTICE-"];
/// Extensions of scripts, which are reported before other files.
const SCRIPTS: [&str; 11] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl", "ps1", "bat", "cmd"];
/// Files and folders that programs also search for in parent folders. A folder with `HEAD` may be a bare repository.
const LOADED_FROM_PARENTS: [&str; 95] = [
    "package.json",
    "node_modules",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "pnpm-workspace.yaml",
    "lerna.json",
    "nx.json",
    "turbo.json",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "tsconfig.json",
    "jsconfig.json",
    ".babelrc",
    ".swcrc",
    ".nvmrc",
    ".node-version",
    "pyproject.toml",
    "uv.toml",
    "poetry.toml",
    "pdm.toml",
    "hatch.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "Pipfile",
    ".python-version",
    ".python-versions",
    ".venv",
    "pixi.toml",
    ".pixi",
    ".env",
    ".envrc",
    ".tool-versions",
    "mise.toml",
    "mise.local.toml",
    ".mise.toml",
    ".mise.local.toml",
    ".mise",
    "mise",
    ".rtx.toml",
    ".config/mise",
    ".config/mise.toml",
    "Gemfile",
    ".bundle",
    ".ruby-version",
    ".java-version",
    ".sdkmanrc",
    ".go-version",
    "Cargo.toml",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.mod",
    "go.work",
    "justfile",
    "Justfile",
    ".justfile",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yml",
    "Rakefile",
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    "flake.nix",
    "shell.nix",
    "default.nix",
    "devbox.json",
    "devenv.nix",
    "WORKSPACE",
    "MODULE.bazel",
    ".bazelrc",
    "pom.xml",
    ".mvn",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "composer.json",
    "mix.exs",
    "global.json",
    "nuget.config",
    "Directory.Build.props",
    "HEAD",
];
/// The maximum number of files and folders on all levels; a folder with more is not harmless.
const MAX_ENTRIES: usize = 2_000;
/// The maximum depth; a deeper folder is not harmless.
const MAX_LEVELS: usize = 16;

/// The file or folder that can change what a program of the owner runs, for display; `None` if there is none.
pub(in crate::trust) fn find_in(folder: &Path, home_dir: Option<&Path>) -> Option<String> {
    find_below(folder).or_else(|| find_above(folder, home_dir))
}

/// Checks all levels of the folder, since programs also load code from subfolders: plugins, packages, `PATH`.
fn find_below(folder: &Path) -> Option<String> {
    let (mut level, mut count) = (vec![PathBuf::new()], 0);
    for _ in 0..MAX_LEVELS {
        let (mut found, mut next) = (Vec::new(), Vec::new());
        for inner in level {
            let display_path = |inner: &Path| match inner.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => inner.display().to_string(),
            };
            let Ok(entries) = std::fs::read_dir(folder.join(&inner)) else {
                return Some(display_path(&inner));
            };
            for entry in entries {
                let Ok(entry) = entry else { return Some(display_path(&inner)) };
                count += 1;
                let name = entry.file_name();
                let path = inner.join(&name);
                match kind_of(&entry) {
                    FolderEntryKind::Folder => next.push(path.clone()),
                    FolderEntryKind::Data => {}
                    FolderEntryKind::Other => {
                        found.push((rank(&name.to_string_lossy()), display_path(&path)));
                    }
                }
                if count > MAX_ENTRIES {
                    return found
                        .into_iter()
                        .min()
                        .map(|(_, name)| name)
                        .or_else(|| Some(display_path(&path)));
                }
            }
        }
        if let Some((_, name)) = found.into_iter().min() {
            return Some(name);
        }
        level = next;
    }
    level.first().map(|inner| inner.display().to_string())
}

fn find_above(folder: &Path, home_dir: Option<&Path>) -> Option<String> {
    let mut above = folder.ancestors().skip(1).take_while(|part| Some(*part) != home_dir);
    above.find_map(|part| {
        let named = LOADED_FROM_PARENTS.iter().map(|name| part.join(name));
        let mut named = named.filter(|file| file.symlink_metadata().is_ok());
        let git = part.join(".git");
        let affects_tools = || git.symlink_metadata().is_ok() && !git_folder::is_harmless(&git);
        let found = named.next().or_else(|| affects_tools().then(|| git.clone()));
        found.map(|file| file.display().to_string())
    })
}

/// The order in which files are reported: those that programs search for, then scripts, then the rest.
fn rank(name: &str) -> usize {
    let is_script = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| SCRIPTS.contains(&ending.to_lowercase().as_str()));
    let other = LOADED_FROM_PARENTS.len() + usize::from(!is_script);
    LOADED_FROM_PARENTS.iter().position(|known| *known == name).unwrap_or(other)
}

fn is_license(name: &str) -> bool {
    LICENSES.iter().any(|head| name.starts_with(head)) && !name.contains('.')
}

/// The kind of a folder's entry.
enum FolderEntryKind {
    /// A file or repository that does not change what a program runs.
    Data,
    /// A folder to scan.
    Folder,
    Other,
}

fn kind_of(entry: &DirEntry) -> FolderEntryKind {
    let name = entry.file_name();
    // Links are not followed: a link is neither a folder nor a file here.
    let (Some(name), Ok(about)) = (name.to_str(), entry.metadata()) else { return FolderEntryKind::Other };
    if about.is_dir() {
        let is_metadata = || PYTHON_METADATA.iter().any(|ending| name.to_lowercase().ends_with(ending));
        return match name {
            ".git" if git_folder::is_harmless(&entry.path()) => FolderEntryKind::Data,
            "node_modules" => FolderEntryKind::Other,
            _ if name.starts_with('.') || is_metadata() => FolderEntryKind::Other,
            _ => FolderEntryKind::Folder,
        };
    }
    match about.is_file() && !files::is_executable(&about) && is_data_name(name) {
        true => FolderEntryKind::Data,
        false => FolderEntryKind::Other,
    }
}

fn is_data_name(name: &str) -> bool {
    if DATA_NAMES.contains(&name) || is_license(name) {
        return true;
    }
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    !name.starts_with('.')
        && !NOT_DATA.contains(&name.to_lowercase().as_str())
        && ending.is_some_and(|ending| DATA.contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_data_folders_as_harmless() {
        for (file, harmless) in [
            ("sales.xlsx", true),
            ("报表.CSV", true),
            ("docs/guide.md", true),
            ("README", true),
            ("LICENSE-MIT", true),
            ("LICENSE-json.py", false),
            (".git/HEAD", true),
            ("package.json", false),
            ("node_modules/x/index.js", false),
            (".npmrc", false),
            (".python-version", false),
            ("uv.toml", false),
            ("rust-toolchain.toml", false),
            ("makefile", false),
            ("json.py", false),
            ("my_server/__init__.py", false),
            ("my_server/__main__.py", false),
            ("acme/impl.py", false),
            ("sub/run.sh", false),
            ("a/b/c/d/deep.js", false),
            ("a/b/c/d/deep.md", true),
            ("bin/python3", false),
            ("evil-1.0.dist-info/entry_points.txt", false),
            ("evil.dist-info/x.txt", false),
            ("evil.egg-info/x.txt", false),
            ("requirements.txt", false),
            ("sub/.env", false),
            ("sub/native.so", false),
            ("a.pth", false),
            ("README/plugin.py", false),
            ("repository/HEAD", false),
            (".git/config", true),
            (".git/hooks/pre-commit.sample", true),
            (".git/hooks/pre-commit", false),
            (".git/hooks/fsmonitor", false),
            (".git/commondir", false),
            (".git/modules/a/config", false),
            ("sub/.git/hooks/post-checkout", false),
            ("run.sh", false),
            (".env", false),
            ("unknown.thing", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
            let found = find_in(folder.path(), folder.path().parent());
            assert_eq!(found.is_none(), harmless, "{file}: {found:?}");
        }
    }

    #[test]
    fn reports_files_that_programs_load_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut expect = Vec::new();
        for file in ["unknown.thing", "z.py", "package.json"] {
            std::fs::write(folder.path().join(file), "").unwrap();
            expect.push(find_in(folder.path(), folder.path().parent()).unwrap());
        }
        assert_eq!(expect, ["unknown.thing", "z.py", "package.json"]);
    }

    #[test]
    fn folder_beyond_scan_limits_is_not_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().parent();
        for number in 0..MAX_ENTRIES - 2 {
            let inner = folder.path().join(if number % 2 == 0 { "a" } else { "b" });
            std::fs::create_dir_all(&inner).unwrap();
            std::fs::write(inner.join(format!("{number}.txt")), "").unwrap();
        }
        assert_eq!(find_in(folder.path(), top), None);
        std::fs::write(folder.path().join("a/one_more.txt"), "").unwrap();
        assert!(find_in(folder.path(), top).is_some(), "one total, not one of each folder");
        let deep = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(deep.path().join("a/".repeat(MAX_LEVELS - 1))).unwrap();
        assert_eq!(find_in(deep.path(), deep.path().parent()), None);
        std::fs::create_dir_all(deep.path().join("a/".repeat(MAX_LEVELS))).unwrap();
        assert!(find_in(deep.path(), deep.path().parent()).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn symlinks_and_executables_are_not_data() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        for name in ["README", "a.md", ".gitignore", "sub/a.csv"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            assert_eq!(find_in(folder.path(), folder.path().parent()), None, "{name}");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert!(find_in(folder.path(), folder.path().parent()).is_some(), "{name}");
            std::fs::remove_file(&file).unwrap();
            symlink("/etc", &file).unwrap();
            assert!(find_in(folder.path(), folder.path().parent()).is_some(), "{name}");
        }
    }

    #[test]
    fn scans_parent_folders_but_not_home() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(outer.path().join("package.json"), "").unwrap();
        assert!(find_in(&inner, None).is_some());
        assert_eq!(find_in(&inner, Some(outer.path())), None);
        let middle = outer.path().join("a");
        for (file, harmless) in [
            (".git/HEAD", true),
            (".git/hooks/x", false),
            ("justfile", false),
            (".envrc", false),
            ("HEAD", false),
            ("notes.py", true),
        ] {
            std::fs::create_dir_all(middle.join(file).parent().unwrap()).unwrap();
            std::fs::write(middle.join(file), "").unwrap();
            assert_eq!(find_in(&inner, Some(outer.path())).is_none(), harmless, "{file}");
            std::fs::remove_file(middle.join(file)).unwrap();
        }
    }
}
