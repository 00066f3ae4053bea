//! Programs that cargo can install: the one on PATH, or a copy installed under the target directory.
use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{
    run::{self, cargo, program},
    workspace::Workspace,
};

/// A program, and the version that is installed if there is none on PATH.
pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl CargoTool {
    pub(crate) fn find_or_install(&self, workspace: &Workspace) -> Result<PathBuf> {
        let on_path = PathBuf::from(self.name);
        if run::read(program(&on_path).arg("--version")).is_ok() {
            return Ok(on_path);
        }
        match self.installed(workspace) {
            Some(installed) => Ok(installed),
            // A release build takes more than twice as long to compile, which a check of a few seconds never saves.
            None => self.install(workspace, &["--no-default-features", "--debug"]),
        }
    }

    /// The path of the program under the target directory, if it has this version. Uses `cargo install --list`, since
    /// not every program prints its own version.
    pub(crate) fn installed(&self, workspace: &Workspace) -> Option<PathBuf> {
        let mut list = cargo(&workspace.root);
        let output = run::read(list.args(["install", "--list", "--root"]).arg(tools(workspace))).ok()?;
        let expected = format!("{} v{}:", self.name, self.version);
        output.lines().any(|line| line == expected).then(|| self.path(workspace))
    }

    fn path(&self, workspace: &Workspace) -> PathBuf {
        tools(workspace).join("bin").join(self.name).with_extension(std::env::consts::EXE_EXTENSION)
    }

    pub(crate) fn install(&self, workspace: &Workspace, more: &[&str]) -> Result<PathBuf> {
        let Self { name, version } = self;
        println!("installing {name} {version}, once: this takes some minutes");
        let tools = tools(workspace);
        let build = tools.join("build");
        let mut install = cargo(&workspace.root);
        install.args(["install", name, "--version", version, "--locked"]).args(more);
        install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", &build).env("CARGO_PROFILE_DEV_DEBUG", "0");
        run::download(&mut install).with_context(|| format!("{name} could not be installed"))?;
        // Hundreds of megabytes that are no longer needed; kept after a failure, so that the next attempt can
        // continue.
        fs::remove_dir_all(&build).ok();
        Ok(self.path(workspace))
    }
}

fn tools(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools")
}
