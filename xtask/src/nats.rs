//! The NATS server that tests of a cluster start: locates or installs it.
use anyhow::Result;

use crate::{commands::no_arguments, debian, workspace::Workspace};

const PROGRAM: &str = "nats-server";

pub(crate) fn command(_: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    set_up()
}

pub(crate) fn is_installed() -> bool {
    debian::system_program(PROGRAM).is_some()
}

/// Ensures that tests find the program. The tests themselves start and stop servers.
pub(crate) fn set_up() -> Result<()> {
    debian::provide_program(PROGRAM, "nats-server")
}
