//! A snapshot of a server, for people and programs.

use std::time::SystemTime;

use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::CachedList;
use toolhub_mcp_client::ServerState;
use toolhub_mcp_client::config::ServerSpec;

/// A snapshot of a server.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// Its configuration.
    pub spec: ServerSpec,
    /// The state of its connection.
    pub state: ServerState,
    /// Its list of tools, if it is cached.
    pub list: Option<CachedList>,
    /// How often it was restarted.
    pub restarts: u32,
    /// The last lines of its standard error, while it runs or before it failed.
    pub stderr: Vec<String>,
}

impl ServerView {
    /// The name of its state in output: that of its connection in this run, otherwise the one stored by earlier runs.
    pub fn state_name(&self) -> &'static str {
        match (&self.state, &self.list) {
            _ if !self.spec.enabled => "disabled",
            (ServerState::Connected { .. }, _) => "connected",
            (ServerState::CircuitOpen { .. }, _) => "circuit_open",
            (ServerState::Failed(_), _) | (_, Some(CachedList { failure: Some(_), .. })) => "failed",
            (_, Some(CachedList { listed_at: Some(_), .. })) => "ready",
            (_, Some(CachedList { late_after: Some(_), .. })) => "slow",
            (ServerState::Idle, _) => "new",
        }
    }

    /// Why it does not work, in this run or an earlier one.
    pub fn failure(&self) -> Option<LocalizedText> {
        match &self.state {
            ServerState::Failed(cause) | ServerState::CircuitOpen { cause, .. } => Some(cause.clone()),
            ServerState::Idle | ServerState::Connected { .. } => self.list.as_ref()?.known_problem(),
        }
    }

    /// The era of MCP that it speaks, if it is known.
    pub fn era(&self) -> Option<&str> {
        match (&self.state, &self.list) {
            (ServerState::Connected { era, .. }, _) => Some(era.name()),
            (_, Some(list)) if !list.era.is_empty() => Some(&list.era),
            _ => None,
        }
    }

    /// The negotiated version of MCP, while it is connected.
    pub fn protocol_version(&self) -> Option<&str> {
        match &self.state {
            ServerState::Connected { version, .. } => Some(version),
            _ => None,
        }
    }

    /// The number of failures in a row, and when it is tried again if its circuit breaker is open.
    pub fn failures(&self) -> (u32, Option<SystemTime>) {
        match (&self.state, &self.list) {
            (ServerState::CircuitOpen { retry_in, failures, .. }, _) => {
                (*failures, Some(SystemTime::now() + *retry_in))
            }
            (_, Some(list)) => (list.failures, None),
            (_, None) => (0, None),
        }
    }

    /// The number of its tools, if they were listed.
    pub fn tool_count(&self) -> Option<usize> {
        self.list.as_ref().filter(|list| list.listed_at.is_some()).map(|list| list.tools.len())
    }

    /// Its name and version, if they are known.
    pub fn peer(&self) -> Option<&str> {
        self.list.as_ref().map(|list| list.peer.as_str()).filter(|peer| !peer.is_empty())
    }
}
