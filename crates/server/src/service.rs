//! The interface between the server and the hub.

use std::sync::Arc;

use toolhub_mcp_gateway::Gateway;

use crate::metrics_text::MetricsText;

/// The health of the hub.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Whether it accepts requests.
    pub ready: bool,
    /// Short descriptions of the parts that do not work.
    pub degraded: Vec<String>,
}

/// A hub that can be served.
pub trait HubService: Send + Sync {
    /// Returns the gateway of a profile, or of the default profile.
    fn gateway(&self, profile: Option<&str>) -> Option<Arc<Gateway>>;

    /// Returns the name of the default profile.
    fn default_profile(&self) -> &str;

    /// Returns the names of the profiles, for error messages.
    fn profiles(&self) -> Vec<String>;

    /// Returns the current health.
    fn health(&self) -> Health;

    /// Adds the metrics of the hub.
    fn write_metrics(&self, out: &mut MetricsText);
}
