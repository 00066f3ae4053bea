//! Scripts of code mode: the start of a host, and nested calls beside direct ones.
use anyhow::Result;

use crate::{
    run::{cargo, check},
    workspace::Workspace,
};

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let example = ["--package", "toolhub-script-host", "--example", "script_speed"];
    check(cargo(&workspace.root).args(["run", "--quiet", "--profile", "dist"]).args(example))
}
