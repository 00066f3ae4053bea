//! A real identity provider for the duration of a test: npm `oidc-provider`, run by `scripts/identity_provider.mjs`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::peers::{node, peers};

/// A running identity provider, stopped on drop. It also ends when this process ends.
#[derive(Debug)]
pub struct IdentityProvider {
    /// The issuer URL, `http://127.0.0.1:PORT`.
    pub issuer: String,
    /// `None` if another value of this type runs it.
    child: Option<Child>,
}

impl IdentityProvider {
    /// Starts a provider with keys of its own on a free port.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/identity_provider.mjs");
        let mut command = Command::new(node());
        command.arg(script).arg(peers().join("identity-provider/node_modules"));
        // A clean environment: no proxy.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the first line");
        let startup: Value = serde_json::from_str(&line).unwrap_or_default();
        let issuer = startup["issuer"].as_str().map(str::to_owned);
        let issuer = issuer.unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the identity provider does not start: {line}")
        });
        Self { issuer, child: Some(child) }
    }

    /// The provider that another value of this type runs.
    #[must_use]
    pub fn attach(issuer: &str) -> Self {
        Self { issuer: issuer.to_owned(), child: None }
    }

    /// The URL of a path at the provider.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.issuer)
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
