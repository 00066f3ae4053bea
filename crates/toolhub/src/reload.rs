//! Taking over a changed configuration while the hub runs: servers that were added, changed or removed. Connections of
//! unchanged servers stay as they are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolhub_core::BoxFuture;
use toolhub_core::lang::Text;
use toolhub_core::{ServerId, Source, ToolHost};
use toolhub_engine::{Deadlines, Engine, Policy};
use toolhub_mcp::config::{ConfigError, ServerSpec, TransportSpec};
use toolhub_mcp::{FailureHistory, McpHost, Server, ServerContext};

use crate::builder::{cached_lists, limits_of};
use crate::failures::past_of;
use crate::hub::{Hub, SHUTDOWN};
use crate::settings::{Places, Settings, load_servers};

/// How long calls of a changed or removed server may take to end before it is disconnected.
const DRAIN: Duration = Duration::from_secs(10);

/// What a changed configuration came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChanges {
    /// Servers that were not there before.
    pub added: Vec<ServerId>,
    /// Servers that are reached or used in another way; they are connected anew.
    pub changed: Vec<ServerId>,
    /// Servers that are gone.
    pub removed: Vec<ServerId>,
    /// Whether calls are routed in another way.
    pub routing: bool,
    /// Sections of `toolhub.toml` that differ from those in force and take effect after a restart.
    pub restart: Vec<&'static str>,
    /// What is odd about the configuration, but no reason to stop.
    pub notes: Vec<Text>,
}

impl ServerChanges {
    /// Whether every server is as it was.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl Hub {
    /// Takes over a configuration that was read anew: its servers, `[[servers]]`, `[routing]`, `[approvals]` and the deadlines of
    /// `[limits]`. An error leaves everything as it was. The answer names the sections that need a restart.
    pub fn reload_servers<'a>(
        &'a self,
        places: &'a Places,
        settings: &'a Settings,
    ) -> BoxFuture<'a, Result<ServerChanges, ConfigError>> {
        Box::pin(async move {
            let (specs, notes) = load_servers(places, settings)?;
            let before = self.servers.snapshot();
            let restart = settings.sections.changed_since(&self.settings.sections);
            let mut changes = ServerChanges { notes, restart, ..ServerChanges::default() };
            let lists = cached_lists(self.store.as_deref(), &specs, &mut changes.notes).await;
            let limits = limits_of(settings);
            let reused = |spec: &ServerSpec| {
                before.iter().find(|server| self.is_unchanged(server, spec, settings)).map(Arc::clone)
            };
            let mut servers = Vec::with_capacity(specs.len());
            for spec in specs {
                if let Some(server) = reused(&spec) {
                    servers.push(server);
                    continue;
                }
                let known = before.iter().any(|server| *server.id() == spec.id);
                if known { &mut changes.changed } else { &mut changes.added }.push(spec.id.clone());
                let past = past_of(lists.get(&spec.id));
                servers.push(server_for(spec, places, past, &self.context));
            }
            let gone = |server: &&Arc<Server>| !servers.iter().any(|kept| Arc::ptr_eq(kept, server));
            let retired: Vec<Arc<Server>> = before.iter().filter(gone).cloned().collect();
            let is_removed = |server: &&Arc<Server>| !servers.iter().any(|kept| kept.id() == server.id());
            changes.removed = retired.iter().filter(is_removed).map(|server| server.id().clone()).collect();
            let reordered =
                before.iter().map(|server| server.id()).ne(servers.iter().map(|server| server.id()));
            let enabled = servers.iter().filter(|server| server.spec().enabled);
            let policy = settings.routing.policy(enabled.map(|server| server.id().clone()).collect());
            let before = self.engine.policy();
            changes.routing = *before != Policy { servers: before.servers.clone(), ..policy.clone() };
            self.engine.set_policy(policy);
            if changes.is_empty() && !reordered {
                self.set_deadlines(&servers, limits);
                if changes.routing {
                    // What is offered under one name depends on it.
                    self.refresh_catalog();
                    self.lists_kept.send_modify(|count| *count += 1);
                }
                return Ok(changes);
            }
            {
                let mut known = self.lists();
                for id in retired.iter().map(|server| server.id()) {
                    known.remove(id);
                }
                for server in &servers {
                    if let Some(list) = lists.get(server.id()) {
                        known.entry(server.id().clone()).or_insert_with(|| list.clone());
                    }
                }
            }
            self.engine.set_reserved(servers.iter().map(|server| server.id()));
            for server in &servers {
                add_host(&self.engine, server, limits);
            }
            self.set_deadlines(&servers, limits);
            self.servers.replace(servers);
            for id in &changes.removed {
                self.engine.remove_host(&Source::Server(id.clone()));
                self.server_skills.forget(Some(id));
            }
            *self.server_settings() = settings.servers.clone();
            self.look_for_news();
            self.refresh_catalog();
            self.lists_kept.send_modify(|count| *count += 1);
            let retire = async |server: &Arc<Server>| {
                server.drain(DRAIN).await;
                server.stop(SHUTDOWN).await;
            };
            tokio::join!(join_all(retired.iter().map(retire)), self.list_missing());
            Ok(changes)
        })
    }

    /// Sets how long calls may take, which differs for servers with a `call_timeout` of their own.
    fn set_deadlines(&self, servers: &[Arc<Server>], limits: Deadlines) {
        self.engine.set_deadlines(|source| {
            let own = match source {
                Source::Server(id) => servers.iter().find(|server| server.id() == id),
                Source::Native | Source::Skill => None,
            };
            deadlines_of(own, limits)
        });
    }

    /// Whether a server serves a configured entry as it is. The sandbox is compared by the settings that it is made of.
    fn is_unchanged(&self, server: &Arc<Server>, spec: &ServerSpec, settings: &Settings) -> bool {
        let id = spec.id.as_str();
        let sandbox = |extras: &[crate::settings::ServerExtras]| {
            extras.iter().find(|extras| extras.id == id).map(|extras| format!("{:?}", extras.sandbox))
        };
        server.spec().is_same_entry(spec) && sandbox(&self.server_settings()) == sandbox(&settings.servers)
    }
}

/// The server of a configured entry, not yet connected.
pub(crate) fn server_for(
    mut spec: ServerSpec,
    places: &Places,
    past: FailureHistory,
    context: &ServerContext,
) -> Arc<Server> {
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.log_file = Some(places.log_of(spec.id.as_str()));
    }
    Arc::new(Server::new(spec, past, context.clone()))
}

/// Makes the engine call this server for its source.
pub(crate) fn add_host(engine: &Engine, server: &Arc<Server>, limits: Deadlines) {
    let host: Arc<dyn ToolHost> = Arc::new(McpHost::new(Arc::clone(server)));
    engine.add_host(&host, deadlines_of(Some(server), limits));
}

/// How long calls of a source may take; `None` for one that is no server.
fn deadlines_of(server: Option<&Arc<Server>>, limits: Deadlines) -> Deadlines {
    let call = server.and_then(|server| server.spec().call_timeout).unwrap_or(limits.call);
    Deadlines { call, cap: limits.cap.max(call) }
}
