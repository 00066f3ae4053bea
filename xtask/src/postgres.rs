//! The PostgreSQL programs with which tests start their own server: locates or installs them.
use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use crate::{commands::no_arguments, debian, workspace::Workspace};

/// The directory in which Debian and its derivatives install the programs, with a subdirectory per version.
const PACKAGES: &str = "/usr/lib/postgresql";

pub(crate) fn command(_: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up()
}

pub(crate) fn is_installed() -> bool {
    programs().is_some()
}

/// The directory with the server's programs, if they are installed.
pub(crate) fn programs() -> Option<PathBuf> {
    find(Path::new(PACKAGES))
}

/// Ensures that tests find the server's programs. The tests themselves start and stop servers.
pub(crate) fn set_up() -> Result<()> {
    if let Some(programs) = programs() {
        println!("PostgreSQL's programs are in {}", programs.display());
        return Ok(());
    }
    let otherwise = "PostgreSQL's server was not found: install it (Debian and Ubuntu: `sudo apt-get install postgresql`), \
                     or put the folder of `initdb` on PATH; it need not run";
    debian::install("postgresql", otherwise)?;
    match programs() {
        Some(_) => Ok(()),
        None => bail!("the package `postgresql` brought no `initdb`"),
    }
}

/// The directory with `initdb`: that of a Debian package, or one on PATH.
fn find(packages: &Path) -> Option<PathBuf> {
    let versions =
        fs::read_dir(packages).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    versions.chain(on_path).find(|folder| folder.join("initdb").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_postgres_by_its_program() {
        let folder = std::env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        let programs = folder.join("15/bin");
        fs::create_dir_all(&programs).unwrap();
        assert_ne!(find(&folder).as_ref(), Some(&programs), "a folder without the program");
        fs::write(programs.join("initdb"), "").unwrap();
        assert_eq!(find(&folder), Some(programs));
        fs::remove_dir_all(folder).unwrap();
    }
}
