//! The state that consent to a project's server is bound to. It is checked again before each start.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolhub_client_config::StdioSpec;
use toolhub_core::consent::ConsentScope;
use toolhub_core::lang::LocalizedText;

use super::trust_list::TrustList;
use crate::trust::files::FileState;
use crate::trust::launch::LaunchSite;
use crate::trust::location::FolderLocation;

/// Whether two entries start the same process.
pub(in crate::trust) fn starts_same_process(one: &StdioSpec, other: &StdioSpec) -> bool {
    (&one.command, &one.args, &one.env, &one.cwd) == (&other.command, &other.args, &other.env, &other.cwd)
}

/// The state that a consent is bound to.
pub(in crate::trust) struct ConsentBinding {
    pub(in crate::trust) digest: String,
    /// The files that must be unchanged when the process is started.
    pub(in crate::trust) launch: Option<Launch>,
}

/// A program and the files that it is started from.
pub(in crate::trust) struct Launch {
    pub(in crate::trust) location: FolderLocation,
    /// The data folder, which contains the list of trusted folders.
    pub(in crate::trust) data: PathBuf,
    pub(in crate::trust) spec: StdioSpec,
    pub(in crate::trust) files: BTreeMap<PathBuf, FileState>,
}

impl ConsentScope for ConsentBinding {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn verify(&self) -> Result<(), LocalizedText> {
        let Some(launch) = &self.launch else { return Ok(()) };
        let site = LaunchSite::of(&launch.location);
        let now = site.named_files(&launch.spec)?;
        if now == launch.files {
            return Ok(());
        }
        // In a long-running process the owner may have trusted the change meanwhile.
        let list = TrustList::read(&launch.data);
        if list.launch_files(&launch.location, &launch.spec).is_some_and(|files| files == now) {
            return Ok(());
        }
        let differs = |file: &&PathBuf| now.get(*file) != launch.files.get(*file);
        let changed = launch.files.keys().chain(now.keys()).find(differs);
        let file = changed.map(|file| file.display().to_string()).unwrap_or_default();
        Err(LocalizedText::new(
            format!(
                "not started: `{file}` changed since you trusted it; run `toolhub trust` in its project, and then try again"
            ),
            format!("未启动：`{file}` 在你信任之后有改动；请在其项目中运行 `toolhub trust` 后重试"),
        ))
    }
}
