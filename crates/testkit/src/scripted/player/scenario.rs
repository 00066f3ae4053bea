//! The script as parsed by the server.

use std::{ffi::OsStr, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::plan::Plans;

/// A script; see the documentation of `scripted` for its fields.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) era: Eras,
    pub(super) version: String,
    pub(super) supported: Vec<String>,
    pub(super) name: String,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: Option<Box<RawValue>>,
    pub(super) tools: Vec<Box<RawValue>>,
    pub(super) page_size: Option<usize>,
    pub(super) cursor_repeats: bool,
    #[serde(rename = "ttlMs")]
    pub(super) ttl_ms: i64,
    #[serde(rename = "cacheScope")]
    pub(super) cache_scope: String,
    pub(super) journal: Option<PathBuf>,
    pub(super) banner: Vec<String>,
    pub(super) stderr: Vec<String>,
    pub(super) start_delay_ms: u64,
    pub(super) session: bool,
    pub(super) sse: bool,
    pub(super) resumable: bool,
    pub(super) shutdown: Shutdown,
    pub(super) on: Plans,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            era: Eras::Legacy,
            version: "2025-11-25".to_owned(),
            supported: vec!["2026-07-28".to_owned()],
            name: "scripted".to_owned(),
            instructions: None,
            capabilities: None,
            tools: Vec::new(),
            page_size: None,
            cursor_repeats: false,
            ttl_ms: 60_000,
            cache_scope: "public".to_owned(),
            journal: None,
            banner: Vec::new(),
            stderr: Vec::new(),
            start_delay_ms: 0,
            session: true,
            sse: false,
            resumable: false,
            shutdown: Shutdown::Clean,
            on: Plans::default(),
        }
    }
}

impl Scenario {
    /// Reads a script from a file, or from the argument itself if it begins with `{`.
    pub(super) fn load(script: &OsStr) -> Result<Self, String> {
        let argument = script.to_string_lossy();
        let text = if argument.trim_start().starts_with('{') {
            argument.clone().into_owned()
        } else {
            fs::read_to_string(script)
                .map_err(|error| format!("cannot read the script `{argument}`: {error}"))?
        };
        serde_json::from_str(&text).map_err(|error| format!("the script is wrong: {error}"))
    }

    /// The versions in `server/discover` and in errors.
    pub(super) fn versions(&self) -> Vec<&str> {
        let modern = self.supported.iter().map(String::as_str);
        modern.chain((self.era == Eras::Both).then_some(self.version.as_str())).collect()
    }
}

/// The eras that a server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Eras {
    Legacy,
    Modern,
    Both,
}

/// What ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shutdown {
    /// EOF on stdin, or SIGTERM.
    Clean,
    /// SIGTERM only.
    IgnoreEof,
    /// SIGKILL only.
    IgnoreTerm,
}
