//! Reloads the configuration of `toolhub serve`: changed files are read again, added, changed and removed servers are connected
//! or disconnected, and the routing is replaced; sections that need a restart are reported. An invalid configuration leaves the
//! last valid one in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolhub::settings::{Paths, Settings};
use toolhub::trust::{RunTrust, Workspace};
use toolhub::{BuildError, Gateways, Lang, Localize as _, ServerChanges};
use toolhub_core::ServerId;
use toolhub_core::lang::LocalizedText;

use crate::app::App;
use crate::render::screen::Screen;

/// Polling interval of the files. A change counts once two polls see the same state, so that a partially written file is not
/// read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What is reloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReloadScope {
    All,
    /// Keys and rules only: the hub runs without servers.
    Access,
}

/// Reloads the configuration of this run.
pub(crate) struct ConfigWatcher {
    scope: ReloadScope,
    config: Option<PathBuf>,
    home: Option<PathBuf>,
    trust: RunTrust,
    /// The state of the current folder that is in use, if it is trusted for this run.
    run_trusted: Option<String>,
    screen: Arc<Screen>,
    lang: Lang,
    /// The sections that were last reported to need a restart.
    restart: Vec<&'static str>,
    /// Warnings about the current configuration that have been printed.
    notes: Vec<LocalizedText>,
}

/// The state of a file by which changes are detected.
type Stamp = Option<(SystemTime, u64, u64)>;

impl ConfigWatcher {
    pub(crate) fn new(app: &App, scope: ReloadScope) -> Self {
        Self {
            scope,
            config: app.global.config.clone(),
            home: app.global.home.clone(),
            trust: app.run_trust(),
            run_trusted: None,
            screen: Arc::clone(&app.screen),
            lang: app.lang(),
            restart: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reloads after each change while it is polled.
    pub(crate) async fn follow(mut self, gateways: Arc<Gateways>) {
        self.notes = gateways.hub().notes().to_vec();
        self.run_trusted = gateways.hub().paths().workspace.run_trusted_state().map(str::to_owned);
        let files = watched_files(gateways.hub().paths());
        let mut loaded = stamps(&files);
        let mut seen = loaded.clone();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = stamps(&files);
            let is_stable = now == seen;
            seen = now;
            if !is_stable || seen == loaded {
                continue;
            }
            loaded.clone_from(&seen);
            self.reload(&gateways).await;
        }
    }

    async fn reload(&mut self, gateways: &Gateways) {
        match self.apply(gateways).await {
            Ok(changes) => self.report(&changes),
            Err(why) => {
                let why = why.localize(self.lang);
                self.screen.warn(&self.lang.choose(
                    format!("the changed configuration is not used, the last one stays in force: {why}"),
                    format!("未采用改动后的配置，继续使用之前的配置：{why}"),
                ));
            }
        }
    }

    async fn apply(&mut self, gateways: &Gateways) -> Result<ServerChanges, LocalizedText> {
        let paths = self.paths()?;
        let before = gateways.hub().paths();
        if before.workspace.is_trusted_here() && !paths.workspace.is_trusted_here() {
            return Err(LocalizedText::new(
                "this folder changed since it was trusted: run `toolhub trust`",
                "此目录在信任之后有改动：请运行 `toolhub trust`",
            ));
        }
        self.check_run_trust(&paths.workspace)?;
        if paths.config != before.config {
            let (old, new) = (before.config.display(), paths.config.display());
            return Err(LocalizedText::new(
                format!("the config file would be `{new}` instead of `{old}`: restart `toolhub serve`"),
                format!("配置文件将由 `{old}` 变为 `{new}`：请重新启动 `toolhub serve`"),
            ));
        }
        let settings = Settings::read(&paths).map_err(|error| both(&error.into()))?;
        gateways.reload_access(&settings.auth).await?;
        match self.scope {
            ReloadScope::All => {
                gateways.reload_servers(&paths, &settings).await.map_err(|error| both(&error.into()))
            }
            ReloadScope::Access => Ok(ServerChanges::default()),
        }
    }

    /// Refuses changes of a folder that is trusted for this run, except for edits of the owner and for those that `toolhub trust`
    /// showed meanwhile.
    fn check_run_trust(&mut self, workspace: &Workspace) -> Result<(), LocalizedText> {
        let now = workspace.run_trusted_state();
        if now == self.run_trusted.as_deref() {
            return Ok(());
        }
        if let (Some(before), Some(now)) = (self.run_trusted.as_deref(), now)
            && (workspace.has_own_edits_since(before) || self.is_trusted_with(now)?)
        {
            self.run_trusted = Some(now.to_owned());
            return Ok(());
        }
        Err(LocalizedText::new(
            "this folder changed since `toolhub serve` was started, and is trusted for that run only: restart `toolhub serve`, or run `toolhub trust`",
            "此目录在 `toolhub serve` 启动之后有改动，而它只在本次运行中受信任：请重新启动 `toolhub serve`，或运行 `toolhub trust`",
        ))
    }

    /// Whether `toolhub trust` was run for this state of the current folder.
    fn is_trusted_with(&self, digest: &str) -> Result<bool, LocalizedText> {
        let paths = Paths::find(self.config.as_deref(), self.home.as_deref());
        paths.map(|paths| paths.workspace.is_trusted_with(digest)).map_err(|error| both(&error.into()))
    }

    fn paths(&self) -> Result<Paths, LocalizedText> {
        Paths::find_trusting(self.config.as_deref(), self.home.as_deref(), &self.trust)
            .map_err(|error| both(&error.into()))
    }

    fn report(&mut self, changes: &ServerChanges) {
        let lang = self.lang;
        for note in changes.notes.iter().filter(|note| !self.notes.contains(note)) {
            self.screen.warn(&note.localize(lang));
        }
        self.notes.clone_from(&changes.notes);
        if changes.routing {
            self.screen.to_stderr(lang.choose("routing reloaded", "已重新加载路由设置"));
        }
        if changes.restart != self.restart {
            self.restart.clone_from(&changes.restart);
            let names: Vec<String> = self.restart.iter().map(|name| format!("`[{name}]`")).collect();
            let names = names.join(lang.choose(", ", "、"));
            if !self.restart.is_empty() {
                self.screen.warn(&lang.choose(
                    format!("{names} changed: restart `toolhub serve` to use the new settings"),
                    format!("{names} 有改动：重新启动 `toolhub serve` 后生效"),
                ));
            }
        }
        if changes.is_empty() {
            return;
        }
        let part = |name: (&str, &str), ids: &[ServerId]| {
            let ids = ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>();
            let gap = lang.choose(" ", "");
            (!ids.is_empty())
                .then(|| format!("{}{gap}{}", lang.choose(name.0, name.1), ids.join(lang.choose(", ", "、"))))
        };
        let parts = [
            part(("added", "新增 "), &changes.added),
            part(("changed", "更改 "), &changes.changed),
            part(("removed", "移除 "), &changes.removed),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let parts = parts.join(lang.choose("; ", "；"));
        self.screen.to_stderr(
            &lang.choose(format!("servers reloaded: {parts}"), format!("已重新加载服务器：{parts}")),
        );
    }
}

fn both(error: &BuildError) -> LocalizedText {
    LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))
}

/// The settings, the servers, the `.mcp.json` of the current folder, and the list of trusted folders.
fn watched_files(paths: &Paths) -> Vec<PathBuf> {
    vec![
        paths.config.clone(),
        paths.servers.clone(),
        PathBuf::from(".mcp.json"),
        paths.data_dir.join("trust.json"),
    ]
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Stamp {
    let metadata = file.metadata().ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((metadata.modified().ok()?, metadata.len(), inode))
}
