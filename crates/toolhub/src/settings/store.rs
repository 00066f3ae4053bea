//! `[store]` of `toolhub.toml`: where what must outlive a run is kept, how safely and for how long.

use serde::Deserialize;
use toolhub_mcp::config::expand;
use toolhub_store::{Detail, Durability, OpenError, Retention, StoreOptions, StorePlace};

use super::places::Places;
use super::size::Size;
use super::span::Span;

/// `[store]`
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct StoreSettings {
    /// A PostgreSQL database instead of the data folder; `${VAR}` is filled in from the environment.
    pub url: Option<String>,
    /// What an acknowledged write outlives.
    pub durability: Option<DurabilityName>,
    /// Whether what may change something may only run where it can be written down; yes, unless this says no.
    pub required: Option<bool>,
    /// How long calls are kept.
    pub keep_calls: Option<Span>,
    /// How long full results are kept.
    pub keep_results: Option<Span>,
    /// How many bytes of full results are kept.
    pub result_bytes: Option<u64>,
    /// How large the database may become; the oldest results go first, then the oldest calls.
    pub max_size: Option<Size>,
    /// Which calls are kept with their details.
    pub detail: Option<DetailName>,
}

/// Which calls are kept with their details, as the file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailName {
    /// Every call.
    All,
    /// A sample of the calls that change nothing and succeed.
    Sample,
}

/// What an acknowledged write outlives, as the file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityName {
    /// The end of the program.
    Program,
    /// A loss of power.
    Power,
}

// The address may hold a password.
impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSettings").field("url", &self.url.is_some()).finish_non_exhaustive()
    }
}

impl StoreSettings {
    /// Where the store is.
    pub fn place(&self, places: &Places) -> Result<StorePlace, OpenError> {
        let Some(url) = &self.url else { return Ok(StorePlace::Folder(places.home.clone())) };
        let lookup = |name: &str| std::env::var(name).ok();
        let url = expand(url, &lookup)
            .map_err(|name| OpenError::Url(format!("it uses ${{{name}}}, which is not set")))?;
        url.parse().map(StorePlace::Postgres)
    }

    /// How safely and for how long things are kept.
    pub fn options(&self) -> StoreOptions {
        let usual = Retention::default();
        let durability = match self.durability {
            None => Durability::default(),
            Some(DurabilityName::Program) => Durability::Program,
            Some(DurabilityName::Power) => Durability::Power,
        };
        let retention = Retention {
            calls: self.keep_calls.map_or(usual.calls, |span| span.0),
            results: self.keep_results.map_or(usual.results, |span| span.0),
            result_bytes: self.result_bytes.unwrap_or(usual.result_bytes),
            max_bytes: self.max_size.map_or(usual.max_bytes, |size| size.0),
            ..usual
        };
        let detail = match self.detail {
            None => Detail::default(),
            Some(DetailName::All) => Detail::All,
            Some(DetailName::Sample) => Detail::Sample,
        };
        StoreOptions { durability, detail, retention }
    }
}
