//! Packages every published crate without building it, which finds errors in manifests that `cargo publish` would
//! reject. The packaged sources are built in continuous integration.
use anyhow::{Result, ensure};

use crate::{
    commands::no_arguments,
    run::{self, cargo},
    workspace::Workspace,
};

/// The size limit of the registry.
const MAX_PACKED_BYTES: u64 = 10 << 20;

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(&workspace.root);
    // Offline, since updating the registry index takes a minute; the lock file and the previous steps provide
    // everything needed.
    command.args(["package", "--no-verify", "--allow-dirty", "--quiet", "--offline"]);
    let published = || workspace.packages.iter().filter(|package| package.published);
    for package in published() {
        command.args(["--package", &package.name]);
    }
    run::check(&mut command)?;
    for package in published() {
        let file = format!("{}-{}.crate", package.name, package.version);
        let bytes = std::fs::metadata(workspace.target.join("package").join(&file))?.len();
        ensure!(
            bytes <= MAX_PACKED_BYTES,
            "`{file}` has {bytes} bytes, at most {MAX_PACKED_BYTES}: exclude files"
        );
    }
    println!("{} crates can be packed", published().count());
    Ok(())
}
