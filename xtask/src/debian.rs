//! Packages of Debian and its relatives: installed where we may, named where we may not.
use anyhow::{Result, bail};

use crate::run::{download, program, read};

/// Installs a package. Without the right to, or on another system, the error says `otherwise`.
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
