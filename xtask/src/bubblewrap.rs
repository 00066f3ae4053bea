//! Bubblewrap, which the sandbox uses if it is installed, and which the sandbox's tests need.
use anyhow::{Result, ensure};

use crate::{
    commands::no_arguments,
    debian,
    run::{program, read},
    workspace::Workspace,
};

pub(crate) fn command(_: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up()
}

/// Whether nothing needs to be installed. Bubblewrap is needed only on Linux.
pub(crate) fn is_installed() -> bool {
    !cfg!(target_os = "linux") || version().is_some()
}

/// Ensures that the tests of the sandbox find Bubblewrap. Does nothing on systems other than Linux.
pub(crate) fn set_up() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("the sandbox is for Linux: nothing to set up");
        return Ok(());
    }
    if version().is_none() {
        let otherwise =
            "Bubblewrap was not found: install it (Debian and Ubuntu: `sudo apt-get install bubblewrap`)";
        debian::install("bubblewrap", otherwise)?;
    }
    let version = version();
    ensure!(version.is_some(), "the package `bubblewrap` brought no `bwrap`");
    println!("{}", version.unwrap_or_default().trim());
    Ok(())
}

fn version() -> Option<String> {
    read(program("bwrap").arg("--version")).ok()
}
