//! `[audit]` of `toolhub.toml`: the audit log.

use serde::Deserialize;
use toolhub_store::AuditOptions;

use super::auth::AuthSettings;
use super::paths::Paths;
use super::span::DurationSetting;

/// The file of the signing key in the data folder.
const KEY_FILE: &str = "audit.key";

/// `[audit]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuditSettings {
    /// Whether calls, refusals and changes are appended to the audit log; by default if keys or issuers are configured.
    pub enabled: Option<bool>,
    /// How long records are kept.
    pub keep: Option<DurationSetting>,
}

impl AuditSettings {
    /// The options of the audit log; `None` if it is off.
    pub fn options(&self, auth: &AuthSettings, paths: &Paths) -> Option<AuditOptions> {
        self.enabled.unwrap_or_else(|| auth.is_required()).then(|| {
            let defaults = AuditOptions::new(paths.data_dir.join(KEY_FILE));
            AuditOptions { retention: self.keep.map_or(defaults.retention, |span| span.0), ..defaults }
        })
    }
}
