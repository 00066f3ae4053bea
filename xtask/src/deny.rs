//! Runs `cargo-deny`: the user's own, or one installed once under the target folder.
use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{
    commands::no_arguments,
    run::{self, cargo, program},
    workspace::Workspace,
};

const VERSION: &str = "0.20.2";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut command = program(find_or_install(workspace)?);
    command.current_dir(&workspace.root);
    // Advisories need a database from the network, so they are not part of this.
    run::check(command.args(["check", "bans", "licenses", "sources"]))
}

fn find_or_install(workspace: &Workspace) -> Result<PathBuf> {
    let on_path = PathBuf::from("cargo-deny");
    if run::read(program(&on_path).arg("--version")).is_ok() {
        return Ok(on_path);
    }
    let tools = workspace.target.join("tools");
    let ours = tools.join("bin/cargo-deny").with_extension(std::env::consts::EXE_EXTENSION);
    let right_version =
        run::read(program(&ours).arg("--version")).is_ok_and(|said| said.trim().ends_with(VERSION));
    if !right_version {
        println!("installing cargo-deny {VERSION}, once: this takes some minutes");
        let build = tools.join("build");
        let mut install = cargo(&workspace.root);
        install.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--no-default-features"]);
        install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", &build);
        run::check(&mut install).context("cargo-deny could not be installed")?;
        // Hundreds of megabytes that nothing needs again; an interrupted install goes on from them.
        fs::remove_dir_all(&build).ok();
    }
    Ok(ours)
}
