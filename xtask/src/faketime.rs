//! libfaketime, with which a test runs a program with another clock: extracted from the distribution's package into
//! `target`, without installing it.
use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{
    commands::no_arguments,
    run::{check, program, read},
    workspace::Workspace,
};

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up(workspace)
}

pub(crate) fn is_installed(workspace: &Workspace) -> bool {
    has_library(Path::new("/usr/lib")) || has_library(&workspace.target.join("faketime/usr/lib"))
}

/// Ensures that tests find the library.
pub(crate) fn set_up(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target.join("faketime");
    if is_installed(workspace) {
        println!("libfaketime is there");
        return Ok(());
    }
    if read(program("apt-get").arg("--version")).is_err() {
        bail!(
            "libfaketime was not found: install it (Debian and Ubuntu: `sudo apt-get install libfaketime`)"
        );
    }
    println!("taking libfaketime from its package with `apt-get download`, into `{}`", folder.display());
    fs::create_dir_all(&folder)?;
    check(program("apt-get").current_dir(&folder).args(["download", "--quiet", "libfaketime"]))
        .context("the package cannot be had: `sudo apt-get update`, or install `libfaketime`")?;
    let package = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let package = package.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    check(program("dpkg").arg("-x").arg(package.context("no package came")?).arg(&folder))?;
    match has_library(&folder.join("usr/lib")) {
        true => Ok(()),
        false => bail!("the package `libfaketime` brought no library"),
    }
}

/// Whether the library exists under this directory, in Debian's layout.
fn has_library(root: &Path) -> bool {
    let folders = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.chain([root.to_owned()]).any(|folder| folder.join("faketime/libfaketime.so.1").exists())
}
