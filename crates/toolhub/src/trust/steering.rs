//! Whether the current folder could change what a program of the owner runs. Package runners, interpreters, shims and whatever
//! they start read files of the folder they are started in, and no list of such files is complete. So a folder that is not
//! trusted counts as harmless only if everything in it is known to be data; else the owner's programs start elsewhere.

use std::fs::{DirEntry, Metadata};
use std::path::Path;

/// Endings of files that are data to every program.
const DATA: [&str; 52] = [
    "xlsx", "xls", "xlsm", "ods", "csv", "tsv", "parquet", "txt", "md", "rst", "log", "pdf", "doc", "docx",
    "odt", "rtf", "ppt", "pptx", "odp", "epub", "tex", "bib", "png", "jpg", "jpeg", "gif", "webp", "svg",
    "bmp", "tif", "tiff", "ico", "mp3", "mp4", "m4a", "wav", "ogg", "flac", "mov", "avi", "mkv", "webm",
    "zip", "gz", "7z", "db", "sqlite", "sqlite3", "eml", "ics", "vcf", "html",
];
/// Names without an ending, and hidden names, that are data.
const DATA_NAMES: [&str; 9] =
    ["README", "LICENSE", "COPYING", "NOTICE", "AUTHORS", "CHANGELOG", ".git", ".gitignore", ".DS_Store"];
/// How names of licenses begin that go on after a hyphen, as `LICENSE-MIT` does. Programs that read a folder look for none of them.
const LICENSES: [&str; 4] = ["LICENSE-", "LICENCE-", "COPYING-", "NOTICE-"];
/// Endings of files that are run, which are named before others.
const SCRIPTS: [&str; 11] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl", "ps1", "bat", "cmd"];
/// Files and folders that programs look for in the folders above, too.
const LOOKED_FOR_ABOVE: [&str; 26] = [
    "package.json",
    "node_modules",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "pyproject.toml",
    "uv.toml",
    ".python-version",
    ".venv",
    "pixi.toml",
    ".env",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    ".nvmrc",
    "Gemfile",
    ".ruby-version",
    "Cargo.toml",
    ".cargo",
    "rust-toolchain.toml",
    "go.mod",
];
/// The most entries of a folder that are looked at; one with more is not harmless.
const MAX_ENTRIES: usize = 2_000;

/// What in the folder could change what a program of the owner runs, as one would name it; `None` if nothing could.
pub(super) fn found_in(folder: &Path, user: Option<&Path>) -> Option<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Some(".".to_owned()) };
    let mut found = Vec::new();
    for (count, entry) in entries.enumerate() {
        let Ok(entry) = entry else { return Some(".".to_owned()) };
        if count >= MAX_ENTRIES || !is_data(&entry) {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((rank(&name), name));
        }
        if count >= MAX_ENTRIES {
            break;
        }
    }
    if let Some((_, name)) = found.into_iter().min() {
        return Some(name);
    }
    let above = folder.ancestors().skip(1).take_while(|part| Some(*part) != user);
    let mut files = above.flat_map(|part| LOOKED_FOR_ABOVE.iter().map(|name| part.join(name)));
    files.find(|file| file.symlink_metadata().is_ok()).map(|file| file.display().to_string())
}

/// The order in which files are named: those that programs look for, then scripts, then the rest.
fn rank(name: &str) -> u8 {
    let is_script = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| SCRIPTS.contains(&ending.to_lowercase().as_str()));
    match (LOOKED_FOR_ABOVE.contains(&name), is_script) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

fn is_license(name: &str) -> bool {
    LICENSES.iter().any(|head| name.starts_with(head)) && !name.contains('.')
}

fn is_data(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let (Some(name), Ok(about)) = (name.to_str(), entry.metadata()) else { return false };
    if DATA_NAMES.contains(&name) {
        return true;
    }
    if name.starts_with('.') || name == "node_modules" {
        return false;
    }
    if about.is_dir() {
        return !is_package(&entry.path());
    }
    if about.is_file() && is_license(name) {
        return !is_executable(&about);
    }
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    about.is_file() && !is_executable(&about) && ending.is_some_and(|ending| DATA.contains(&ending.as_str()))
}

/// Whether Python would import a folder before an installed package of the same name.
fn is_package(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return true };
    let is_marker = |entry: DirEntry| entry.file_name().to_string_lossy().starts_with("__");
    entries
        .take(MAX_ENTRIES + 1)
        .enumerate()
        .any(|(count, entry)| count >= MAX_ENTRIES || entry.map_or(true, is_marker))
}

fn is_executable(about: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        about.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_data_are_harmless() {
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
            ("run.sh", false),
            (".env", false),
            ("unknown.thing", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join(file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "").unwrap();
            let found = found_in(folder.path(), folder.path().parent());
            assert_eq!(found.is_none(), harmless, "{file}: {found:?}");
        }
    }

    #[test]
    fn names_what_programs_look_for_before_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut expect = Vec::new();
        for file in ["makefile", "z.py", "package.json"] {
            std::fs::write(folder.path().join(file), "").unwrap();
            expect.push(found_in(folder.path(), folder.path().parent()).unwrap());
        }
        assert_eq!(expect, ["makefile", "z.py", "package.json"]);
    }

    #[test]
    fn a_folder_with_very_many_files_is_not_harmless() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_ENTRIES {
            std::fs::write(folder.path().join(format!("{number}.txt")), "").unwrap();
        }
        assert!(found_in(folder.path(), folder.path().parent()).is_some());
    }

    #[test]
    fn looks_above_the_folder_and_not_in_the_users_home() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(outer.path().join("package.json"), "").unwrap();
        assert!(found_in(&inner, None).is_some());
        assert_eq!(found_in(&inner, Some(outer.path())), None);
    }
}
