//! Bubblewrap, which the sandbox puts in front of programs where it is installed, and which its tests need.
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

/// Whether there is nothing to install. Only on Linux is it needed.
pub(crate) fn is_here() -> bool {
    !cfg!(target_os = "linux") || version().is_some()
}

/// Makes sure that the tests of the sandbox find it. On other systems than Linux there is none, and none is needed.
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
