//! Applies a changed configuration to a running hub: added, changed and removed servers. Connections of unchanged servers are
//! kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolhub_client_config::ConfigError;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::CachedList;
use toolhub_core::{BoxFuture, ServerId, Source};
use toolhub_engine::{Deadlines, RoutingPolicy};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::config::ServerSpec;

use crate::hub::{Hub, SHUTDOWN_TIMEOUT};
use crate::server_hosts::{
    add_host, cached_lists, deadlines_of, limits_of, server_for, stored_failure_history,
};
use crate::settings::{Paths, Settings, load_servers};

/// Grace period for calls of a changed or removed server before it is disconnected.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The effects of a changed configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChanges {
    /// New servers.
    pub added: Vec<ServerId>,
    /// Servers whose connection or use changed; they are connected again.
    pub changed: Vec<ServerId>,
    /// Removed servers.
    pub removed: Vec<ServerId>,
    /// Whether routing changed.
    pub routing: bool,
    /// Sections of `toolhub.toml` that changed and take effect after a restart.
    pub restart: Vec<&'static str>,
    /// Warnings about the configuration.
    pub notes: Vec<LocalizedText>,
}

impl ServerChanges {
    /// Whether no server changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl Hub {
    /// Applies a reloaded configuration: its servers, `[[servers]]`, `[routing]`, `[approvals]` and the deadlines of `[limits]`.
    /// An error changes nothing. The result names the sections that need a restart.
    pub fn reload_servers<'a>(
        &'a self,
        paths: &'a Paths,
        settings: &'a Settings,
    ) -> BoxFuture<'a, Result<ServerChanges, ConfigError>> {
        Box::pin(async move {
            let (specs, notes) = load_servers(paths, settings)?;
            let before = self.servers.snapshot();
            let restart = settings.restart_sections.changed_since(&self.settings.restart_sections);
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
                let existed = before.iter().any(|server| *server.id() == spec.id);
                if existed { &mut changes.changed } else { &mut changes.added }.push(spec.id.clone());
                let failure_history = stored_failure_history(lists.get(&spec.id));
                servers.push(server_for(spec, paths, failure_history, &self.context));
            }
            let is_retired =
                |server: &&Arc<Server>| !servers.iter().any(|current| Arc::ptr_eq(current, server));
            let retired: Vec<Arc<Server>> = before.iter().filter(is_retired).cloned().collect();
            let is_removed =
                |server: &&Arc<Server>| !servers.iter().any(|current| current.id() == server.id());
            changes.removed = retired.iter().filter(is_removed).map(|server| server.id().clone()).collect();
            let reordered =
                before.iter().map(|server| server.id()).ne(servers.iter().map(|server| server.id()));
            changes.routing = self.apply_routing(settings, &servers);
            if changes.is_empty() && !reordered {
                self.set_deadlines(&servers, limits);
                if changes.routing {
                    // Offered names depend on the routing.
                    self.refresh_catalog();
                    self.lists_version.send_modify(|count| *count += 1);
                }
                return Ok(changes);
            }
            self.replace_lists(&lists, &servers, &retired);
            self.engine.set_reserved(servers.iter().map(|server| server.id()));
            for server in &servers {
                add_host(&self.engine, server, limits);
            }
            self.set_deadlines(&servers, limits);
            // Known until they have ended: this future may be dropped before, when the hub is closed.
            self.replaced_servers().extend(retired.iter().cloned());
            self.servers.replace(servers);
            for id in &changes.removed {
                self.engine.remove_host(&Source::Server(id.clone()));
                self.server_skills.forget(Some(id));
            }
            *self.server_settings() = settings.servers.clone();
            self.force_failure_check();
            self.refresh_catalog();
            self.lists_version.send_modify(|count| *count += 1);
            let retire = async |server: &Arc<Server>| {
                server.drain(DRAIN_TIMEOUT).await;
                server.close(SHUTDOWN_TIMEOUT).await;
                self.replaced_servers().retain(|replaced| !Arc::ptr_eq(replaced, server));
            };
            tokio::join!(join_all(retired.iter().map(retire)), self.list_missing());
            Ok(changes)
        })
    }

    /// Sets the routing policy for these servers. Returns whether it changed apart from the servers.
    fn apply_routing(&self, settings: &Settings, servers: &[Arc<Server>]) -> bool {
        let enabled = servers.iter().filter(|server| server.spec().enabled);
        let policy = settings.routing.policy(enabled.map(|server| server.id().clone()).collect());
        let before = self.engine.policy();
        let is_changed = *before != RoutingPolicy { servers: before.servers.clone(), ..policy.clone() };
        self.engine.set_policy(policy);
        is_changed
    }

    /// Drops the lists of retired servers, and adds the cached ones of new servers.
    fn replace_lists(
        &self,
        cached: &HashMap<ServerId, CachedList>,
        servers: &[Arc<Server>],
        retired: &[Arc<Server>],
    ) {
        let mut known = self.lists();
        for id in retired.iter().map(|server| server.id()) {
            known.remove(id);
            self.in_catalog().remove(id);
        }
        for server in servers {
            if let Some(list) = cached.get(server.id()) {
                known.entry(server.id().clone()).or_insert_with(|| list.clone());
            }
        }
    }

    /// Sets the deadlines of calls. Servers may have a `call_timeout` of their own.
    fn set_deadlines(&self, servers: &[Arc<Server>], limits: Deadlines) {
        self.engine.set_deadlines(|source| {
            let server = match source {
                Source::Server(id) => servers.iter().find(|server| server.id() == id),
                Source::Native | Source::Skill => None,
            };
            deadlines_of(server, limits)
        });
    }

    /// Whether a server matches a configured entry. The sandbox is compared by its settings.
    fn is_unchanged(&self, server: &Arc<Server>, spec: &ServerSpec, settings: &Settings) -> bool {
        let id = spec.id.as_str();
        let sandbox = |extras: &[crate::settings::ServerExtras]| {
            extras.iter().find(|extras| extras.id == id).map(|extras| format!("{:?}", extras.sandbox))
        };
        server.spec().is_same_entry(spec) && sandbox(&self.server_settings()) == sandbox(&settings.servers)
    }
}
