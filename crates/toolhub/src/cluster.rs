//! Several machines: joins a hub to a cluster as a replica, runs a worker, and reads the state of the cluster.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolhub_cluster::bus::{Bus, BusOptions};
use toolhub_cluster::{JoinOptions, Replica, ScriptOffer, ServerSource, Worker, WorkerOptions};
use toolhub_core::cluster::ClusterStore;
use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::ports::HubStore;
use toolhub_core::{EventSink, RawJson};
use toolhub_mcp_client::{ClientHandler, FailureHistory, Server, ServerContext};
use toolhub_oauth::TokenStore;
use toolhub_script::{HostConfig as ScriptHost, LocalHosts, RunnerConfig, protocol};
use toolhub_store::{PgCluster, StoreLocation};

use crate::cluster_reading::read_status;
use crate::cluster_status::{ClusterError, ClusterStatus, WorkerOverrides};
use crate::gateway::NotificationBus;
use crate::listeners::Listeners;
use crate::server_hosts::server_for;
use crate::settings::{Paths, Settings, load_servers};
use crate::worker_skills::skill_offer;

fn error(en: impl Into<String>, zh: impl Into<String>) -> ClusterError {
    ClusterError(LocalizedText::new(en.into(), zh.into()))
}

/// Connects to NATS and to the shared database.
async fn join_options(settings: &Settings, paths: &Paths) -> Result<JoinOptions, ClusterError> {
    connect(settings, paths).await.map(|(join, _)| join)
}

/// Connects to NATS and to the shared database, which is returned, too.
async fn connect(settings: &Settings, paths: &Paths) -> Result<(JoinOptions, Arc<PgCluster>), ClusterError> {
    let cluster = &settings.cluster;
    if !cluster.is_enabled() {
        return Err(error(
            "there is no cluster: name its NATS servers with `nats` in `[cluster]`",
            "未配置集群：请在 `[cluster]` 中用 `nats` 写出 NATS 服务器",
        ));
    }
    let location = settings.store.location(paths).map_err(|cause| {
        error(
            format!("the store of the cluster cannot be used: {cause}"),
            format!("集群的存储无法使用：{cause}"),
        )
    })?;
    let StoreLocation::Postgres(url) = location else {
        return Err(error(
            "`[cluster]` needs a store that all machines share: set `[store] url` to a PostgreSQL database",
            "`[cluster]` 需要所有机器共享的存储：请把 `[store] url` 设为 PostgreSQL 数据库",
        ));
    };
    let store = PgCluster::connect(&url).await.map_err(|cause| {
        error(
            format!("the store of the cluster cannot be used: {cause}"),
            format!("集群的存储无法使用：{cause}"),
        )
    })?;
    let servers = cluster.urls().map_err(|name| {
        error(
            format!("`nats` in `[cluster]` uses ${{{name}}}, which is not set"),
            format!("`[cluster]` 中的 `nats` 使用了未设置的 ${{{name}}}"),
        )
    })?;
    let file = |file: &std::path::PathBuf| paths.config.with_file_name("").join(file);
    let options = BusOptions {
        servers,
        prefix: cluster.prefix().to_owned(),
        credentials: cluster.credentials.as_ref().map(file),
        authorities: cluster.authorities.as_ref().map(file),
        name: format!("toolhub {}", env!("CARGO_PKG_VERSION")),
    };
    let bus = Bus::connect(options).await.map_err(|cause| {
        error(
            format!("NATS cannot be used: {cause}: check `[cluster]`"),
            format!("无法使用 NATS：{}：请检查 `[cluster]`", cause.localize(Lang::Zh)),
        )
    })?;
    let store = Arc::new(store);
    let join = JoinOptions {
        bus,
        store: Arc::clone(&store) as Arc<dyn ClusterStore>,
        address: machine(),
        lease: cluster.lease(),
    };
    Ok((join, store))
}

/// The name of this machine.
fn machine() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned());
    name
}

/// Joins as a replica.
pub(crate) async fn join(
    settings: &Settings,
    paths: &Paths,
    store: Option<&dyn HubStore>,
) -> Result<Replica, ClusterError> {
    let options = join_options(settings, paths).await?;
    let Some(store) = store else {
        return Err(error("the store of the cluster cannot be used", "集群的存储无法使用"));
    };
    Ok(Replica::join(options, store.replica()))
}

/// A process that runs servers for the replicas of a cluster.
#[derive(Debug)]
pub struct ClusterWorker {
    worker: Worker,
    options: WorkerOptions,
    script_hosts: Option<Arc<LocalHosts>>,
    notes: Vec<LocalizedText>,
}

impl ClusterWorker {
    /// Joins the cluster that the settings describe. Replicas give it work once it runs. Without a `script_host` it takes no
    /// scripts; scripts of skills need none.
    pub async fn join(
        paths: Paths,
        settings: Settings,
        overrides: WorkerOverrides,
        listeners: Vec<Arc<dyn EventSink>>,
        script_host: Option<ScriptHost>,
    ) -> Result<Self, ClusterError> {
        let (join, database) = connect(&settings, &paths).await?;
        let skill_slots = overrides.skills.unwrap_or_else(|| settings.worker.skills());
        let script_slots = overrides.scripts.unwrap_or_else(|| settings.worker.scripts());
        let script_hosts = match script_host {
            Some(host) if settings.script.is_enabled() && script_slots > 0 => {
                Some(Arc::new(script_hosts(host, &settings, &paths)))
            }
            _ => None,
        };
        let options = WorkerOptions {
            labels: overrides.labels.unwrap_or_else(|| settings.worker.labels.clone()),
            capacity: overrides.capacity.unwrap_or_else(|| settings.worker.capacity()),
            scripts: script_hosts.clone().map(|hosts| ScriptOffer {
                hosts,
                version: protocol::VERSION,
                slots: script_slots,
                max_time: settings.script.limits().wall,
            }),
            skills: skill_offer(&settings, &paths, skill_slots, database).await,
            drain: settings.serve.drain(),
        };
        // An invalid configuration is reported now and not to the first replica.
        let (_, notes) = load_servers(&paths, &settings)
            .map_err(|cause| error(cause.localize(Lang::En), cause.localize(Lang::Zh)))?;
        let context = ServerContext {
            events: Arc::new(Listeners(listeners)),
            handler: Arc::new(NotificationBus::default()),
            listen: false,
            logins: Arc::new(TokenStore::new(&paths.data_dir)),
            single_client: false,
            relay: None,
            remote: None,
        };
        let servers = Arc::new(ConfiguredServers { paths, context });
        let worker = Worker::join(join, options.clone(), servers).await.map_err(|cause| {
            error(
                format!("NATS cannot be used: {cause}"),
                format!("无法使用 NATS：{}", cause.localize(Lang::Zh)),
            )
        })?;
        Ok(Self { worker, options, script_hosts, notes })
    }

    /// Its id in the cluster.
    pub fn id(&self) -> &str {
        self.worker.id()
    }

    /// What it offers.
    pub fn labels(&self) -> &[String] {
        &self.options.labels
    }

    /// How many instances of servers it runs at most.
    pub fn capacity(&self) -> usize {
        self.options.capacity
    }

    /// How many scripts it runs at most.
    pub fn scripts(&self) -> usize {
        self.options.scripts.as_ref().map_or(0, |offer| offer.slots)
    }

    /// How many scripts of skills it runs at most.
    pub fn skills(&self) -> usize {
        self.options.skills.as_ref().map_or(0, |offer| offer.slots)
    }

    /// Warnings about the configuration.
    pub fn notes(&self) -> &[LocalizedText] {
        &self.notes
    }

    /// Works until `stop` is cancelled, and then until its running requests are done.
    pub async fn run(self, stop: CancellationToken) {
        self.worker.run(stop).await;
        if let Some(hosts) = self.script_hosts {
            hosts.shutdown().await;
        }
    }
}

/// The hosts that a worker lends.
fn script_hosts(host: ScriptHost, settings: &Settings, paths: &Paths) -> LocalHosts {
    let host = ScriptHost { protected: paths.private_folders(), ..host };
    LocalHosts::new(RunnerConfig {
        limits: settings.script.limits(),
        warm_hosts: settings.script.warm_hosts(),
        ..RunnerConfig::new(host)
    })
}

/// The servers of the configuration files, read again for each instance: replicas may have reloaded theirs.
struct ConfiguredServers {
    paths: Paths,
    context: ServerContext,
}

impl ServerSource for ConfiguredServers {
    fn server(
        &self,
        id: &str,
        entry: &str,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<Arc<Server>, LocalizedText> {
        let unreadable = |cause: &dyn Localize| {
            LocalizedText::new(
                format!("the configuration of the worker cannot be read: {}", cause.localize(Lang::En)),
                format!("无法读取该工作进程的配置：{}", cause.localize(Lang::Zh)),
            )
        };
        let settings = Settings::read(&self.paths).map_err(|cause| unreadable(&cause))?;
        let (specs, _) = load_servers(&self.paths, &settings).map_err(|cause| unreadable(&cause))?;
        let spec =
            specs.into_iter().find(|spec| spec.id.as_str() == id && spec.enabled).ok_or_else(|| {
                LocalizedText::new(
                    format!("the worker has no server `{id}`: give all machines the same configuration"),
                    format!("该工作进程没有服务器 `{id}`：请让所有机器使用相同的配置"),
                )
            })?;
        if spec.cluster_digest() != entry {
            return Err(LocalizedText::new(
                format!("the worker has another entry for `{id}`: give all machines the same configuration"),
                format!("该工作进程中 `{id}` 的配置不同：请让所有机器使用相同的配置"),
            ));
        }
        let context = ServerContext { handler, ..self.context.clone() };
        Ok(server_for(spec, &self.paths, FailureHistory::default(), &context))
    }

    /// Those that gateways declare.
    fn capabilities(&self) -> RawJson {
        self.context.handler.capabilities()
    }
}

/// Reads the state of the cluster.
pub async fn cluster_status(settings: &Settings, paths: &Paths) -> Result<ClusterStatus, ClusterError> {
    let JoinOptions { bus, store, .. } = join_options(settings, paths).await?;
    read_status(&*store, &bus).await
}
