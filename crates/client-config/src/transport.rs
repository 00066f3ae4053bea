//! How a server is reached, as configuration files describe it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toolhub_core::ProcessSandbox;

/// The transport of a server.
#[derive(Debug, Clone)]
pub enum TransportSpec {
    /// A child process over stdio.
    Stdio(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
    /// HTTP+SSE (2024-11-05).
    Sse(HttpSpec),
}

/// A child process.
#[derive(Clone, Default)]
pub struct StdioSpec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables set for it.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
    /// Environment variables that it inherits beside the default ones.
    pub env_pass: Vec<String>,
    /// The file that keeps the end of its stderr output.
    pub log_file: Option<PathBuf>,
    /// The sandbox.
    pub process_sandbox: Option<Arc<dyn ProcessSandbox>>,
}

/// An HTTP endpoint.
#[derive(Clone, Default)]
pub struct HttpSpec {
    /// The URL.
    pub url: String,
    /// Headers sent with every request.
    pub headers: Vec<(String, String)>,
}

/// The names without the values, which may be secrets.
fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

impl fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StdioSpec");
        debug
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .finish()
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec").field("url", &self.url).field("headers", &names(&self.headers)).finish()
    }
}

impl TransportSpec {
    /// The name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }
}
