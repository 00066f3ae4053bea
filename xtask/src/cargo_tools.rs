//! Programs that cargo can install: the user's own, or one installed once under the target folder.
use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{
    run::{self, cargo, program},
    workspace::Workspace,
};

/// A program and the version of it that is installed where there is none.
pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl CargoTool {
    pub(crate) fn find_or_install(&self, workspace: &Workspace) -> Result<PathBuf> {
        let Self { name, version } = self;
        let on_path = PathBuf::from(name);
        if run::read(program(&on_path).arg("--version")).is_ok() {
            return Ok(on_path);
        }
        let tools = workspace.target.join("tools");
        let ours = tools.join("bin").join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let right_version =
            run::read(program(&ours).arg("--version")).is_ok_and(|said| said.trim().ends_with(version));
        if !right_version {
            println!("installing {name} {version}, once: this takes some minutes");
            let build = tools.join("build");
            let mut install = cargo(&workspace.root);
            install.args(["install", name, "--version", version, "--locked", "--no-default-features"]);
            install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", &build);
            run::check(&mut install).with_context(|| format!("{name} could not be installed"))?;
            // Hundreds of megabytes that nothing needs again; an interrupted install goes on from them.
            fs::remove_dir_all(&build).ok();
        }
        Ok(ours)
    }
}
