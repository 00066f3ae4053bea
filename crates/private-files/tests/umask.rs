//! Modes under a umask that withholds nothing. The umask belongs to the whole process, so this test has a program of its own.

#![cfg(unix)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolhub_private_files::{
    FileMode, SyncMode, UserFile, create_private, create_private_dir, open_private_file, replace_private,
};

#[test]
fn files_and_folders_are_private_under_an_open_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    let inner = folder.path().join("a/b");
    create_private_dir(&inner).unwrap();
    assert_eq!((mode(&folder.path().join("a")), mode(&inner)), (0o700, 0o700));
    let [replaced, created, opened, named] =
        ["replaced", "created", "opened", "named"].map(|name| inner.join(name));
    replace_private(&replaced, b"text", SyncMode::None).unwrap();
    create_private(&created, b"text", SyncMode::None).unwrap();
    open_private_file(&opened, std::fs::File::options().write(true).create(true)).unwrap();
    let mut new = UserFile::open(&named, FileMode::Existing).unwrap();
    new.write_all(b"text").unwrap();
    // The temporary file is private before it has its final name.
    for entry in std::fs::read_dir(&inner).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    new.commit(SyncMode::None).unwrap();
    assert_eq!(mode(&named), 0o600);
}
