//! What the sandbox costs: a program that does nothing, started with and without it, in turn.
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
