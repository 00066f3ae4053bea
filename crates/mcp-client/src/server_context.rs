//! What all servers of a hub share: events, the handler of their requests, logins, and other hubs and processes with connections.

use std::sync::Arc;

use toolhub_core::EventSink;
use toolhub_oauth::TokenStore;

use crate::handler::ClientHandler;
use crate::relay::Dialer;
use crate::remote::RemoteServers;

/// Resources that all servers of a hub share.
#[derive(Clone)]
pub struct ServerContext {
    /// Receives events.
    pub events: Arc<dyn EventSink>,
    /// Answers requests that servers send to the client (sampling, elicitation, roots).
    pub handler: Arc<dyn ClientHandler>,
    /// Whether to keep a stream open for unsolicited messages of servers. A program that exits after one call does not need it.
    pub listen: bool,
    /// Stores OAuth tokens.
    pub logins: Arc<TokenStore>,
    /// Whether the hub has exactly one client, so that a shared server serves this client only.
    pub single_client: bool,
    /// Dials hubs that are already running, whose connections are used instead of new ones; `None` disables this.
    pub relay: Option<Arc<dyn Dialer>>,
    /// Connects to servers that other processes of a cluster run; `None` without a cluster.
    pub remote: Option<Arc<dyn RemoteServers>>,
}

impl std::fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerContext").field("listen", &self.listen).finish_non_exhaustive()
    }
}
