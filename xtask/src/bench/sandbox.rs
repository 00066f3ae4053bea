//! The cost of the sandbox: starts a program that does nothing, alternately with and without the sandbox.
use anyhow::Result;

use crate::{
    run::{Profile, build, check, program},
    workspace::Workspace,
};

const ROUNDS: &str = "500";

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let load = build(workspace, "toolhub-sandbox", "sandbox-load", Profile::Dist)?;
    check(program(&load).args(["overhead", ROUNDS]))
}
