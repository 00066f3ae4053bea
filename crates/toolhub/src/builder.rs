//! Builds a hub. All components are connected here.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::watch;
use tokio::sync::{OnceCell, Semaphore};
use toolhub_audit::AuditStore;
use toolhub_client_config::ConfigError;
use toolhub_core::call_log::CallLog;
use toolhub_core::finder::ToolFinder;
use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::model::LanguageModel;
use toolhub_core::ports::HubStore;
use toolhub_core::{BoxFuture, EventSink, NativeTool, Outcome, ToolError, ToolHost};
use toolhub_engine::{Engine, Tagger};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::{ClientHandler, Dialer, RejectingHandler, Server, ServerContext};
use toolhub_native::{BuiltinDeps, CallRunner, Finder as NativeFinder, Folders, Memory, NativeHost, builtin};
use toolhub_oauth::TokenStore;
use toolhub_script::HostConfig as ScriptHost;
use toolhub_script::protocol::VERSION as SCRIPT_PROTOCOL;
use toolhub_skills::{CallingScripts, SkillFetcher, SkillHost, SkillPlacement, SkillRegistry};

use toolhub_store::private_file::PrivateError;
use toolhub_store::{AuditedStore, OpenError, StoreLocation};

use crate::approved::Approved;
use crate::disk_space::free_bytes;
use crate::features;
use crate::finder::{CatalogFinder, EncoderFiles};
use crate::hub::Hub;
use crate::listeners::Listeners;
use crate::models::{ChosenModel, ModelMerger, Models};
use crate::progress::ProgressCell;
use crate::replica::Replica;
use crate::script::{RunScript, ScriptRuns, SkillScripts};
use crate::server_hosts::{add_host, cached_lists, limits_of, server_for, stored_failure_history};
use crate::server_set::ServerSet;
use crate::settings::{Paths, PathsError, RunLocation, Settings, load_servers};
use crate::skills::servers::ServerSkills;
use crate::skills::{has_skills_needing_approval, read_approvals, skill_registry};
use crate::unavailable_call_log::UnavailableCallLog;

/// Why a hub could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A config file is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The locations of the files cannot be determined.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The cluster cannot be joined.
    #[error("{}", .0.localize(Lang::En))]
    Cluster(LocalizedText),
    /// The shared store is unavailable.
    #[error("the store of `[store]` cannot be used: {0}")]
    Store(OpenError),
}

impl Localize for BuildError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::Config(error) => error.localize(lang),
            Self::Cluster(why) => why.localize(lang),
            Self::Store(error) if error.chinese().is_some() => {
                lang.choose(error.to_string(), error.chinese().unwrap_or_default())
            }
            Self::Store(error) => {
                let cause =
                    std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
                lang.choose(
                    format!("the store of `[store]` cannot be used: {error}{cause}"),
                    format!("`[store]` 指定的存储无法使用：{error}{cause}"),
                )
            }
            Self::Paths(error) => match error {
                PathsError::NoHome => lang.choose(
                    error.to_string(),
                    "找不到用户主目录：请设置 `HOME`，或给出 `--home` 和 `--config`".to_owned(),
                ),
                PathsError::NoConfig(file) => lang.choose(
                    error.to_string(),
                    format!("没有配置文件 `{}`：请创建它（可以为空），或去掉 `--config`", file.display()),
                ),
            },
        }
    }
}

/// The options of a hub.
#[derive(Default)]
pub struct HubBuilder {
    config: Option<PathBuf>,
    home: Option<PathBuf>,
    paths: Option<Paths>,
    settings: Option<Settings>,
    tools: Vec<Arc<dyn NativeTool>>,
    listeners: Vec<Arc<dyn EventSink>>,
    handler: Option<Arc<dyn ClientHandler>>,
    model: Option<Arc<dyn LanguageModel>>,
    one_shot: bool,
    single_client: bool,
    relayed: bool,
    in_cluster: bool,
    without_store: bool,
    without_servers: bool,
    script_host: Option<ScriptHost>,
}

impl std::fmt::Debug for HubBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubBuilder")
            .field("config", &self.config)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// Returns a builder with default options.
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }
}

impl HubBuilder {
    /// Reads this config file instead of the default one.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(file.into());
        self
    }

    /// Stores data in this folder instead of the default one.
    #[must_use]
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// Uses exactly these locations; overrides the other options.
    #[must_use]
    pub fn paths(mut self, paths: Paths) -> Self {
        self.paths = Some(paths);
        self
    }

    /// Uses these settings instead of reading them.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds a native tool.
    #[must_use]
    pub fn tool(mut self, tool: impl NativeTool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a sink that receives every event.
    #[must_use]
    pub fn listen(mut self, listener: Arc<dyn EventSink>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Sets the handler for requests of servers: sampling, elicitation, roots. Without a handler they are refused.
    #[must_use]
    pub fn handler(mut self, handler: Arc<dyn ClientHandler>) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Uses this language model; overrides the configuration and the environment.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn LanguageModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// For a short-lived process: notifications of servers are not received between calls.
    #[must_use]
    pub fn one_shot(mut self) -> Self {
        self.one_shot = true;
        self
    }

    /// For a gateway with a single client, as over stdio: servers may receive the roots of this client and keep them, since there
    /// is no other client.
    #[must_use]
    pub fn single_client(mut self) -> Self {
        self.single_client = true;
        self
    }

    /// Uses the connections of a `toolhub serve` that runs with the same data folder, for servers that it connects to in the same
    /// way. Has no effect on systems without Unix sockets.
    #[must_use]
    pub fn use_running_hub(mut self) -> Self {
        self.relayed = true;
        self
    }

    /// Joins the cluster of the settings, if they have one: its workers run the servers that are programs.
    #[must_use]
    pub fn join_cluster(mut self) -> Self {
        self.in_cluster = true;
        self
    }

    /// Disables the store, for a program that keeps its own records; overrides the configuration.
    #[must_use]
    pub fn without_store(mut self) -> Self {
        self.without_store = true;
        self
    }

    /// Disables all MCP servers; overrides the configuration.
    #[must_use]
    pub fn without_servers(mut self) -> Self {
        self.without_servers = true;
        self
    }

    /// Starts this program for each script, and offers the tool `run_script`. The program must be a script host, as `toolhub` is.
    #[must_use]
    pub fn script_host(mut self, host: ScriptHost) -> Self {
        self.script_host = Some(host);
        self
    }

    /// Builds the hub. Reads the configuration and the cache, and connects to no server.
    pub fn build(mut self) -> BoxFuture<'static, Result<Hub, BuildError>> {
        Box::pin(async move {
            let (paths, settings) = self.take_configuration()?;
            let (mut specs, mut notes) = load_servers(&paths, &settings)?;
            if self.without_servers {
                specs.iter_mut().for_each(|spec| spec.enabled = false);
            }
            let events: Arc<dyn EventSink> = Arc::new(Listeners(self.listeners));
            let OpenedStore { store, audit, problem: store_problem } = match self.without_store {
                true => OpenedStore::default(),
                false => open_store(&settings, &paths, &mut notes).await?,
            };
            let replica = match self.in_cluster && settings.cluster.is_enabled() {
                true => Some(join_cluster(&settings, &paths, store.as_deref()).await?),
                false => None,
            };
            let lists = cached_lists(store.as_deref(), &specs, &mut notes).await;
            let approved = Mutex::new(Approved::load(store.as_deref(), &specs, &mut notes).await);

            let is_required = !self.without_store && settings.store.required.unwrap_or(true);
            let call_log = call_log(store.as_ref(), is_required, store_problem.as_ref());
            let models = Models::new(settings.llm.clone(), self.model.map(ChosenModel::provided));
            let engine = Arc::new(new_engine(&settings, &specs, &events, call_log, &models));
            let encoder = encoder(&settings, &paths, &mut notes);
            let finder = Arc::new(CatalogFinder::new(Arc::clone(&engine), store.clone(), encoder));
            let limits = limits_of(&settings);

            let deps = BuiltinDeps {
                folders: Folders::new(settings.folders(&paths.config)).without(&paths.private_folders()),
                web: settings.search_service(),
                memory: Memory::of(store.clone()),
                finder: NativeFinder::new(Arc::clone(&finder) as Arc<dyn ToolFinder>),
                call_runner: call_runner_of(&engine),
            };
            let native = Arc::new(native_host(&settings, deps, self.tools));
            let scripts = script_runs(self.script_host, &settings, &paths, self.one_shot, replica.as_ref());
            let run_script = scripts.as_ref().and_then(|runs| RunScript::new(runs, &settings));
            if let Some(tool) = &run_script {
                native.add(Arc::clone(tool) as Arc<dyn NativeTool>);
            }
            engine.add_host(&(Arc::clone(&native) as Arc<dyn ToolHost>), limits);

            let handler = self.handler.unwrap_or_else(|| Arc::new(RejectingHandler));
            let declares = handler.capabilities().object().is_some_and(|declared| !declared.is_empty());
            let logins = Arc::new(TokenStore::new(&paths.data_dir));
            let context = ServerContext {
                events: Arc::clone(&events),
                handler,
                listen: !self.one_shot,
                logins,
                single_client: self.single_client,
                remote: replica.as_ref().map(Replica::servers),
                relay: if self.relayed { running_hubs(&paths) } else { None },
            };
            let new = |spec: ServerSpec| {
                let failure_history = stored_failure_history(lists.get(&spec.id));
                server_for(spec, &paths, failure_history, &context)
            };
            let servers: Vec<Arc<Server>> = specs.into_iter().map(new).collect();
            for server in &servers {
                add_host(&engine, server, limits);
            }
            let servers = Arc::new(ServerSet::new(servers));
            let builtin = native.tools().iter().map(|tool| tool.name().to_string()).collect();
            let registry = skill_registry(&settings, &paths, builtin);
            let skills = skills_of(&settings, registry, store.as_deref(), &mut notes).await;
            let server_skills = Arc::new(ServerSkills::new(Arc::clone(&servers)));
            let placement = skill_placement(&settings, replica.as_ref());
            engine.add_host(&skill_host(&skills, &server_skills, scripts.as_ref(), placement), limits);
            let hub = Hub {
                engine,
                replica: Mutex::new(replica),
                finder,
                native,
                scripts,
                run_script,
                skills,
                server_skills,
                models,
                servers,
                replaced_servers: Mutex::default(),
                context,
                server_settings: Mutex::new(settings.servers.clone()),
                lists: Mutex::new(lists),
                checked_version: AtomicU64::new(u64::MAX),
                lists_version: watch::Sender::new(0),
                declares,
                since: SystemTime::now(),
                in_catalog: Mutex::default(),
                starts: Semaphore::new(settings.limits.starts()),
                progress: ProgressCell::default(),
                store,
                audit,
                recalled: OnceCell::new(),
                approved,
                events,
                settings,
                paths,
                notes,
                store_problem,
            };
            hub.refresh_catalog();
            Ok(hub)
        })
    }

    /// The locations and the settings: the given ones, otherwise those of the config file.
    fn take_configuration(&mut self) -> Result<(Paths, Settings), BuildError> {
        let paths = match self.paths.take() {
            Some(paths) => paths,
            None => Paths::find(self.config.as_deref(), self.home.as_deref())?,
        };
        let settings = match self.settings.take() {
            Some(settings) => settings,
            None => Settings::read(&paths)?,
        };
        Ok((paths, settings))
    }
}

/// The log of calls. If it is required and there is no store, no call is executed.
fn call_log(
    store: Option<&Arc<dyn HubStore>>,
    is_required: bool,
    problem: Option<&LocalizedText>,
) -> Option<Arc<dyn CallLog>> {
    match store {
        Some(store) => Some(Arc::clone(store) as Arc<dyn CallLog>),
        None if is_required => {
            let problem = problem.cloned().unwrap_or_default();
            Some(Arc::new(UnavailableCallLog(problem)) as Arc<dyn CallLog>)
        }
        None => None,
    }
}

/// The engine, before its hosts are added.
fn new_engine(
    settings: &Settings,
    specs: &[ServerSpec],
    events: &Arc<dyn EventSink>,
    call_log: Option<Arc<dyn CallLog>>,
    models: &Arc<Models>,
) -> Engine {
    let enabled = specs.iter().filter(|spec| spec.enabled).map(|spec| spec.id.clone()).collect();
    let mut engine = Engine::new(settings.routing.policy(enabled), Arc::clone(events))
        .with_tagger(Tagger::with(&settings.tags))
        .with_reserved_servers(specs.iter().map(|spec| &spec.id));
    if let Some(call_log) = call_log {
        engine = engine.with_call_log(call_log);
    }
    if models.is_wanted() {
        engine = engine.with_synthesizer(Arc::new(ModelMerger(Arc::clone(models))));
    }
    engine
}

/// The sentence encoder of the settings, if this build has encoders.
fn encoder(settings: &Settings, paths: &Paths, notes: &mut Vec<LocalizedText>) -> Option<EncoderFiles> {
    let model = settings.search.model_folder(&paths.config)?;
    if let Some(note) = features::missing_encoder() {
        notes.push(note);
        return None;
    }
    Some(EncoderFiles { model, vectors: paths.vectors() })
}

#[cfg(feature = "postgres")]
async fn join_cluster(
    settings: &Settings,
    paths: &Paths,
    store: Option<&dyn HubStore>,
) -> Result<Replica, BuildError> {
    crate::cluster::join(settings, paths, store).await.map_err(|error| BuildError::Cluster(error.0))
}

#[cfg(not(feature = "postgres"))]
async fn join_cluster(_: &Settings, _: &Paths, _: Option<&dyn HubStore>) -> Result<Replica, BuildError> {
    Err(BuildError::Cluster(features::missing_cluster()))
}

#[cfg(unix)]
fn running_hubs(paths: &Paths) -> Option<Arc<dyn Dialer>> {
    Some(Arc::new(crate::running_hub::RunningHubs::of(&paths.data_dir)))
}

#[cfg(not(unix))]
fn running_hubs(_paths: &Paths) -> Option<Arc<dyn Dialer>> {
    None
}

/// Runs scripts with the script host of the program and with those of the workers. `None` without a host, or if the settings
/// disable scripts.
fn script_runs(
    host: Option<ScriptHost>,
    settings: &Settings,
    paths: &Paths,
    one_shot: bool,
    replica: Option<&Replica>,
) -> Option<Arc<ScriptRuns>> {
    let waits = settings.cluster.scripts == RunLocation::Workers;
    let workers = replica.map(|replica| replica.script_hosts(SCRIPT_PROTOCOL, waits));
    let host = ScriptHost { protected: paths.private_folders(), ..host? };
    ScriptRuns::new(host, settings, &paths.data_dir, one_shot, workers)
}

async fn skills_of(
    settings: &Settings,
    registry: SkillRegistry,
    store: Option<&dyn HubStore>,
    notes: &mut Vec<LocalizedText>,
) -> Arc<SkillRegistry> {
    let registry = Arc::new(registry);
    if settings.skills.enabled {
        registry.refresh().await;
        // Most hubs have no skill that needs an approval, and skip reading them.
        if has_skills_needing_approval(&registry.snapshot())
            && let Err(error) = read_approvals(&registry, store).await
        {
            notes.push(LocalizedText::new(
                format!("which skills were approved cannot be read, so they are held back: {error}"),
                format!("无法读取技能的批准记录，暂被隔离：{error}"),
            ));
        }
    }
    registry
}

/// The workers that run scripts of skills; `None` if this machine runs them all.
fn skill_placement(settings: &Settings, replica: Option<&Replica>) -> Option<SkillPlacement> {
    let (or_here, waits) = match settings.cluster.skills {
        RunLocation::Auto => (true, false),
        RunLocation::Workers => (false, true),
        RunLocation::Replica => return None,
    };
    Some(SkillPlacement { workers: replica?.skill_workers(waits), or_here })
}

/// The host of the skills of the registry and of servers.
fn skill_host(
    skills: &Arc<SkillRegistry>,
    server_skills: &Arc<ServerSkills>,
    scripts: Option<&Arc<ScriptRuns>>,
    placement: Option<SkillPlacement>,
) -> Arc<dyn ToolHost> {
    let fetch = Arc::clone(server_skills) as Arc<dyn SkillFetcher>;
    let calling = scripts.map(|runs| Arc::new(SkillScripts(Arc::clone(runs))) as Arc<dyn CallingScripts>);
    let host = SkillHost::new(Arc::clone(skills), fetch);
    Arc::new(host.with_calling_scripts(calling).with_placement(placement))
}

/// Runs calls through the engine, with a weak reference, since the engine owns the tools.
fn call_runner_of(engine: &Arc<Engine>) -> CallRunner {
    let (runner, engine) = (CallRunner::default(), Arc::downgrade(engine));
    runner.set(move |call| {
        let engine = engine.upgrade();
        Box::pin(async move {
            match engine {
                Some(engine) => engine.call(call).await,
                None => Outcome::refused(call.id, call.tool, ToolError::Cancelled),
            }
        })
    });
    runner
}

fn native_host(settings: &Settings, deps: BuiltinDeps, added: Vec<Arc<dyn NativeTool>>) -> NativeHost {
    let host = NativeHost::default();
    if settings.native.enabled {
        for tool in builtin(deps) {
            if !settings.native.disabled.iter().any(|name| name == tool.definition().name().as_str()) {
                host.add(tool);
            }
        }
    }
    for tool in added {
        host.add(tool);
    }
    host
}

/// The store of a hub.
#[derive(Default)]
struct OpenedStore {
    store: Option<Arc<dyn HubStore>>,
    /// The audit log, if it is on.
    audit: Option<Arc<dyn AuditStore>>,
    /// Why there is no store.
    problem: Option<LocalizedText>,
}

/// Opens the store. A hub works without its local store, but stores nothing, so a failure is only a warning. A shared store is
/// configured so that calls are recorded, and so is the audit log: their failure is an error.
async fn open_store(
    settings: &Settings,
    paths: &Paths,
    notes: &mut Vec<LocalizedText>,
) -> Result<OpenedStore, BuildError> {
    let location = settings.store.location(paths).map_err(BuildError::Store)?;
    match toolhub_store::private_file::prepare(&paths.data_dir) {
        Ok(warnings) => notes.extend(warnings),
        // The store reports that nothing can be stored; a remote database does not need the folder.
        Err(PrivateError::Io { .. }) => {}
        Err(error) => return Err(BuildError::Store(error.into())),
    }
    let (options, data) = (settings.store.options(), Some(&*paths.data_dir));
    if let Some(audit) = settings.audit.options(&settings.auth, paths) {
        let opened = toolhub_store::open_with_audit(&location, options, &audit, data).await;
        let AuditedStore { store, audit } = opened.map_err(BuildError::Store)?;
        return Ok(OpenedStore { store: Some(store), audit: Some(audit), problem: None });
    }
    match toolhub_store::open(&location, options, data).await {
        Ok(store) => Ok(OpenedStore { store: Some(store), ..OpenedStore::default() }),
        Err(error) if matches!(location, StoreLocation::Postgres(_)) => Err(BuildError::Store(error)),
        Err(error) => {
            let problem = store_problem(&paths.data_dir, &error);
            notes.push(problem.clone());
            Ok(OpenedStore { problem: Some(problem), ..OpenedStore::default() })
        }
    }
}

/// The minimum free space for opening a database.
const MIN_STORE_BYTES: u64 = 256 << 10;

/// Why nothing can be stored in the data folder, and how to fix it. SQLite reports a full disk as an I/O error when a database is
/// opened, so the free space is checked.
fn store_problem(data_dir: &Path, error: &OpenError) -> LocalizedText {
    let folder = data_dir.display();
    if let Some(free) = free_bytes(data_dir).filter(|free| *free < MIN_STORE_BYTES) {
        let free = free >> 10;
        return LocalizedText::new(
            format!(
                "nothing can be kept in `{folder}`: the disk is full ({free} KiB left): free some space, or choose another folder with `--home`"
            ),
            format!(
                "无法在 `{folder}` 保存数据：磁盘已满（剩余 {free} KiB）：请释放空间，或用 `--home` 换一个目录"
            ),
        );
    }
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    LocalizedText::new(
        format!(
            "nothing can be kept in `{folder}`: {error}{cause}: check that it can be written, or choose another folder with `--home`"
        ),
        format!("无法在 `{folder}` 保存数据：{error}{cause}：请检查该目录是否可写，或用 `--home` 换一个目录"),
    )
}
