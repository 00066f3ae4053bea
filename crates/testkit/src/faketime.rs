//! Finds libfaketime, which changes the clock of a program: as installed by `cargo xtask faketime`, or by the system.

use std::path::{Path, PathBuf};

use crate::program::profile_folder;

/// The path of the library, for `LD_PRELOAD`.
#[must_use]
pub fn faketime() -> PathBuf {
    let target =
        profile_folder().ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists()).map(Path::to_owned);
    let roots = [target.map(|target| target.join("faketime/usr/lib")), Some("/usr/lib".into())];
    let found = roots.into_iter().flatten().find_map(|root| below(&root));
    found.expect("`libfaketime` is needed: `cargo xtask faketime` gets it, or says how (Debian: `apt-get install libfaketime`)")
}

/// The library in one of Debian's multiarch folders, or beside them.
fn below(root: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut places = folders.chain([root.to_owned()]).map(|folder| folder.join("faketime/libfaketime.so.1"));
    places.find(|library| library.exists())
}
