//! The configured servers of a hub, replaced atomically when the configuration changes.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;
use toolhub_mcp_client::Server;

/// The configured servers, in configuration order.
#[derive(Debug, Default)]
pub(crate) struct ServerSet {
    servers: ArcSwap<Vec<Arc<Server>>>,
    /// Counts replacements.
    version: watch::Sender<u64>,
}

impl ServerSet {
    pub(crate) fn new(servers: Vec<Arc<Server>>) -> Self {
        Self { servers: ArcSwap::from_pointee(servers), ..Self::default() }
    }

    /// The current servers. The guard must not be held across an await; use [`Self::snapshot`] there.
    pub(crate) fn load(&self) -> Guard<Arc<Vec<Arc<Server>>>> {
        self.servers.load()
    }

    /// The current servers.
    pub(crate) fn snapshot(&self) -> Arc<Vec<Arc<Server>>> {
        self.servers.load_full()
    }

    /// The server with this id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Server>> {
        self.load().iter().find(|server| server.id().as_str() == id).cloned()
    }

    /// Whether there is a server with this id.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.load().iter().any(|server| server.id().as_str() == id)
    }

    /// Whether this instance is in use: it was neither removed nor replaced.
    pub(crate) fn is_current(&self, server: &Server) -> bool {
        self.load().iter().any(|listed| std::ptr::eq(&raw const **listed, server))
    }

    /// Replaces the servers.
    pub(crate) fn replace(&self, servers: Vec<Arc<Server>>) {
        self.servers.store(Arc::new(servers));
        self.version.send_modify(|version| *version += 1);
    }

    /// A counter that changes with each replacement.
    pub(crate) fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
