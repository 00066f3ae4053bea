//! The environment that determines the locations of configuration files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux and other Unix systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The environment that determines file locations.
#[derive(Debug, Clone)]
pub struct ClientEnvironment {
    /// The operating system.
    pub system: OperatingSystem,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The current folder.
    pub folder: PathBuf,
    /// Folders from environment variables, such as `XDG_CONFIG_HOME`.
    pub named: BTreeMap<String, PathBuf>,
}

/// The scope of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileScope {
    /// The user.
    User,
    /// The project in this folder.
    Project(PathBuf),
}

impl ClientEnvironment {
    /// A path in the home folder.
    pub(crate) fn home(&self, path: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(path))
    }

    /// The folder in an environment variable, otherwise `path` in the home folder.
    pub(crate) fn env_folder_or(&self, name: &str, path: &str) -> Option<PathBuf> {
        self.named.get(name).cloned().or_else(|| self.home(path))
    }

    /// The folder for application settings.
    pub(crate) fn app_config_folder(&self) -> Option<PathBuf> {
        match self.system {
            OperatingSystem::Linux => self.env_folder_or("XDG_CONFIG_HOME", ".config"),
            OperatingSystem::MacOs => self.home("Library/Application Support"),
            OperatingSystem::Windows => self.env_folder_or("APPDATA", "AppData/Roaming"),
        }
    }
}
