//! Creates servers from their configuration and what earlier runs stored, and registers them at the engine; used when a hub is built
//! and when it is reloaded.

use std::collections::HashMap;
use std::sync::Arc;

use toolhub_client_config::TransportSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{CachedList, HubStore};
use toolhub_core::{ServerId, ToolHost};
use toolhub_engine::{Deadlines, Engine};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::{FailureHistory, McpHost, Server, ServerContext};

use crate::settings::{Paths, Settings};

/// The cached lists whose server configuration is unchanged.
pub(crate) async fn cached_lists(
    store: Option<&dyn HubStore>,
    specs: &[ServerSpec],
    notes: &mut Vec<LocalizedText>,
) -> HashMap<ServerId, CachedList> {
    // Without servers nothing is read, which makes the most common call faster.
    let (Some(store), false) = (store, specs.is_empty()) else { return HashMap::new() };
    let stored = match store.load().await {
        Ok(lists) => lists,
        Err(error) => {
            notes.push(LocalizedText::new(error.to_string(), format!("无法读取缓存：{error}")));
            return HashMap::new();
        }
    };
    let configured: HashMap<&ServerId, String> =
        specs.iter().map(|spec| (&spec.id, spec.fingerprint())).collect();
    stored.into_iter().filter(|(id, list)| configured.get(id) == Some(&list.fingerprint)).collect()
}

/// The failure history stored by an earlier run.
pub(crate) fn stored_failure_history(list: Option<&CachedList>) -> FailureHistory {
    list.map_or_else(FailureHistory::default, |list| FailureHistory {
        era: list.era.parse().ok(),
        failures: list.failures,
        last_failure: list.failure.clone(),
    })
}

/// The deadlines of `[limits]`.
pub(crate) fn limits_of(settings: &Settings) -> Deadlines {
    let defaults = Deadlines::default();
    let call = settings.limits.call.map_or(defaults.call, |span| span.0);
    Deadlines { call, cap: settings.limits.call_cap.map_or(defaults.cap, |span| span.0).max(call) }
}

/// Creates the server of a configured entry, not yet connected.
pub(crate) fn server_for(
    mut spec: ServerSpec,
    paths: &Paths,
    failure_history: FailureHistory,
    context: &ServerContext,
) -> Arc<Server> {
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.log_file = Some(paths.log_of(spec.id.as_str()));
    }
    Arc::new(Server::new(spec, failure_history, context.clone()))
}

/// Registers a server as the host of its source.
pub(crate) fn add_host(engine: &Engine, server: &Arc<Server>, limits: Deadlines) {
    let host: Arc<dyn ToolHost> = Arc::new(McpHost::new(Arc::clone(server)));
    engine.add_host(&host, deadlines_of(Some(server), limits));
}

/// The deadlines of calls to a source; `server` is `None` for a source that is not a server.
pub(crate) fn deadlines_of(server: Option<&Arc<Server>>, limits: Deadlines) -> Deadlines {
    let call = server.and_then(|server| server.spec().call_timeout).unwrap_or(limits.call);
    Deadlines { call, cap: limits.cap.max(call) }
}
