//! The locations of the configuration, servers and data.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toolhub_client_config::ConfigError;

use toolhub_core::lang::LocalizedText;

use super::Settings;
use crate::trust::{RunTrust, Workspace, WorkspaceSearch};

/// The locations of the files.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The settings file, which need not exist.
    pub config: PathBuf,
    /// The servers file next to the settings, which need not exist.
    pub servers: PathBuf,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The user's home folder, which may contain skills.
    pub home_dir: Option<PathBuf>,
    /// The workspace of the current folder, which is used only if it is trusted. Empty by default.
    pub workspace: Workspace,
}

/// Why the locations cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// The user has no home folder.
    #[error("your home folder is not known: set `HOME`, or give `--home` and `--config`")]
    NoHome,
    /// The named config file does not exist.
    #[error("there is no config file `{}`: create it (it may be empty), or leave out `--config`", .0.display())]
    NoConfig(PathBuf),
}

impl Paths {
    /// The folders that tools never read: the data folder, and the user's own config folder, whose `mcp.json` may contain
    /// secrets.
    pub fn private_folders(&self) -> Vec<PathBuf> {
        let user_config_dir =
            etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("toolhub"));
        std::iter::once(self.data_dir.clone()).chain(user_config_dir).collect()
    }

    /// The command-line options for a program that uses these locations from any folder. A config file of a trusted folder is left
    /// out: named in an option, it would be used without trust checks.
    pub fn options(&self) -> std::io::Result<Vec<String>> {
        let config = (self.config.is_file() && !self.workspace.is_bound_config()).then_some(&self.config);
        let default = etcetera::choose_base_strategy().ok().map(|base| base.data_dir().join("toolhub"));
        let data_dir = Some(&self.data_dir).filter(|folder| Some(*folder) != default.as_ref());
        let mut options = Vec::new();
        for (option, path) in [("--config", config), ("--home", data_dir)] {
            if let Some(path) = path {
                options.extend([option.to_owned(), std::path::absolute(path)?.display().to_string()]);
            }
        }
        Ok(options)
    }

    /// The file of the vectors that a sentence encoder computes for tools.
    pub fn vectors(&self) -> PathBuf {
        self.data_dir.join("vectors.bin")
    }

    /// The file with the last stderr lines of a server.
    pub fn log_of(&self, server: &str) -> PathBuf {
        let safe: String =
            server.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
        self.data_dir.join("logs").join(format!("{safe}.stderr"))
    }

    /// The locations for these options; defaults apply to the others. The contents of the current folder are used only if it is
    /// on the user's list of trusted folders.
    pub fn find(config: Option<&Path>, data_dir: Option<&Path>) -> Result<Self, PathsError> {
        Self::find_trusting(config, data_dir, &RunTrust::default())
    }

    /// Like [`Self::find`], with folders that are trusted for this run. A config file that is named explicitly is used wherever
    /// it is, with the `mcp.json` next to it.
    pub fn find_trusting(
        config: Option<&Path>,
        data_dir: Option<&Path>,
        run: &RunTrust,
    ) -> Result<Self, PathsError> {
        let base_strategy = etcetera::choose_base_strategy().ok();
        let base_strategy = || base_strategy.as_ref().ok_or(PathsError::NoHome);
        let data_dir = match data_dir {
            Some(folder) => folder.to_owned(),
            None => base_strategy()?.data_dir().join("toolhub"),
        };
        let user_config_dir =
            base_strategy().ok().map(|base_strategy| base_strategy.config_dir().join("toolhub"));
        let home_dir = std::env::home_dir();
        let named = match config {
            Some(file) if file.is_file() => Some(file.to_owned()),
            Some(file) if file.is_dir() => Some(file.join("toolhub.toml")),
            Some(file) => return Err(PathsError::NoConfig(file.to_owned())),
            None => None,
        };
        let named_servers = named.as_ref().map(|file| file.with_file_name("mcp.json"));
        let search = WorkspaceSearch {
            here: Path::new("."),
            home_dir: home_dir.as_deref(),
            user_config: user_config_dir.as_deref(),
            named_servers: named_servers.as_deref(),
            data: &data_dir,
        };
        let mut workspace = Workspace::find(&search, run);
        let config = match named {
            Some(file) => file,
            None if workspace.has_config() => {
                workspace.use_config();
                PathBuf::from("toolhub.toml")
            }
            None => base_strategy()?.config_dir().join("toolhub").join("toolhub.toml"),
        };
        Ok(Self { servers: config.with_file_name("mcp.json"), config, data_dir, home_dir, workspace })
    }

    /// Uses the user's own config instead of the project's, unless `explicit` names one.
    pub fn of_user(mut self, explicit: Option<&Path>) -> Result<Self, PathsError> {
        if explicit.is_none() {
            let base_strategy = etcetera::choose_base_strategy().map_err(|_| PathsError::NoHome)?;
            self.config = base_strategy.config_dir().join("toolhub").join("toolhub.toml");
            self.servers = self.config.with_file_name("mcp.json");
            self.workspace.disable_project_config();
        }
        Ok(self)
    }

    /// Why a gateway must not be started with these settings: the user's own config requires tokens, and the project's config,
    /// which is used in its place, has none.
    pub fn dropped_tokens(&self, settings: &Settings) -> Option<LocalizedText> {
        let user_config =
            etcetera::choose_base_strategy().ok()?.config_dir().join("toolhub").join("toolhub.toml");
        if !self.workspace.has_config() || self.config == user_config || !settings.auth.tokens.is_empty() {
            return None;
        }
        let text = match std::fs::read_to_string(&user_config) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return None;
            }
            // A file that cannot be read may require tokens.
            Err(error) => {
                let user_config = user_config.display();
                return Some(LocalizedText::new(
                    format!(
                        "not started: your own config `{user_config}` cannot be read ({error}), so that it may require tokens, and `toolhub.toml` of this folder, which is used in its place, has none: make your own config readable, or name a config with `--config`"
                    ),
                    format!(
                        "未启动：无法读取你自己的配置 `{user_config}`（{error}），它可能要求令牌，而此处改用的 `toolhub.toml` 没有令牌：请使该配置可读，或用 `--config` 指定配置"
                    ),
                ));
            }
        };
        let document = text.parse::<toml_edit::DocumentMut>();
        // A file that cannot be parsed may require tokens.
        document.map_or(true, |document| document.contains_key("auth")).then(|| {
            let user_config = user_config.display();
            LocalizedText::new(
                format!("not started: your own config `{user_config}` requires tokens, and `toolhub.toml` of this folder, which is used in its place, has none: add `[[auth.tokens]]` to it, or name a config with `--config`"),
                format!("未启动：你自己的配置 `{user_config}` 要求令牌，而此处改用的 `toolhub.toml` 没有令牌：请在其中加入 `[[auth.tokens]]`，或用 `--config` 指定配置"),
            )
        })
    }

    /// The text of the settings or servers; `None` if the file does not exist. For a trusted workspace it is the text that was
    /// checked, and the file is not read again.
    pub fn text(&self, file: &Path) -> Result<Option<String>, ConfigError> {
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
