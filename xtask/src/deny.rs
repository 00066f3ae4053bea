//! Runs `cargo-deny`: the one on PATH, or a copy installed under the target directory.
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
    // Advisories are not checked, since they need a database from the network.
    run::check(command.args(["check", "bans", "licenses", "sources"]))
}
