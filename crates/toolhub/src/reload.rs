//! Taking over a changed configuration while the hub runs: servers that were added, changed or removed. Connections of
//! unchanged servers stay as they are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolhub_core::lang::Text;
use toolhub_core::{ServerId, Source, ToolHost};
use toolhub_engine::{Deadlines, Engine};
use toolhub_mcp::config::{ConfigError, ServerSpec, TransportSpec};
use toolhub_mcp::{McpHost, Past, Server, ServerContext};

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
    /// Takes over the servers of a configuration that was read anew. An error leaves everything as it was. Of the settings, those of
    /// servers take effect; a change of the routing alone does not.
    pub async fn reload_servers(
        &self,
        places: &Places,
        settings: &Settings,
    ) -> Result<ServerChanges, ConfigError> {
        let (specs, notes) = load_servers(places, settings)?;
        let before = self.servers.snapshot();
        let mut changes = ServerChanges { notes, ..ServerChanges::default() };
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
        let reordered = before.iter().map(|server| server.id()).ne(servers.iter().map(|server| server.id()));
        if changes.is_empty() && !reordered {
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
        let enabled = servers.iter().filter(|server| server.spec().enabled);
        self.engine.set_policy(settings.routing.policy(enabled.map(|server| server.id().clone()).collect()));
        self.engine.set_reserved(servers.iter().map(|server| server.id()));
        for server in &servers {
            add_host(&self.engine, server, limits);
        }
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
    past: Past,
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
    let call = server.spec().call_timeout.unwrap_or(limits.call);
    engine.add_host(&host, Deadlines { call, cap: limits.cap.max(call) });
}
