//! A task that a principal has created, and where it can be reached.

use std::sync::Arc;

use toolhub_mcp_client::Server;

/// Limit of recorded tasks per principal. The oldest is evicted first; a principal cannot evict tasks of another.
pub(super) const MAX_TASKS: usize = 4_096;

/// A task of a principal.
pub(super) struct PrincipalTask {
    pub(super) task: Arc<str>,
    pub(super) location: TaskLocation,
}

/// Where a task can be reached.
pub(super) enum TaskLocation {
    /// At this server.
    Here(Arc<Server>),
    /// At a child process of another hub, which still runs.
    OtherHub,
    /// At a child process of a hub that has ended.
    EndedHub,
}

impl TaskLocation {
    /// The server, if this hub can reach it.
    pub(super) fn server(&self) -> Option<&Arc<Server>> {
        match self {
            Self::Here(server) => Some(server),
            Self::OtherHub | Self::EndedHub => None,
        }
    }
}
