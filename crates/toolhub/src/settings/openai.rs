//! `[openai]` of `toolhub.toml`: the OpenAI-compatible endpoint.

use std::time::Duration;

use serde::Deserialize;

use super::size::ByteSize;
use super::span::DurationSetting;

/// How long responses are stored.
const KEEP: Duration = Duration::from_hours(30 * 24);
/// The total size of stored responses.
const DEFAULT_MAX_SIZE_BYTES: u64 = 256 << 20;

/// `[openai]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OpenAiSettings {
    /// Whether the endpoint exists; it does by default.
    pub enabled: Option<bool>,
    /// Tools that run without approval although they may destroy something: `SERVER__TOOL`, with `*` as a wildcard in the name
    /// of the tool, or `*` alone for all tools.
    pub approved_tools: Vec<String>,
    /// How long responses are stored.
    pub keep: Option<DurationSetting>,
    /// The maximum size of all stored responses.
    pub max_size: Option<ByteSize>,
}

impl OpenAiSettings {
    /// Whether the endpoint exists.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Names in `approved_tools` that approve nothing, because they name no server.
    pub fn unqualified_tools(&self) -> impl Iterator<Item = &str> {
        let is_qualified = |name: &str| {
            name.split_once("__")
                .is_some_and(|(server, tool)| !server.is_empty() && !server.contains('*') && !tool.is_empty())
        };
        let names = self.approved_tools.iter().map(String::as_str);
        names.filter(move |name| *name != "*" && !is_qualified(name))
    }

    /// How long responses are stored.
    pub fn keep(&self) -> Duration {
        self.keep.map_or(KEEP, |span| span.0)
    }

    /// The maximum size of all stored responses, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_size.map_or(DEFAULT_MAX_SIZE_BYTES, |size| size.0)
    }
}
