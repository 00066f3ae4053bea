//! The cost of recording: calls per second of a trivial native tool with and without the store.
use std::fs;

use anyhow::Result;

use crate::{
    run::{Profile, build, check, program},
    workspace::Workspace,
};

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let load = build(workspace, "toolhub-testkit", "engine-load", Profile::Dist)?;
    let folder = workspace.target.join("bench/engine");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    check(program(&load).arg(folder))
}
