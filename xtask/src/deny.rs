//! Runs `cargo-deny`: the user's own, or one installed once under the target folder.
use anyhow::Result;

use crate::{
    cargo_tools::CargoTool,
    commands::no_arguments,
    run::{self, program},
    workspace::Workspace,
};

const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2" };

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut command = program(CARGO_DENY.find_or_install(workspace)?);
    command.current_dir(&workspace.root);
    // Advisories need a database from the network, so they are not part of this.
    run::check(command.args(["check", "bans", "licenses", "sources"]))
}
