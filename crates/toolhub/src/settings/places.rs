//! Where the files are: config, servers, data.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toolhub_mcp::config::ConfigError;

use crate::trust::{RunTrust, Search, Workspace};

/// Where the files are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The settings; the file need not exist.
    pub config: PathBuf,
    /// The servers, beside the settings; need not exist.
    pub servers: PathBuf,
    /// The data folder.
    pub home: PathBuf,
    /// The user's home, which may have skills.
    pub user: Option<PathBuf>,
    /// What the current folder brings, of which nothing is used unless it is trusted. The default is nothing.
    pub workspace: Workspace,
}

/// Why the places cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    /// The user has no home folder.
    #[error("your home folder is not known: set `HOME`, or give `--home` and `--config`")]
    NoHome,
    /// The named config file does not exist.
    #[error("there is no config file `{}`: create it (it may be empty), or leave out `--config`", .0.display())]
    NoConfig(PathBuf),
}

impl Places {
    /// Where the vectors are kept that a sentence encoder makes of tools.
    pub fn vectors(&self) -> PathBuf {
        self.home.join("vectors.bin")
    }

    /// Where the last words of a server are kept.
    pub fn log_of(&self, server: &str) -> PathBuf {
        let safe: String =
            server.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
        self.home.join("logs").join(format!("{safe}.stderr"))
    }

    /// The places for these choices of the user; what is not chosen is found in the usual places. What the current folder
    /// brings is used only if it is on the user's list of trusted folders.
    pub fn find(config: Option<&Path>, home: Option<&Path>) -> Result<Self, PlacesError> {
        Self::find_trusting(config, home, &RunTrust::default())
    }

    /// The same, with folders that are trusted for this run. A config file that is named explicitly is the caller's own
    /// choice, and is used wherever it lies, with the `mcp.json` beside it.
    pub fn find_trusting(
        config: Option<&Path>,
        home: Option<&Path>,
        run: &RunTrust,
    ) -> Result<Self, PlacesError> {
        let usual = etcetera::choose_base_strategy().ok();
        let usual = || usual.as_ref().ok_or(PlacesError::NoHome);
        let home = match home {
            Some(folder) => folder.to_owned(),
            None => usual()?.data_dir().join("toolhub"),
        };
        let own = usual().ok().map(|usual| usual.config_dir().join("toolhub"));
        let user = std::env::home_dir();
        let search =
            Search { here: Path::new("."), user: user.as_deref(), own_config: own.as_deref(), data: &home };
        let mut workspace = Workspace::find(&search, run);
        let config = match config {
            Some(file) if file.is_file() => file.to_owned(),
            Some(file) if file.is_dir() => file.join("toolhub.toml"),
            Some(file) => return Err(PlacesError::NoConfig(file.to_owned())),
            None if workspace.has_config() => {
                workspace.use_config();
                PathBuf::from("toolhub.toml")
            }
            None => usual()?.config_dir().join("toolhub").join("toolhub.toml"),
        };
        Ok(Self { servers: config.with_file_name("mcp.json"), config, home, user, workspace })
    }

    /// The same with the user's own config in place of the project's, unless `explicit` names one.
    pub fn of_user(mut self, explicit: Option<&Path>) -> Result<Self, PlacesError> {
        if explicit.is_none() {
            let usual = etcetera::choose_base_strategy().map_err(|_| PlacesError::NoHome)?;
            self.config = usual.config_dir().join("toolhub").join("toolhub.toml");
            self.servers = self.config.with_file_name("mcp.json");
            self.workspace.leave_config();
        }
        Ok(self)
    }

    /// The text of the settings or the servers; `None` if there is no such file. Of a trusted workspace it is the text
    /// that trust was checked for, and the file is not read again.
    pub(super) fn text(&self, file: &Path) -> Result<Option<String>, ConfigError> {
        let read = match self.workspace.config_bytes(file) {
            Some(bytes) => {
                String::from_utf8(bytes.to_vec()).map_err(|error| Error::new(ErrorKind::InvalidData, error))
            }
            None => std::fs::read_to_string(file),
        };
        match read {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ConfigError::io(file, &error)),
        }
    }
}
