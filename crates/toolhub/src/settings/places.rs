//! Where the files are: config, servers, data.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Where the files are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The settings; the file need not exist.
    pub config: PathBuf,
    /// The servers, beside the settings; need not exist.
    pub servers: PathBuf,
    /// The servers of the current folder's project; need not exist.
    pub project_servers: Option<PathBuf>,
    /// The data folder.
    pub home: PathBuf,
    /// The current folder, whose project may have skills.
    pub project: Option<PathBuf>,
    /// The user's home, which may have skills.
    pub user: Option<PathBuf>,
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

    /// The places for these choices of the user; what is not chosen is found in the usual places.
    pub fn find(config: Option<&Path>, home: Option<&Path>) -> Result<Self, PlacesError> {
        let usual = etcetera::choose_base_strategy().ok();
        let usual = || usual.as_ref().ok_or(PlacesError::NoHome);
        let here = Path::new("toolhub.toml");
        let config = match config {
            Some(file) if file.is_file() => file.to_owned(),
            Some(file) if file.is_dir() => file.join("toolhub.toml"),
            Some(file) => return Err(PlacesError::NoConfig(file.to_owned())),
            None if here.is_file() => here.to_owned(),
            None => usual()?.config_dir().join("toolhub").join("toolhub.toml"),
        };
        let home = match home {
            Some(folder) => folder.to_owned(),
            None => usual()?.data_dir().join("toolhub"),
        };
        Ok(Self {
            servers: config.with_file_name("mcp.json"),
            project_servers: Some(".mcp.json".into()),
            config,
            home,
            project: std::env::current_dir().ok(),
            user: std::env::home_dir(),
        })
    }
}
