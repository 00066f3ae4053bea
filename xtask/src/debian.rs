//! Installs Debian packages with `apt-get` if possible.
use anyhow::{Result, bail};

use crate::run::{download, program, read};

/// Installs a package. Fails with the message `otherwise` if the user is not root or `apt-get` does not exist.
pub(crate) fn install(package: &str, otherwise: &str) -> Result<()> {
    let is_root = read(program("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || read(program("apt-get").arg("--version")).is_err() {
        bail!("{otherwise}");
    }
    println!("installing the package `{package}` with `apt-get`");
    let apt = |args: &[&str]| {
        let mut apt = program("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(args);
        download(&mut apt)
    };
    apt(&["update", "--quiet"])?;
    apt(&["install", "--yes", "--quiet", "--no-install-recommends", package])
}
