//! The sections of `toolhub.toml` whose changes require a restart.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Sections that are read when a hub is built. `[auth]`, `[[servers]]`, `[routing]`, `[approvals]` and a part of `[limits]` are not
/// included: a running hub applies their changes.
const RESTART_SECTIONS: [&str; 16] = [
    "agents",
    "audit",
    "cluster",
    "limits",
    "llm",
    "native",
    "openai",
    "profiles",
    "script",
    "search",
    "serve",
    "skills",
    "store",
    "tags",
    "telemetry",
    "web_search",
];
/// Members of `[limits]` whose changes a running hub applies.
const LIVE_LIMITS: [&str; 3] = ["call", "call_cap", "connect"];

/// A digest of each section that is read when a hub is built. Values may be secrets, so only digests are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestartSections(BTreeMap<&'static str, String>);

impl RestartSections {
    pub(super) fn of(text: &str) -> Self {
        let mut file: Map<String, Value> = toml_edit::de::from_str(text).unwrap_or_default();
        if let Some(Value::Object(limits)) = file.get_mut("limits") {
            limits.retain(|key, _| !LIVE_LIMITS.contains(&key.as_str()));
        }
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        let digest = |name: &'static str| {
            let value = file.get(name).filter(|value| !is_empty(value))?;
            Some((name, format!("{:x?}", Sha256::digest(value.to_string()))))
        };
        Self(RESTART_SECTIONS.into_iter().filter_map(digest).collect())
    }

    /// The sections that differ from those of another text.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        RESTART_SECTIONS.into_iter().filter(|name| self.0.get(name) != before.0.get(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_only_sections_that_need_a_restart() {
        let before = "[serve]\nbind = \"127.0.0.1:1\"\n[limits]\ncall = \"5s\"\n[routing]\nbatch = 2\n";
        let changed = |after: &str| RestartSections::of(after).changed_since(&RestartSections::of(before));
        assert_eq!(changed(before), [""; 0]);
        let spelled = "# a comment\nserve = { bind = \"127.0.0.1:1\" }\n[limits]\ncall = \"9s\"\nconnect = 3\n[routing]\nbatch = 3\n[[servers]]\nid = \"a\"\n[approvals]\npin = \"block\"\n[future]\na = 1\n";
        assert_eq!(changed(spelled), [""; 0]);
        let others = "[serve]\nbind = \"127.0.0.1:2\"\n[limits]\nstarts = 3\n[[auth.tokens]]\nname = \"a\"\nsha256 = \"b\"\n";
        assert_eq!(changed(others), ["limits", "serve"]);
        assert!(!format!("{:?}", RestartSections::of("[llm]\nkey = \"hunter2\"\n")).contains("hunter2"));
    }
}
