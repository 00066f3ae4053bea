//! Packs every crate that is published, without building it: what `cargo publish` would refuse in a manifest is found here.
//! Building the packed sources is left to the continuous integration.
use anyhow::{Result, ensure};

use crate::{
    commands::no_arguments,
    run::{self, cargo},
    workspace::Workspace,
};

/// The limit of the registry.
const MAX_PACKED_BYTES: u64 = 10 << 20;

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(&workspace.root);
    // Offline, since the lock file and the steps before this one have what it needs: the index of the registry takes a minute.
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
