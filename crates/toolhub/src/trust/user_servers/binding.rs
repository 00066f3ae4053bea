//! What the owner's own servers load from a trusted folder: it is reviewed with the folder, and bound like the project's own
//! entries. A server whose files have changed, or that was added later, is treated as in a folder that is not trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolhub_client_config::{StdioSpec, TransportSpec};
use toolhub_core::ServerId;
use toolhub_core::hex;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_client::config::parse_servers;

use crate::settings::Settings;
use crate::trust::files;
use crate::trust::launch::{LaunchFiles, LaunchSite};
use crate::trust::location::FolderLocation;
use crate::trust::record::trust_list::TrustList;
use crate::trust::scan::CONFIG;

/// The reviewed state of a trusted folder.
pub(in crate::trust) struct UserServerBinding {
    pub(in crate::trust) location: FolderLocation,
    /// The data folder, which contains the list of trusted folders.
    pub(in crate::trust) data: PathBuf,
}

#[cfg(test)]
thread_local! {
    /// The number of checks of the current thread: each may read every file of a project.
    pub(in crate::trust) static CHECKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl UserServerBinding {
    /// Whether the files that an entry loads are those that were reviewed. The list is read again: the owner may have trusted a
    /// change meanwhile, or revoked the trust.
    pub(in crate::trust) fn covers(&self, spec: &StdioSpec) -> bool {
        #[cfg(test)]
        CHECKS.set(CHECKS.get() + 1);
        let list = TrustList::read(&self.data);
        let record = self.location.folder.to_str().and_then(|folder| list.folders.get(folder));
        let Some(known) = record.and_then(|record| record.user_servers.get(&key_of(spec))) else {
            return false;
        };
        let site = LaunchSite::of(&self.location);
        site.user_server_files(spec).is_ok_and(|loaded| files::digest_of(&loaded.files) == *known)
    }
}

/// An entry of the owner's own configuration, and what it loads from the folder.
#[derive(Debug)]
pub(in crate::trust) struct UserServerLaunch {
    pub(in crate::trust) id: ServerId,
    pub(in crate::trust) spec: StdioSpec,
    pub(in crate::trust) loaded: Result<LaunchFiles, LocalizedText>,
}

/// The stdio servers of a file of the owner, with the variables that the settings beside it pass to them.
pub(in crate::trust) fn user_servers(file: &Path) -> Vec<(ServerId, StdioSpec)> {
    let text_of = |file: &Path| String::from_utf8(files::read(file).ok()??.0).ok();
    let Some(text) = text_of(file) else { return Vec::new() };
    let servers = parse_servers(file, &text).unwrap_or_default();
    let config = file.with_file_name(CONFIG);
    let settings = text_of(&config).and_then(|text| Settings::parse(&config, &text).ok()).unwrap_or_default();
    let passed = |id: &ServerId| settings.servers.iter().find(|extras| extras.id == id.as_str());
    let stdio = servers.into_iter().filter_map(|server| match server.transport {
        TransportSpec::Stdio(mut stdio) => {
            stdio.env_pass = passed(&server.id).map(|extras| extras.env_pass.clone()).unwrap_or_default();
            Some((server.id, stdio))
        }
        TransportSpec::Http(_) | TransportSpec::Sse(_) => None,
    });
    stdio.collect()
}

/// What the servers load from a folder.
pub(in crate::trust) fn launches(
    servers: Vec<(ServerId, StdioSpec)>,
    location: &FolderLocation,
) -> Vec<UserServerLaunch> {
    let site = LaunchSite::of(location);
    let launch = |(id, spec): (ServerId, StdioSpec)| {
        let loaded = site.user_server_files(&spec);
        UserServerLaunch { id, spec, loaded }
    };
    servers.into_iter().map(launch).collect()
}

impl UserServerLaunch {
    /// Why what it loads cannot be bound, and what to do; `None` if it can be.
    pub(in crate::trust) fn problem(&self) -> Option<LocalizedText> {
        let why = self.loaded.as_ref().err()?;
        let (id, en, zh) = (&self.id, why.localize(Lang::En), why.localize(Lang::Zh));
        Some(LocalizedText::new(
            format!(
                "`{id}`: what it loads from this folder cannot be bound, so that it is treated as in a folder that is not trusted: {en}. Write absolute paths or an absolute `cwd` in its entry, or use `--trust` for one run"
            ),
            format!(
                "`{id}`：无法绑定它从此目录加载的内容，因此按未受信任的目录处理：{zh}。请在其配置中写绝对路径或绝对路径的 `cwd`，或用 `--trust` 仅信任一次"
            ),
        ))
    }
}

/// The entries and the digests of their files, for the record of the folder. What cannot be bound is left out.
pub(in crate::trust) fn record_of(launches: &[UserServerLaunch]) -> BTreeMap<String, String> {
    let bound = launches.iter().filter_map(|launch| {
        let loaded = launch.loaded.as_ref().ok()?;
        Some((key_of(&launch.spec), files::digest_of(&loaded.files)))
    });
    bound.collect()
}

/// A digest of what an entry starts.
fn key_of(spec: &StdioSpec) -> String {
    let cwd = spec.cwd.as_ref().map(|cwd| cwd.as_os_str().as_encoded_bytes());
    let entry = serde_json::json!([spec.command, spec.args, spec.env, cwd]);
    hex::sha256(entry.to_string().as_bytes())
}
