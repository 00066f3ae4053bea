//! The browser in which tests open the web console: Chromium, or Chrome if that is installed instead.
use anyhow::{Result, bail};

use crate::{
    commands::no_arguments,
    debian,
    run::{program, read},
    workspace::Workspace,
};

/// The programs that tests look for on PATH, in this order. Also in the testkit's `browser` module.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub(crate) fn command(_: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up()
}

pub(crate) fn is_installed() -> bool {
    version().is_some()
}

/// Ensures that tests find a browser.
pub(crate) fn set_up() -> Result<()> {
    if version().is_none() {
        let otherwise = "Chromium was not found: install it (Debian: `sudo apt-get install chromium`), or put Chrome on PATH";
        debian::install("chromium", otherwise)?;
    }
    match version() {
        Some(version) => println!("{}", version.trim()),
        None => bail!("the package `chromium` brought none of {}", PROGRAMS.join(", ")),
    }
    Ok(())
}

fn version() -> Option<String> {
    PROGRAMS.iter().find_map(|name| read(program(name).arg("--version")).ok())
}
