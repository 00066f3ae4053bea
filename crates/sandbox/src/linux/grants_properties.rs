//! Property test: for any interpreter named by a script, in any folder layout, only listed paths are granted.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::program::SandboxProgram;

/// Folders below the root of a generated layout; any of them may contain a secret.
const FOLDERS: [&str; 10] =
    ["", "a", "a/bin", "a/lib", "a/lib/python3.12", "a/share", "home", "home/bin", "home/lib", "data"];
/// Names of entries in those folders.
const NAMES: [&str; 8] = ["python3", "node", "sh", "bin", "lib", "lib64", "pyvenv.cfg", "x"];
/// Targets of generated links.
const TARGETS: [&str; 12] = [
    "/",
    "..",
    "../..",
    "/bin/sh",
    "secret",
    "../secret",
    "../home",
    "../bin/node",
    "home",
    "/etc",
    "/proc/self/exe",
    "lib",
];

#[derive(Debug, Clone)]
enum TestEntry {
    Program,
    Script,
    Text,
    Folder,
    Link(usize),
}

fn entry() -> impl Strategy<Value = TestEntry> {
    prop_oneof![
        3 => Just(TestEntry::Program),
        1 => Just(TestEntry::Script),
        1 => Just(TestEntry::Text),
        2 => Just(TestEntry::Folder),
        3 => (0..TARGETS.len()).prop_map(TestEntry::Link),
    ]
}

/// Components of a generated path: existing names, dots, and absolute paths.
fn path() -> impl Strategy<Value = Vec<&'static str>> {
    let part = prop_oneof![
        8 => prop::sample::select(vec!["a", "home", "bin", "lib", "python3", "node", "sh", "x", "python3.12"]),
        1 => prop::sample::select(vec!["..", ".", "", "secret", "/bin/sh", "/proc/self/root", "/tmp"]),
    ];
    prop::collection::vec(part, 1..5)
}

fn build(root: &Path, entries: &[(usize, usize, TestEntry)]) {
    for folder in FOLDERS {
        fs::create_dir_all(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("secret"), "s").unwrap();
    }
    for (folder, name, entry) in entries {
        let at = root.join(FOLDERS[*folder]).join(NAMES[*name]);
        let program = |text: &[u8]| {
            if fs::write(&at, text).is_ok() {
                fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
            }
        };
        if at.symlink_metadata().is_ok() {
            continue;
        }
        match entry {
            TestEntry::Program => program(b"\x7fELF"),
            TestEntry::Script => program(b"#!/bin/sh\n"),
            TestEntry::Text => fs::write(&at, "text").unwrap(),
            TestEntry::Folder => fs::create_dir(&at).unwrap(),
            TestEntry::Link(target) => symlink(TARGETS[*target], &at).unwrap(),
        }
    }
}

/// Whether a path may be granted for an interpreter, computed independently of the code under test.
fn is_listed(granted: &Path, file: &Path, named: &Path) -> bool {
    if granted == file {
        return file.is_file();
    }
    let listed = ["bin", "lib", "lib32", "lib64", "libexec", "include", "share", "pyvenv.cfg"];
    let name = granted.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(root) = granted.parent() else { return false };
    let of_root = |program: &Path| program.parent() == Some(&root.join("bin"));
    let contains_program =
        of_root(file) || named.parent().and_then(|bin| bin.canonicalize().ok()) == Some(root.join("bin"));
    let proven = root.join("lib/python3.12/os.py").is_file()
        || (root.join("pyvenv.cfg").is_file() && root.join("lib/python3.12/site-packages").is_dir());
    listed.contains(&name)
        && contains_program
        && proven
        && !fs::symlink_metadata(granted).unwrap().is_symlink()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn script_grants_match_allowed_list(
        entries in prop::collection::vec((0..FOLDERS.len(), 0..NAMES.len(), entry()), 0..24),
        parts in path(),
        (is_python, is_venv) in (any::<bool>(), any::<bool>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        build(&root, &entries);
        if is_python {
            let _ = fs::write(root.join("a/lib/python3.12/os.py"), "");
            let _ = fs::create_dir_all(root.join("home/lib/python3.12"));
            let _ = fs::write(root.join("home/lib/python3.12/os.py"), "");
        }
        if is_venv {
            let _ = fs::create_dir_all(root.join("a/lib/python3.12/site-packages"));
        }
        let named = parts.iter().fold(root.clone(), |path, part| path.join(part));
        let private = root.join("private");
        fs::create_dir(&private).unwrap();
        let policy = SandboxPolicy {
            programs: vec![SandboxProgram::of_script(&named)],
            protected: vec![root.join("home"), root.join("data")],
            ..SandboxPolicy::default()
        };
        let Ok(grants) = Grants::open(&policy, &private) else { return Ok(()) };
        prop_assert_eq!(grants.write.len(), 1);
        let file = named.canonicalize().unwrap();
        for grant in &grants.read {
            let path = grant.path_handle.path();
            prop_assert!(is_listed(path, &file, &named), "{:?} granted for {:?}", path, named);
            for protected in ["", "home", "data"] {
                let protected = root.join(protected);
                prop_assert!(!protected.starts_with(path), "{:?} contains {:?}", path, protected);
            }
            prop_assert!(!path.starts_with(root.join("home")), "{:?} is protected", path);
            prop_assert_ne!(path.file_name().unwrap(), "secret");
        }
        prop_assert!(named.components().all(|part| part != Component::ParentDir), "{:?}", named);
    }

    #[test]
    fn owner_paths_grant_themselves_or_their_targets(
        entries in prop::collection::vec((0..FOLDERS.len(), 0..NAMES.len(), entry()), 0..24),
        parts in path(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        build(&root, &entries);
        let named = parts.iter().fold(root.clone(), |path, part| path.join(part));
        let policy = SandboxPolicy { read: vec![named.clone()], own: vec![root.join("a")], ..SandboxPolicy::default() };
        let Ok(grants) = Grants::open(&policy, &root.join("data")) else { return Ok(()) };
        // Without a trailing slash, as it is opened.
        let named = std::path::absolute(&named).unwrap();
        for grant in &grants.read {
            let path: PathBuf = grant.path_handle.path().into();
            prop_assert!(path == root.join("a") || path == named.canonicalize().unwrap(), "{:?}", path);
            let written = path == without_dots(&named);
            prop_assert!(written || path != Path::new("/"), "{:?} leads to the root", named);
        }
    }
}
