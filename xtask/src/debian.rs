//! Installs Debian packages with `apt-get` if possible, and finds their programs.
use std::path::PathBuf;

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

/// Places of servers' programs, which are not on the `PATH` of every user.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// A program on `PATH`, or among those for administrators.
pub(crate) fn system_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.exists())
}

/// Ensures that a program exists; installs its package if necessary.
pub(crate) fn provide_program(name: &str, package: &str) -> Result<()> {
    if let Some(program) = system_program(name) {
        println!("`{name}` is {}", program.display());
        return Ok(());
    }
    let otherwise = format!(
        "`{name}` was not found: install it (Debian and Ubuntu: `sudo apt-get install {package}`), or put its folder on PATH; \
         it need not run"
    );
    install(package, &otherwise)?;
    match system_program(name) {
        Some(_) => Ok(()),
        None => bail!("the package `{package}` brought no `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_programs_by_name() {
        assert!(system_program("sh").is_some_and(|program| program.ends_with("sh")));
        assert_eq!(system_program("no-such-program-of-toolhub"), None);
    }
}
