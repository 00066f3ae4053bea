//! `HAProxy`, which tests of several replicas put in front of them: locates or installs it.
use anyhow::Result;

use crate::{commands::no_arguments, debian, workspace::Workspace};

const PROGRAM: &str = "haproxy";

pub(crate) fn command(_: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up()
}

pub(crate) fn is_installed() -> bool {
    debian::system_program(PROGRAM).is_some()
}

/// Ensures that tests find the program. The tests themselves start and stop it.
pub(crate) fn set_up() -> Result<()> {
    debian::provide_program(PROGRAM, "haproxy")
}
