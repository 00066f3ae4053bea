//! How grave what a client hears of a log must be.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolhub_core::RawJson;

use crate::scan;

/// The levels, least grave first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// The same as JSON.
const WRITTEN: [&str; 8] = [
    "\"debug\"",
    "\"info\"",
    "\"notice\"",
    "\"warning\"",
    "\"error\"",
    "\"critical\"",
    "\"alert\"",
    "\"emergency\"",
];
/// What a client hears that said nothing.
const USUAL: usize = 1;

/// The least grave that a client wants to hear of.
#[derive(Debug)]
pub(crate) struct Level(AtomicUsize);

impl Default for Level {
    fn default() -> Self {
        Self(AtomicUsize::new(USUAL))
    }
}

impl Level {
    /// Its name, as JSON.
    pub(crate) fn written(&self) -> RawJson {
        let written = WRITTEN.get(self.0.load(Ordering::Relaxed)).copied();
        written.and_then(scan::known).unwrap_or_else(RawJson::null)
    }

    /// Wants that level from now on; whether there is such a one.
    pub(crate) fn set(&self, name: &str) -> bool {
        let found = LEVELS.iter().position(|known| *known == name);
        if let Some(level) = found {
            self.0.store(level, Ordering::Relaxed);
        }
        found.is_some()
    }

    /// Whether what is logged with these params is grave enough.
    pub(crate) fn admits(&self, params: Option<&RawJson>) -> bool {
        let level = params.and_then(RawJson::object);
        let level = level.and_then(|params| params.get("level")?.decode::<String>().ok());
        let level = level.and_then(|level| LEVELS.iter().position(|known| *known == level));
        level.is_none_or(|level| level >= self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_written_as_they_are_called() {
        for name in LEVELS {
            let level = Level::default();
            assert!(level.set(name));
            assert_eq!(level.written().text().unwrap(), name);
        }
    }
}
