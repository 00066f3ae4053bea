//! What the server needs of the hub that it serves.

use std::sync::Arc;

use toolhub_mcp::gateway::Gateway;

use crate::metrics_text::MetricsText;

/// How the hub stands.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Whether it can take requests.
    pub ready: bool,
    /// What does not work, each in a few words.
    pub degraded: Vec<String>,
}

/// A hub that is served.
pub trait HubService: Send + Sync {
    /// The gateway of a profile; of the default one, where none is named.
    fn gateway(&self, profile: Option<&str>) -> Option<Arc<Gateway>>;

    /// The names of its profiles, for whoever asked for another.
    fn profiles(&self) -> Vec<String>;

    /// How it stands.
    fn health(&self) -> Health;

    /// Adds what it counts.
    fn measure(&self, out: &mut MetricsText);
}
