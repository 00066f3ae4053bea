//! Scripts of code mode: the start of a host, and nested calls beside direct ones.
use anyhow::Result;

use crate::{
    run::{cargo, check},
    workspace::Workspace,
};

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    for (package, example) in [("toolhub-script-host", "script_speed"), ("toolhub-cli", "script_calls")] {
        let example = ["--package", package, "--example", example];
        check(cargo(&workspace.root).args(["run", "--quiet", "--profile", "dist"]).args(example))?;
    }
    Ok(())
}
