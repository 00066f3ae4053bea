//! `[store]` of `toolhub.toml`: the location, durability and retention of stored data.

use serde::Deserialize;
use toolhub_client_config::expand_variables;
use toolhub_store::{DetailLevel, Durability, OpenError, Retention, StoreLocation, StoreOptions};

use super::paths::Paths;
use super::size::ByteSize;
use super::span::DurationSetting;

/// `[store]`
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct StoreSettings {
    /// A PostgreSQL database instead of the data folder; `${VAR}` is expanded from the environment.
    pub url: Option<String>,
    /// The failures that an acknowledged write survives.
    pub durability: Option<DurabilityName>,
    /// Whether calls with side effects require a working store; default `true`.
    pub required: Option<bool>,
    /// Retention of calls.
    pub keep_calls: Option<DurationSetting>,
    /// Retention of full results.
    pub keep_results: Option<DurationSetting>,
    /// The maximum total size of full results in bytes.
    pub result_bytes: Option<u64>,
    /// The maximum size of the database; the oldest results are deleted first, then the oldest calls.
    pub max_size: Option<ByteSize>,
    /// Which calls are stored with details.
    pub detail: Option<DetailName>,
}

/// Which calls are stored with details, as named in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailName {
    /// Every call.
    All,
    /// A sample of the calls that change nothing and succeed.
    Sample,
}

/// The failures that an acknowledged write survives, as named in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityName {
    /// The end of the process.
    Program,
    /// A power failure.
    Power,
}

// The URL may contain a password.
impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSettings").field("url", &self.url.is_some()).finish_non_exhaustive()
    }
}

impl StoreSettings {
    /// The location of the store.
    pub fn location(&self, paths: &Paths) -> Result<StoreLocation, OpenError> {
        let Some(url) = &self.url else { return Ok(StoreLocation::Folder(paths.data_dir.clone())) };
        let lookup = |name: &str| std::env::var(name).ok();
        let url = expand_variables(url, &lookup)
            .map_err(|name| OpenError::Url(format!("it uses ${{{name}}}, which is not set")))?;
        url.parse().map(StoreLocation::Postgres)
    }

    /// Whether several hubs may use the store.
    pub fn is_shared(&self) -> bool {
        self.url.is_some()
    }

    /// The durability and retention of the store.
    pub fn options(&self) -> StoreOptions {
        let defaults = Retention::default();
        let durability = match self.durability {
            None => Durability::default(),
            Some(DurabilityName::Program) => Durability::Program,
            Some(DurabilityName::Power) => Durability::Power,
        };
        let retention = Retention {
            calls: self.keep_calls.map_or(defaults.calls, |span| span.0),
            results: self.keep_results.map_or(defaults.results, |span| span.0),
            result_bytes: self.result_bytes.unwrap_or(defaults.result_bytes),
            max_bytes: self.max_size.map_or(defaults.max_bytes, |size| size.0),
            ..defaults
        };
        let detail = match self.detail {
            None => DetailLevel::default(),
            Some(DetailName::All) => DetailLevel::All,
            Some(DetailName::Sample) => DetailLevel::Sample,
        };
        StoreOptions { durability, detail, retention }
    }
}
