//! A separate hub for one check: a directory with `mcp.json` and `toolhub.toml`, an empty home directory, and the
//! program that uses them.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{launch::environment, left_over::MARKER};
use crate::run::program;

pub(super) struct Hub {
    toolhub: PathBuf,
    pub(super) folder: PathBuf,
    mark: String,
}

impl Hub {
    /// Writes the configuration. The mark is an environment variable that identifies the hub's processes.
    pub(super) fn create(
        toolhub: &Path,
        folder: PathBuf,
        servers: &Map<String, Value>,
        settings: &str,
    ) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("mcp.json"), json!({"mcpServers": servers}).to_string())?;
        fs::write(folder.join("toolhub.toml"), settings)?;
        let mark = folder.display().to_string();
        Ok(Self { toolhub: toolhub.to_owned(), folder, mark })
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// The words of a command line of this hub, beginning with the program.
    pub(super) fn words(&self, args: &[&str]) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let mut words = vec![path(&self.toolhub), "--home".to_owned(), path(&self.folder.join("home"))];
        words.extend(["--config".to_owned(), path(&self.folder.join("toolhub.toml")), "--quiet".to_owned()]);
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        words
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let words = self.words(args);
        let mut command = program(&self.toolhub);
        command.args(&words[1..]).current_dir(&self.folder);
        command.env_clear().envs(environment(&self.folder, None)).env(MARKER, &self.mark);
        command
    }
}
