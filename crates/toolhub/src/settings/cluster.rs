//! `[cluster]` and `[worker]` of `toolhub.toml`: several machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toolhub_client_config::expand_variables;
use toolhub_core::Secret;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_gateway::SessionKey;

use super::span::DurationSetting;

/// The first token of all subjects.
const DEFAULT_SUBJECT_PREFIX: &str = "toolhub";
/// How long a placement lasts without being extended.
const LEASE: Duration = Duration::from_secs(15);
/// A shorter lease would end while the database is only slow.
const MIN_LEASE: Duration = Duration::from_secs(3);
/// Maximum number of session keys.
const MAX_SESSION_KEYS: usize = 8;
/// How many servers a worker runs at once.
const CAPACITY: usize = 200;
/// How many scripts a worker runs at once.
const SCRIPTS: usize = 32;
/// How many scripts of skills a worker runs at once. They are programs that may use several processors.
const SKILLS: usize = 8;

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
    /// Where scripts run. Their calls are always made by the replica.
    pub scripts: RunLocation,
    /// Where the scripts of skills run that are programs.
    pub skills: RunLocation,
    /// The keys of session ids: 256 bits each, in base64; `${VAR}` is expanded from the environment. The first seals, all open.
    pub session_keys: Vec<Secret>,
}

/// Where the processes of scripts, or of scripts of skills, run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunLocation {
    /// On a worker, or on the replica if no worker takes the script.
    #[default]
    Auto,
    /// On workers alone.
    Workers,
    /// On the replica.
    #[serde(alias = "replicas")]
    Replica,
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
        urls.iter().map(|url| expand_variables(url, &lookup)).collect()
    }

    /// The first token of all subjects.
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(DEFAULT_SUBJECT_PREFIX)
    }

    /// How long a placement lasts without being extended.
    pub fn lease(&self) -> Duration {
        self.lease.map_or(LEASE, |lease| lease.0)
    }

    /// The keys of session ids. `${VAR}` is expanded by `lookup`.
    pub fn session_keys(
        &self,
        lookup: &impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<SessionKey>, LocalizedText> {
        if self.session_keys.len() > MAX_SESSION_KEYS {
            return Err(LocalizedText::new(
                format!(
                    "`session_keys` in `[cluster]` has at most {MAX_SESSION_KEYS} keys: remove the oldest"
                ),
                format!("`[cluster]` 的 `session_keys` 最多 {MAX_SESSION_KEYS} 个密钥：请移除最旧的"),
            ));
        }
        let key = |(index, text): (usize, &Secret)| {
            let number = index + 1;
            let expanded = expand_variables(text.expose(), lookup).map_err(|name| {
                LocalizedText::new(
                    format!(
                        "key {number} of `session_keys` in `[cluster]` uses ${{{name}}}, which is not set"
                    ),
                    format!("`[cluster]` 的 `session_keys` 第 {number} 个密钥使用了未设置的 ${{{name}}}"),
                )
            })?;
            SessionKey::parse(&Secret::new(expanded)).ok_or_else(|| {
                LocalizedText::new(
                    format!(
                        "key {number} of `session_keys` in `[cluster]` is not 256 bits in base64: make one with `openssl rand -base64 32`"
                    ),
                    format!(
                        "`[cluster]` 的 `session_keys` 第 {number} 个密钥不是 base64 编码的 256 位：可用 `openssl rand -base64 32` 生成"
                    ),
                )
            })
        };
        self.session_keys.iter().enumerate().map(key).collect()
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
    /// Maximum number of scripts at the same time; 0 for none.
    pub scripts: Option<usize>,
    /// Maximum number of scripts of skills at the same time; 0 for none.
    pub skills: Option<usize>,
}

impl WorkerSettings {
    /// Maximum number of instances of servers.
    pub fn capacity(&self) -> usize {
        self.capacity.map_or(CAPACITY, NonZeroUsize::get)
    }

    /// Maximum number of scripts at the same time.
    pub fn scripts(&self) -> usize {
        self.scripts.unwrap_or(SCRIPTS)
    }

    /// Maximum number of scripts of skills at the same time.
    pub fn skills(&self) -> usize {
        self.skills.unwrap_or(SKILLS)
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn read(keys: &[&str]) -> Result<Vec<SessionKey>, LocalizedText> {
        let session_keys = keys.iter().map(|key| Secret::new((*key).to_owned())).collect();
        let lookup = |name: &str| (name == "KEY").then(|| KEY.to_owned());
        ClusterSettings { session_keys, ..ClusterSettings::default() }.session_keys(&lookup)
    }

    #[test]
    fn reads_the_servers_and_their_authorities() {
        let text = "nats = \"tls://nats.example:4222\"\nauthorities = \"ca.pem\"\nlease = \"20s\"\n";
        let cluster: ClusterSettings = toml_edit::de::from_str(text).unwrap();
        assert_eq!(cluster.urls().unwrap(), ["tls://nats.example:4222"]);
        assert_eq!(cluster.authorities.as_deref(), Some(std::path::Path::new("ca.pem")));
        assert_eq!((cluster.lease(), cluster.problem().is_none()), (Duration::from_secs(20), true));
        assert_eq!((cluster.scripts, cluster.skills), (RunLocation::Auto, RunLocation::Auto));
        for (text, expected) in [
            ("workers", RunLocation::Workers),
            ("replica", RunLocation::Replica),
            ("replicas", RunLocation::Replica),
        ] {
            let text = format!("scripts = \"{text}\"\nskills = \"{text}\"");
            let cluster: ClusterSettings = toml_edit::de::from_str(&text).unwrap();
            assert_eq!((cluster.scripts, cluster.skills), (expected, expected));
        }
        for key in ["scripts", "skills"] {
            assert!(toml_edit::de::from_str::<ClusterSettings>(&format!("{key} = \"nowhere\"")).is_err());
        }
        let worker: WorkerSettings = toml_edit::de::from_str("scripts = 0\nskills = 0").unwrap();
        assert_eq!((worker.scripts(), WorkerSettings::default().scripts()), (0, 32));
        assert_eq!((worker.skills(), WorkerSettings::default().skills()), (0, 8));
        let cluster: ClusterSettings = toml_edit::de::from_str("prefix = \"a.b\"").unwrap();
        assert_eq!(cluster.problem().map(|(key, _)| key), Some("prefix"));
    }

    #[test]
    fn reads_keys_and_expands_variables() {
        assert_eq!(read(&[]).unwrap(), []);
        let keys = read(&["${KEY}", KEY]).unwrap();
        assert_eq!(keys[0], keys[1]);
        for wrong in ["", "short", "${MISSING}", "AAAA"] {
            let error = read(&[KEY, wrong]).unwrap_err();
            assert!(error.localize(Lang::En).starts_with("key 2 of `session_keys`"), "{error:?}");
        }
        assert!(read(&[KEY; 9]).is_err());
    }
}
