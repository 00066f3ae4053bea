//! Checks whether a `.git` folder can make `git` run a program. Archives can contain such folders, and programs of the owner run
//! `git status` in the folder they are started in. Only configuration with keys of a short list is harmless.

use std::path::Path;

use crate::trust::files;

/// Keys of `core` that start no program.
const CORE_KEYS: [&str; 7] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
];
/// Files and folders that make `git` read the configuration of another folder.
const REDIRECTING_FILES: [&str; 2] = ["commondir", "modules"];
/// The mode of a nested repository in an index: `git status` runs `git` in it, with its own configuration.
const NESTED_REPOSITORY: [u8; 4] = 0o160_000_u32.to_be_bytes();
/// The maximum size of an index that is checked.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Whether `git` starts no program because of this folder. A symbolic link or a file in its place refers to another folder, and
/// is not harmless.
pub(super) fn is_harmless(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
        && REDIRECTING_FILES.iter().all(|name| !exists(&folder.join(name)))
        && has_plain_config(&folder.join("config"))
        && has_no_hooks(&folder.join("hooks"))
        && has_no_nested_repository(folder)
}

fn exists(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

fn has_plain_config(file: &Path) -> bool {
    let Ok(metadata) = file.symlink_metadata() else { return true };
    let text = metadata.is_file().then(|| files::read(file).ok().flatten()).flatten();
    text.is_some_and(|(bytes, _)| std::str::from_utf8(&bytes).is_ok_and(is_plain))
}

/// Whether every line of a configuration is understood and on the list. Ambiguous syntax (quotes, continued lines, a key behind a
/// section) is not.
fn is_plain(text: &str) -> bool {
    let mut section: Option<(String, Option<&str>)> = None;
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).all(|line| {
        if let Some(inside) = line.strip_prefix('[') {
            section = inside.strip_suffix(']').and_then(section_of);
            return section.is_some();
        }
        let (Some((name, inner)), Some((key, value))) = (&section, line.split_once('=')) else {
            return false;
        };
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        let known = match (name.as_str(), inner) {
            ("core", None) => CORE_KEYS.contains(&key.as_str()),
            ("remote", Some(_)) => ["url", "fetch"].contains(&key.as_str()),
            ("branch", Some(_)) => ["remote", "merge"].contains(&key.as_str()),
            ("user", None) => ["name", "email"].contains(&key.as_str()),
            _ => false,
        };
        known && !value.contains(['"', '\\']) && (name == "user" || !starts_program(value))
    })
}

/// The name of a section in lower case, and its quoted subsection.
fn section_of(inside: &str) -> Option<(String, Option<&str>)> {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    let (name, inner) = match inside.split_once(' ') {
        None => (inside, None),
        Some((name, rest)) => (name, Some(rest.trim().strip_prefix('"')?.strip_suffix('"')?)),
    };
    let inner_is_plain = inner.is_none_or(|inner| !inner.contains(['"', '\\']));
    (is_word(name) && inner_is_plain).then(|| (name.to_lowercase(), inner))
}

/// Whether a URL is parsed as an option, or is handled by a remote helper, such as `ext::sh -c …`.
fn starts_program(value: &str) -> bool {
    let helper = value.split_once("::").map(|(helper, _)| helper);
    value.starts_with('-')
        || helper.is_some_and(|helper| helper.chars().all(|c| c.is_alphanumeric() || c == '-'))
}

fn has_no_hooks(folder: &Path) -> bool {
    let Ok(metadata) = folder.symlink_metadata() else { return true };
    let is_sample = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(".sample")))
    };
    metadata.is_dir() && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_sample))
}

/// Searches the bytes of each index for the mode: there may be false positives, but no false negatives.
fn has_no_nested_repository(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        let Some(name) = name.to_str() else { return false };
        if name != "index" && !name.starts_with("sharedindex.") {
            return true;
        }
        let fits =
            entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_INDEX_BYTES);
        let bytes = fits.then(|| std::fs::read(entry.path()).ok()).flatten();
        bytes.is_some_and(|bytes| bytes.windows(4).all(|four| four != NESTED_REPOSITORY))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_listed_git_config_keys_are_harmless() {
        for (text, harmless) in [
            ("", true),
            ("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n", true),
            ("; a comment\n[CORE]\n  LogAllRefUpdates = true\n", true),
            (
                "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
                true,
            ),
            ("[remote \"origin\"]\n\turl = git@[::1]:a.git\n", true),
            ("[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true),
            ("[user]\n\tname = Ann\n\temail = ann@example.org\n", true),
            ("[core]\n\tfsmonitor = ./x\n", false),
            ("[core] fsmonitor = ./x\n", false),
            ("[core]\n\tbare = false \\\n\tfsmonitor = ./x\n", false),
            ("[core]\n\tfsmonitor\n", false),
            ("[core]\n\tsshCommand = ./x\n", false),
            ("[core]\n\thooksPath = x\n", false),
            ("[core]\n\tworktree = /\n", false),
            ("[core]\n\tpager = ./x\n", false),
            ("[include]\n\tpath = ../x\n", false),
            ("[includeIf \"gitdir:/\"]\n\tpath = ../x\n", false),
            ("[alias]\n\tst = !./x\n", false),
            ("[filter \"x\"]\n\tclean = ./x\n", false),
            ("[extensions]\n\tworktreeConfig = true\n", false),
            ("[remote \"origin\"]\n\turl = ext::sh -c ./x\n", false),
            ("[remote \"origin\"]\n\turl = --upload-pack=./x\n", false),
            ("[remote \"origin\"]\n\turl = \"ext::sh -c ./x\"\n", false),
            ("[remote \"origin\"]\n\tuploadpack = ./x\n", false),
            ("[branch \"main\"]\n\tremote = ext::sh -c ./x\n", false),
            ("[remote \"a\"] [core]\n\tfsmonitor = ./x\n", false),
            ("[remote.origin]\n\turl = a\n", false),
            ("url = a\n", false),
        ] {
            assert_eq!(is_plain(text), harmless, "{text}");
        }
    }

    /// A repository created by `git init` is harmless, so that folders of data under version control stay usable.
    #[test]
    fn repository_is_harmless_until_it_has_a_nested_one() {
        let folder = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let ran = Command::new("git").arg("-C").arg(folder.path()).args(args).output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
        };
        git(&["init", "-q"]);
        std::fs::write(folder.path().join("a.md"), "a").unwrap();
        git(&["add", "a.md"]);
        let dot_git = folder.path().join(".git");
        assert!(is_harmless(&dot_git));
        let object = "0123456789012345678901234567890123456789";
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{object},nested")]);
        assert!(!is_harmless(&dot_git));
    }

    #[cfg(unix)]
    #[test]
    fn symlink_or_file_in_place_of_git_folder_is_not_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let git_path = folder.path().join(".git");
        std::fs::write(&git_path, "gitdir: /elsewhere").unwrap();
        assert!(!is_harmless(&git_path));
        std::fs::remove_file(&git_path).unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        assert!(is_harmless(&folder.path().join("real")));
        std::os::unix::fs::symlink("real", &git_path).unwrap();
        assert!(!is_harmless(&git_path));
    }
}
