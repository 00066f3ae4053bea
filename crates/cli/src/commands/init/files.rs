//! Finds the MCP clients of this machine, and checks whether their files may be edited: regular files of this user, and no link
//! to an unexpected location.

use std::path::{Path, PathBuf};

use toolhub_client_config as clients;
use toolhub_client_config::{Client, ClientEnvironment, ConfigError, ConfigLocation, FileScope};
use toolhub_core::lang::LocalizedText;

/// The maximum size of a client's file. The files contain settings, and in Claude Code's case also a history.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// An installed client.
#[derive(Debug, Clone)]
pub(crate) struct InstalledClient {
    pub(crate) client: Client,
    pub(crate) location: ConfigLocation,
}

/// The environment for files of the user: no folder counts as the current project.
pub(crate) fn client_environment() -> ClientEnvironment {
    ClientEnvironment { folder: PathBuf::new(), ..ClientEnvironment::current() }
}

/// The user's files of a client, in its own order.
pub(crate) fn user_locations(client: Client, environment: &ClientEnvironment) -> Vec<ConfigLocation> {
    clients::config_locations(client, environment)
        .into_iter()
        .filter(|location| location.scope == FileScope::User)
        .collect()
}

/// The installed clients: those with a config file, or with a folder for it.
pub(crate) fn installed_clients(environment: &ClientEnvironment) -> Vec<InstalledClient> {
    let found = |client: Client| {
        let locations = user_locations(client, environment);
        let location = locations
            .iter()
            .find(|location| location.file.symlink_metadata().is_ok())
            .or_else(|| locations.iter().find(|location| has_folder(location, environment)))?;
        Some(InstalledClient { client, location: location.clone() })
    };
    Client::all().filter_map(found).collect()
}

/// Whether a client without a config file has a folder. The home folder itself does not count.
fn has_folder(location: &ConfigLocation, environment: &ClientEnvironment) -> bool {
    let folder = location.client.folder(&location.file, environment);
    folder.is_some_and(|folder| Some(&folder) != environment.home.as_ref() && folder.is_dir())
}

/// The canonical path of a file. Refuses links to outside of the home folder, files that are not regular, and files of another
/// user, whose owner would change when they are replaced.
pub(crate) fn checked_path(file: &Path, home: Option<&Path>) -> Result<PathBuf, ConfigError> {
    let wrong = |en: String, zh: String| ConfigError::whole(file, LocalizedText::new(en, zh));
    let failed = |error: std::io::Error| ConfigError::io(file, &error);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real_folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let Ok(metadata) = file.symlink_metadata() else {
        return Ok(real_folder.join(file.file_name().unwrap_or_default()));
    };
    let real = file.canonicalize().map_err(failed)?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let inside = real.parent() == Some(&real_folder) || home.is_some_and(|home| real.starts_with(home));
    if metadata.is_symlink() && !inside {
        let target = real.display();
        return Err(wrong(
            format!(
                "it is a link to `{target}`, outside of your home folder, and is not followed: edit that file yourself"
            ),
            format!("它是指向主目录之外 `{target}` 的链接，不会跟随：请自行编辑该文件"),
        ));
    }
    let metadata = real.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(wrong(
            "it is not a regular file of less than 64 MiB".to_owned(),
            "它不是小于 64 MiB 的普通文件".to_owned(),
        ));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let owner = metadata.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(wrong(
                format!("it belongs to another user (uid {owner})"),
                format!("它属于其他用户（uid {owner}）"),
            ));
        }
    }
    Ok(real)
}

/// The text of a file; `None` if it does not exist.
pub(crate) fn text_of(file: &Path) -> Result<Option<String>, ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError::io(file, &error)),
    }
}
