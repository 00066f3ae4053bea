//! The minimum level of the log messages that a client receives.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolhub_core::RawJson;

use toolhub_mcp_wire::scan;

/// The levels in ascending severity.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// The same as JSON.
const JSON_NAMES: [&str; 8] = [
    "\"debug\"",
    "\"info\"",
    "\"notice\"",
    "\"warning\"",
    "\"error\"",
    "\"critical\"",
    "\"alert\"",
    "\"emergency\"",
];
/// The default level: `info`.
const DEFAULT_LEVEL: usize = 1;

/// The minimum level of a client.
#[derive(Debug)]
pub(crate) struct MinimumLevel(AtomicUsize);

impl Default for MinimumLevel {
    fn default() -> Self {
        Self(AtomicUsize::new(DEFAULT_LEVEL))
    }
}

impl MinimumLevel {
    /// Returns its name as JSON.
    pub(crate) fn to_json(&self) -> RawJson {
        let to_json = JSON_NAMES.get(self.0.load(Ordering::Relaxed)).copied();
        to_json.and_then(scan::known).unwrap_or_else(RawJson::null)
    }

    /// Sets the level. Returns false if the name is not a level.
    pub(crate) fn set(&self, name: &str) -> bool {
        let index = LEVELS.iter().position(|level_name| *level_name == name);
        if let Some(level) = index {
            self.0.store(level, Ordering::Relaxed);
        }
        index.is_some()
    }

    /// Returns whether a log message with these params has at least this level.
    pub(crate) fn admits(&self, params: Option<&RawJson>) -> bool {
        let level = params.and_then(RawJson::object);
        let level = level.and_then(|params| params.get("level")?.decode::<String>().ok());
        let level = level.and_then(|level| LEVELS.iter().position(|level_name| *level_name == level));
        level.is_none_or(|level| level >= self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serializes_level_names() {
        for name in LEVELS {
            let level = MinimumLevel::default();
            assert!(level.set(name));
            assert_eq!(level.to_json().text().unwrap(), name);
        }
    }
}
