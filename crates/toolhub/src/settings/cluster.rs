//! `[cluster]` and `[worker]` of `toolhub.toml`: several machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toolhub_client_config::expand;
use toolhub_core::lang::LocalizedText;

use super::span::DurationSetting;

/// The first token of all subjects.
const PREFIX: &str = "toolhub";
/// How long a placement lasts without being extended.
const LEASE: Duration = Duration::from_secs(15);
/// A shorter lease would end while the database is only slow.
const MIN_LEASE: Duration = Duration::from_secs(3);
/// How many servers a worker runs at once.
const CAPACITY: usize = 200;

/// `[cluster]`
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClusterSettings {
    /// The NATS servers; without them there is no cluster. `${VAR}` is expanded from the environment.
    pub nats: Option<OneOrMore>,
    /// The first token of all subjects.
    pub prefix: Option<String>,
    /// A file with the credentials for NATS.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates of the authorities that sign the certificates of NATS servers.
    pub authorities: Option<PathBuf>,
    /// How long a placement lasts without being extended.
    pub lease: Option<DurationSetting>,
}

/// One text or several.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

// URLs may contain passwords.
impl std::fmt::Debug for OneOrMore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneOrMore")
    }
}

impl std::fmt::Debug for ClusterSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSettings").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl ClusterSettings {
    /// Whether there is a cluster.
    pub fn is_enabled(&self) -> bool {
        self.nats.is_some()
    }

    /// The URLs of the NATS servers, or the name of a variable that is not set.
    pub fn urls(&self) -> Result<Vec<String>, String> {
        let urls = match &self.nats {
            None => Vec::new(),
            Some(OneOrMore::One(url)) => vec![url.clone()],
            Some(OneOrMore::More(urls)) => urls.clone(),
        };
        let lookup = |name: &str| std::env::var(name).ok();
        urls.iter().map(|url| expand(url, &lookup)).collect()
    }

    /// The first token of all subjects.
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(PREFIX)
    }

    /// How long a placement lasts without being extended.
    pub fn lease(&self) -> Duration {
        self.lease.map_or(LEASE, |lease| lease.0)
    }

    /// The key whose value is invalid, and why.
    pub(super) fn problem(&self) -> Option<(&'static str, LocalizedText)> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let prefix = self.prefix();
        if prefix.is_empty() || !prefix.bytes().all(is_plain) {
            let what = LocalizedText::new(
                "`prefix` in `[cluster]` may have letters, digits, `-` and `_` only",
                "`[cluster]` 中的 `prefix` 只能含有字母、数字、`-` 和 `_`",
            );
            return Some(("prefix", what));
        }
        if self.lease() < MIN_LEASE {
            let seconds = MIN_LEASE.as_secs();
            let what = LocalizedText::new(
                format!("`lease` in `[cluster]` is too short: write at least \"{seconds}s\""),
                format!("`[cluster]` 中的 `lease` 太短：至少写 \"{seconds}s\""),
            );
            return Some(("lease", what));
        }
        None
    }
}

/// `[worker]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WorkerSettings {
    /// Labels that servers may ask for.
    pub labels: Vec<String>,
    /// Maximum number of instances of servers.
    pub capacity: Option<NonZeroUsize>,
}

impl WorkerSettings {
    /// Maximum number of instances of servers.
    pub fn capacity(&self) -> usize {
        self.capacity.map_or(CAPACITY, NonZeroUsize::get)
    }
}
