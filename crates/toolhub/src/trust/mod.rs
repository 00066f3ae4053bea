//! Workspace trust: decides whether the settings, servers and skills of the current folder are used, and grants the consent that
//! starting a server requires. This is the only code that grants it.

mod config_state;
mod files;
mod launch;
mod launch_form;
mod location;
mod notice;
mod record;
mod review;
mod run_changes;
mod run_trust;
mod scan;
mod user_servers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use toolhub_client_config::{StdioSpec, TransportSpec};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Consent, ServerId};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_skills::SkillOrigin;

pub use launch_form::LaunchScope;
pub use record::changes::{ChangeKind, FileChange};
pub use record::own_edits::OwnEdit;
pub use record::trust_list::{TrustList, TrustRecord};
pub use review::{FolderReview, ReviewedAddress, ReviewedProgram, ReviewedSkill};
pub use run_trust::RunTrust;
pub(crate) use scan::AGENT_SKILLS;
pub(crate) use user_servers::entry::Restriction;

use config_state::ConfigState;
use files::FileState;
use location::{FolderLocation, contains_data_folder, project_folders};
use record::changes;
use record::consent_binding::{ConsentBinding, Launch, starts_same_process};
use review::folder_review;
use scan::{CONFIG, FolderScan, SERVERS, SHARED_SERVERS, ScanDepth};
use user_servers::binding::{self, UserServerBinding, UserServerLaunch};
use user_servers::entry::UserServerEntry;
use user_servers::steering;

/// The trust decision for a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStatus {
    /// `toolhub trust` was run for exactly this state.
    Trusted,
    /// It is trusted for this run.
    TrustedForRun,
    /// The folder is not on the list of trusted folders.
    New,
    /// The folder changed since it was trusted.
    Changed,
    /// Another user owns the folder or a file in it.
    ForeignOwner(u32),
    /// The folder cannot be checked completely.
    Unreadable(LocalizedText),
}

impl TrustStatus {
    /// Whether its contents are used.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted | Self::TrustedForRun)
    }
}

/// A folder with settings, servers or skills.
#[derive(Debug, Clone)]
struct Folder {
    scan: Arc<FolderScan>,
    digest: String,
    status: TrustStatus,
    /// Whether it is the current folder; of parent folders only the skills are used.
    is_here: bool,
    /// The changes since the folder was trusted.
    changes: Vec<FileChange>,
    /// What the owner's own servers load from it. Only for a review, so that what is recorded is what was shown.
    user_servers: Arc<OnceLock<Vec<UserServerLaunch>>>,
}

impl Folder {
    fn user_servers(&self) -> &[UserServerLaunch] {
        self.user_servers.get().map(Vec::as_slice).unwrap_or_default()
    }
}

/// The settings, servers and skills of the current folder, and of its parents in the same repository. Empty by default.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    folders: Vec<Folder>,
    /// Whether the settings and servers in use are those of the project.
    config_in_use: bool,
    data: PathBuf,
    /// The current folder, if it may affect the owner's own programs only in a reviewed state: neither the owner's own folder nor
    /// trusted for this run.
    restricted_folder: Option<FolderLocation>,
    /// Whether the current folder is trusted permanently.
    is_trusted_permanently: bool,
    /// The config files of the current folder, also if it has none.
    config_state: Option<ConfigState>,
    /// The folder of the user's own configuration.
    user_config: Option<PathBuf>,
    /// The servers file beside a config that was named on the command line.
    named_servers: Option<PathBuf>,
    /// Whether the current folder changed since it was trusted, including that everything was removed.
    changed_here: bool,
    home_dir: Option<PathBuf>,
    /// The result of [`steering::find_in`] for the current folder, for notes. Each start checks the folder again.
    steering: Arc<OnceLock<Option<String>>>,
}

/// The folders to search for a workspace.
pub(crate) struct WorkspaceSearch<'a> {
    /// The current folder.
    pub(crate) here: &'a Path,
    /// The user's home.
    pub(crate) home_dir: Option<&'a Path>,
    /// The folder of the user's own configuration.
    pub(crate) user_config: Option<&'a Path>,
    /// The servers file beside a config that was named on the command line.
    pub(crate) named_servers: Option<&'a Path>,
    /// The data folder, which contains the list of trusted folders.
    pub(crate) data: &'a Path,
}

impl Workspace {
    /// Scans the current folder and decides which parts of it are used.
    pub(crate) fn find(search: &WorkspaceSearch<'_>, run: &RunTrust) -> Self {
        let Ok(here) = search.here.canonicalize() else { return Self::default() };
        let real = |path: Option<&Path>| path.and_then(|path| path.canonicalize().ok());
        let (home_dir, user_config) = (real(search.home_dir), real(search.user_config));
        let project_folders = project_folders(&here, home_dir.as_deref());
        let top = project_folders.last().cloned().unwrap_or_else(|| here.clone());
        let list = TrustList::read(search.data);
        let mut folders = Vec::new();
        let is_own = Some(&here) == home_dir.as_ref() || Some(&here) == user_config.as_ref();
        let location = FolderLocation { folder: here.clone(), project: top.clone(), is_home: false };
        let mut restricted_folder = Some(location).filter(|_| !is_own);
        let mut is_trusted_permanently = false;
        let mut config_state = None;
        let mut changed_here = false;
        for folder in project_folders.into_iter().filter(|folder| Some(folder) != user_config.as_ref()) {
            let is_here = folder == here;
            let is_home = Some(&folder) == home_dir.as_ref();
            let known = match contains_data_folder(&folder, search.data, home_dir.as_deref()) {
                true => None,
                false => known(&list, &folder),
            };
            let by_run = run.names(&folder) || run.current_folder;
            // In a parent folder, and in a world-writable folder such as `/tmp`, files may belong to other users: `--trust` does
            // not apply to those.
            let may_be_foreign = (!is_here && !run.names(&folder)) || files::is_open_to_all(&folder);
            let depth = match (run.review || known.is_some(), by_run) {
                (true, false) => ScanDepth::Full,
                (_, true) if may_be_foreign => ScanDepth::Full,
                (_, true) => ScanDepth::Config,
                (false, false) => ScanDepth::Names,
            };
            let foreign = |scan: &FolderScan| may_be_foreign && scan.foreign_owner().is_some();
            let scan = FolderScan::of(FolderLocation { folder, project: top.clone(), is_home }, depth);
            let digest = scan.digest();
            let status = decide(&scan, &digest, known, by_run && !foreign(&scan));
            is_trusted_permanently |= is_here && status == TrustStatus::Trusted;
            if is_here && status == TrustStatus::TrustedForRun {
                restricted_folder = None;
            }
            if is_here {
                config_state = Some(ConfigState::of(&scan, status == TrustStatus::TrustedForRun && !is_own));
            }
            changed_here |= is_here && status == TrustStatus::Changed;
            let affects_tools = run.review
                && is_here
                && steering::find_in(&scan.location.folder, home_dir.as_deref()).is_some();
            if (scan.is_empty() && !affects_tools) || (!is_here && scan.skill_folders.is_empty()) {
                continue;
            }
            let changes = match (&status, known) {
                (TrustStatus::Changed, Some(record)) => changes::since(record, &scan),
                _ => Vec::new(),
            };
            let user_servers = Arc::default();
            folders.push(Folder { scan: Arc::new(scan), digest, status, is_here, changes, user_servers });
        }
        let data = search.data.to_owned();
        let found = Self {
            folders,
            config_in_use: false,
            data,
            restricted_folder,
            is_trusted_permanently,
            config_state,
            user_config,
            named_servers: search.named_servers.map(Path::to_path_buf),
            changed_here,
            home_dir,
            steering: Arc::default(),
        };
        for folder in found.folders.iter().filter(|_| run.review) {
            folder.user_servers.get_or_init(|| found.user_server_launches(folder));
        }
        found
    }

    /// Whether it has settings and is trusted.
    pub(crate) fn has_config(&self) -> bool {
        self.here().is_some_and(|folder| folder.scan.configs.contains_key(CONFIG))
    }

    /// Marks the project's settings and servers as used.
    pub(crate) fn use_config(&mut self) {
        self.config_in_use = true;
    }

    /// Marks the project's settings and servers as unused.
    pub(crate) fn disable_project_config(&mut self) {
        self.config_in_use = false;
    }

    /// The bytes of the project's settings or servers, if these are the ones in use.
    pub(crate) fn config_bytes(&self, file: &Path) -> Option<&[u8]> {
        let folder = self.here().filter(|_| self.config_in_use)?;
        let name = [CONFIG, SERVERS].into_iter().find(|name| file == Path::new(name))?;
        Some(folder.scan.configs.get(name).map(Vec::as_slice).unwrap_or_default())
    }

    /// The name and text of the project's `.mcp.json`, if it is used.
    pub(crate) fn shared_servers(&self) -> Option<(&'static Path, &[u8])> {
        let bytes = self.here()?.scan.configs.get(SHARED_SERVERS)?;
        Some((Path::new(SHARED_SERVERS), bytes))
    }

    /// The trusted folders of agents' skills, nearest first.
    pub(crate) fn skill_folders(&self) -> Vec<PathBuf> {
        let trusted = self.folders.iter().filter(|folder| folder.status.is_trusted());
        let roots = trusted.filter(|folder| !folder.scan.location.is_home);
        roots.flat_map(|folder| AGENT_SKILLS.map(|name| folder.scan.location.folder.join(name))).collect()
    }

    /// The origin of skills in `folder`, which the settings in `config` name; `None` if they are not used. Skills inside the
    /// current project have the project as origin, even if its settings were named on the command line.
    pub(crate) fn origin_of_skills(&self, config: &Path, folder: &Path) -> Option<SkillOrigin> {
        if self.config_in_use {
            return Some(SkillOrigin::Project);
        }
        let real = |path: &Path| path.canonicalize().ok();
        let config_folder = config.parent().filter(|folder| !folder.as_os_str().is_empty());
        let config_folder = real(config_folder.unwrap_or(Path::new(".")));
        let here = self.folders.iter().find(|folder| folder.is_here);
        let of_project = here.filter(|here| config_folder.as_ref() == Some(&here.scan.location.folder));
        let inside = |here: &&Folder| {
            real(folder).is_some_and(|folder| folder.starts_with(&here.scan.location.project))
        };
        match of_project.filter(inside) {
            None => Some(SkillOrigin::Config),
            Some(here) => here.status.is_trusted().then_some(SkillOrigin::Project),
        }
    }

    /// Whether the settings in use are those of a trusted project and bound to their state at that time. Not if the folder is
    /// trusted for this run only.
    pub fn is_bound_config(&self) -> bool {
        self.config_in_use && self.here().is_some_and(|folder| folder.status == TrustStatus::Trusted)
    }

    /// The consequences of an untrusted current folder for a server of the owner's own `file`; `None` if it starts as configured.
    pub(crate) fn restriction(&self, spec: &ServerSpec, file: &Path) -> Option<Restriction> {
        let entry = self.user_server_entry(spec, file)?;
        let steering = self.steering.get_or_init(|| entry.steering_file()).clone();
        entry.restriction(steering)
    }

    /// A stdio server of the owner's own `file`, if the current folder is not trusted.
    fn user_server_entry(&self, spec: &ServerSpec, file: &Path) -> Option<UserServerEntry> {
        let here = self.restricted_folder.as_ref()?;
        let TransportSpec::Stdio(stdio) = &spec.transport else { return None };
        if here.contains_file(file) {
            return None;
        }
        Some(self.user_server_entry_in(here, spec.id.clone(), stdio.clone()))
    }

    fn user_server_entry_in(&self, here: &FolderLocation, id: ServerId, stdio: StdioSpec) -> UserServerEntry {
        let binding = || UserServerBinding { location: here.clone(), data: self.data.clone() };
        UserServerEntry {
            id,
            stdio,
            here: here.folder.clone(),
            project: here.project.clone(),
            home_dir: self.home_dir.clone(),
            neutral: self.neutral_folder(),
            binding: self.is_trusted_permanently.then(binding),
        }
    }

    /// The folder with the empty working directories of the owner's own programs.
    pub(crate) fn neutral_folder(&self) -> PathBuf {
        let folder = self.data.join("work");
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let _ = toolhub_private_files::create_private_dir(&folder);
        folder
    }

    /// What the owner's own servers load from the current folder, of those that depend on it: those of the config that was named
    /// on the command line, or of the user's own one, unless settings of the project replace it.
    fn user_server_launches(&self, folder: &Folder) -> Vec<UserServerLaunch> {
        let Some(here) = self.restricted_folder.as_ref().filter(|_| folder.is_here) else {
            return Vec::new();
        };
        let file = match &self.named_servers {
            Some(file) => Some(file.clone()).filter(|file| !here.contains_file(file)),
            None => {
                let config = self.user_config.as_ref().filter(|_| !folder.scan.configs.contains_key(CONFIG));
                config.map(|config| config.join(SERVERS))
            }
        };
        let mut servers = file.map(|file| binding::user_servers(&file)).unwrap_or_default();
        servers.retain(|(id, stdio)| {
            let entry = self.user_server_entry_in(here, id.clone(), stdio.clone());
            entry.restriction_without_trust(entry.steering_file()).is_some()
        });
        binding::launches(servers, here)
    }

    /// Grants consent to the Python interpreter of skills, if no settings name one.
    pub(crate) fn default_python_consent(&self) -> Consent {
        match self.is_trusted_permanently {
            true => Consent::of_owner(),
            false => self.python_consent("python3", &self.data.join("python")),
        }
    }

    /// Grants consent to the Python interpreter of skills that the settings in `file` name.
    pub(crate) fn python_consent(&self, python: &str, file: &Path) -> Consent {
        let stdio = StdioSpec { command: python.to_owned(), ..StdioSpec::default() };
        let id = ServerId::new("python");
        self.consent(&ServerSpec::new(id, TransportSpec::Stdio(stdio), file.to_owned()), file)
    }

    /// Grants consent to a server of `file`. All consent is granted here.
    pub(crate) fn consent(&self, spec: &ServerSpec, file: &Path) -> Consent {
        let of_project = file == Path::new(SHARED_SERVERS) || self.config_bytes(file).is_some();
        if !of_project {
            return match self.user_server_entry(spec, file) {
                Some(entry) => Consent::of_owner_by(Arc::new(entry)),
                None => Consent::of_owner(),
            };
        }
        let Some(folder) = self.here() else { return Consent::default() };
        let launch = match (&spec.transport, &folder.status) {
            // Trusted for this run, including later changes of the files that it loads.
            (TransportSpec::Stdio(_), TrustStatus::TrustedForRun) => None,
            (TransportSpec::Stdio(stdio), _) => {
                let known = folder.scan.launches.iter().find(|known| starts_same_process(&known.spec, stdio));
                let Some(known) = known else { return Consent::default() };
                let (location, data) = (folder.scan.location.clone(), self.data.clone());
                Some(Launch { location, data, spec: known.spec.clone(), files: known.loaded.files.clone() })
            }
            (TransportSpec::Http(_) | TransportSpec::Sse(_), _) => None,
        };
        // For one run the folder is trusted regardless of its contents, so the digest is its path.
        let digest = match folder.status {
            TrustStatus::TrustedForRun => folder.scan.location.folder.display().to_string(),
            _ => folder.digest.clone(),
        };
        Consent::bound(Arc::new(ConsentBinding { digest, launch }))
    }

    /// A one-line notice of the parts that are not used; `None` if everything is used. `explicit` is a config file that was named
    /// on the command line, and is used for that reason.
    pub fn notice(&self, explicit: Option<&Path>) -> Option<LocalizedText> {
        let explicit = explicit.and_then(|file| file.canonicalize().ok());
        let notices = self.folders.iter().filter_map(|folder| folder.notice(explicit.as_deref()));
        let notices: Vec<LocalizedText> = notices.collect();
        let join = |lang, gap: &str| {
            use toolhub_core::Localize as _;
            notices.iter().map(|notice| notice.localize(lang)).collect::<Vec<_>>().join(gap)
        };
        (!notices.is_empty()).then(|| {
            LocalizedText::new(join(toolhub_core::Lang::En, "; "), join(toolhub_core::Lang::Zh, "；"))
        })
    }

    /// The contents of each folder, for review by its owner.
    pub fn reviews(&self) -> Vec<FolderReview> {
        let list = TrustList::read(&self.data);
        let are_user_servers_current = |folder: &Folder| {
            let record = known(&list, &folder.scan.location.folder);
            let is_known = |record: &TrustRecord| {
                binding::record_of(folder.user_servers())
                    .iter()
                    .all(|(key, now)| record.user_servers.get(key) == Some(now))
            };
            record.is_none_or(is_known)
        };
        let review = |folder: &Folder| FolderReview {
            are_user_servers_current: are_user_servers_current(folder),
            changes: folder.changes.clone(),
            is_here: folder.is_here,
            ..folder_review::review(&folder.scan, &folder.status, folder.user_servers())
        };
        self.folders.iter().map(review).collect()
    }

    /// Whether the current folder is trusted, permanently or for this run.
    pub fn is_trusted_here(&self) -> bool {
        self.here().is_some()
    }

    /// The folders that `toolhub trust` would trust, the current one first.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| folder.scan.location.folder.as_path())
    }

    /// Whether a file is a config file of the current folder and unchanged since the folder was trusted.
    pub fn has_trusted(&self, file: &Path) -> bool {
        let real = file.canonicalize().ok();
        let names = |folder: &Folder| {
            folder.scan.configs.keys().map(|name| folder.scan.location.folder.join(name)).collect()
        };
        let files: Vec<PathBuf> = self.here().map(names).unwrap_or_default();
        real.is_some_and(|real| files.contains(&real))
    }

    /// Trusts every folder in its scanned state.
    pub fn trust(&self) -> Result<(), LocalizedText> {
        let home_dir = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let mut records = BTreeMap::new();
        for folder in &self.folders {
            match &folder.status {
                TrustStatus::Unreadable(why) => return Err(why.clone()),
                TrustStatus::ForeignOwner(uid) => return Err(foreign(*uid)),
                _ => {}
            }
            if let Some(uid) = folder.scan.foreign_owner() {
                return Err(foreign(uid));
            }
            let folder_path = &folder.scan.location.folder;
            if contains_data_folder(folder_path, &self.data, home_dir.as_deref()) {
                let data = self.data.display();
                return Err(LocalizedText::new(
                    format!(
                        "the data folder `{data}` lies inside the project, which could bring its own list of trusted folders: choose another with `--home`, or use `--trust`"
                    ),
                    format!(
                        "数据目录 `{data}` 位于项目之内，项目可能自带信任列表：请用 `--home` 另选，或使用 `--trust`"
                    ),
                ));
            }
            let Some(path) = folder_path.to_str() else {
                let display = folder_path.display();
                return Err(LocalizedText::new(
                    format!("the path `{display}` is not UTF-8: rename the folder, or use `--trust`"),
                    format!("路径 `{display}` 不是 UTF-8：请重命名目录，或使用 `--trust`"),
                ));
            };
            let user_servers = binding::record_of(folder.user_servers());
            records.insert(
                path.to_owned(),
                TrustRecord { user_servers, ..record(&folder.scan, &folder.digest) },
            );
        }
        TrustList::read(&self.data).change(|folders| {
            for (path, mut record) in records {
                // Servers of another config that was reviewed here stay bound to what was shown then.
                let earlier = folders.remove(&path).map(|known| known.user_servers).unwrap_or_default();
                record.user_servers = earlier.into_iter().chain(record.user_servers).collect();
                folders.insert(path, record);
            }
        })
    }

    /// Keeps the current folder trusted after a command of the owner changed `edited`, if nothing else changed.
    pub fn keep_trust(&self, edited: &[&Path]) -> Result<(), LocalizedText> {
        if let Some(state) = self.config_state.as_ref().filter(|state| state.is_run_trusted) {
            if contains_data_folder(&state.folder, &self.data, self.home_dir.as_deref()) {
                return Err(LocalizedText::new(
                    "a running `toolhub serve` that trusts this folder for its run only does not use this change, since the data folder lies in it: restart `toolhub serve`",
                    "正在运行的 `toolhub serve` 只在本次运行中信任此目录，而数据目录位于其中，因此不会采用此改动：请重新启动 `toolhub serve`",
                ));
            }
            return OwnEdit::new(&state.folder, &self.data, state.files.clone()).finish(edited);
        }
        let Some(folder) = self.here().filter(|folder| folder.status == TrustStatus::Trusted) else {
            return Ok(());
        };
        let folder_path = &folder.scan.location.folder;
        let edited: Vec<PathBuf> = edited.iter().map(|file| folder_path.join(file)).collect();
        let now = FolderScan::of(folder.scan.location.clone(), ScanDepth::Full);
        // Files that appeared meanwhile were not reviewed.
        let is_new = |key: &(scan::WorkspacePart, PathBuf)| {
            !folder.scan.parts.contains_key(key) && !edited.iter().any(|edited| key.1.starts_with(edited))
        };
        let same = now.problems.is_empty()
            && !now.parts.keys().any(|key| key.0 != scan::WorkspacePart::Launched && is_new(key))
            && folder.scan.parts.iter().all(|((part, path), state)| {
                edited.iter().any(|edited| path.starts_with(edited))
                || now.parts.get(&(*part, path.clone())) == Some(state)
                // An entry that was removed no longer names its files.
                || (*part == scan::WorkspacePart::Launched && !now.parts.contains_key(&(*part, path.clone())))
            });
        let Some(path) = folder_path.to_str().filter(|_| same) else { return Ok(()) };
        let digest = now.digest();
        TrustList::read(&self.data).change(|folders| {
            let user_servers = folders.get(path).map(|known| known.user_servers.clone()).unwrap_or_default();
            folders.insert(path.to_owned(), TrustRecord { user_servers, ..record(&now, &digest) });
        })
    }

    /// The current folder, if it is trusted.
    fn here(&self) -> Option<&Folder> {
        self.folders.iter().find(|folder| folder.is_here && folder.status.is_trusted())
    }
}

fn record(scan: &FolderScan, digest: &str) -> TrustRecord {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    TrustRecord {
        sha256: digest.to_owned(),
        uid: files::current_user(),
        at,
        files: changes::files_of(scan),
        user_servers: BTreeMap::new(),
    }
}

impl TrustList {
    /// Whether a folder is unchanged since it was trusted.
    pub fn is_current(&self, folder: &str) -> bool {
        let home_dir = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let path = Path::new(folder);
        let top = project_folders(path, home_dir.as_deref()).pop().unwrap_or_else(|| path.to_owned());
        let location = FolderLocation {
            folder: path.to_owned(),
            project: top,
            is_home: home_dir.as_deref() == Some(path),
        };
        let scan = FolderScan::of(location, ScanDepth::Full);
        decide(&scan, &scan.digest(), self.folders.get(folder), false) == TrustStatus::Trusted
    }

    /// The files that a server of a trusted folder is started from, if the folder is unchanged since it was trusted.
    fn launch_files(
        &self,
        location: &FolderLocation,
        spec: &StdioSpec,
    ) -> Option<BTreeMap<PathBuf, FileState>> {
        let scan = FolderScan::of(location.clone(), ScanDepth::Full);
        let status = decide(&scan, &scan.digest(), known(self, &location.folder), false);
        let launches = Some(scan.launches).filter(|_| status == TrustStatus::Trusted)?;
        launches
            .into_iter()
            .find(|known| starts_same_process(&known.spec, spec))
            .map(|known| known.loaded.files)
    }
}

fn known<'a>(list: &'a TrustList, folder: &Path) -> Option<&'a TrustRecord> {
    list.folders.get(folder.to_str()?)
}

/// Decides whether a scanned folder is trusted.
fn decide(scan: &FolderScan, digest: &str, known: Option<&TrustRecord>, by_run: bool) -> TrustStatus {
    if let Some(problem) = scan.problems.first() {
        return TrustStatus::Unreadable(problem.clone());
    }
    if by_run {
        return TrustStatus::TrustedForRun;
    }
    if let Some(uid) = scan.foreign_owner() {
        return TrustStatus::ForeignOwner(uid);
    }
    match known {
        Some(record) if record.sha256 == digest && record.uid == files::current_user() => {
            TrustStatus::Trusted
        }
        Some(_) => TrustStatus::Changed,
        None => TrustStatus::New,
    }
}

fn foreign(uid: u32) -> LocalizedText {
    LocalizedText::new(
        format!(
            "it belongs to another user (uid {uid}), who could change it at any time: make it yours (chown), or use `--trust` for one run"
        ),
        format!(
            "它属于其他用户（uid {uid}），对方可随时改动：请先将其改为自己所有（chown），或用 `--trust` 仅信任一次"
        ),
    )
}

#[cfg(test)]
mod tests;
