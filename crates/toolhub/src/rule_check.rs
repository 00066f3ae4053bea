//! Checks the rules of `[auth]` against what exists: keys, profiles, servers and tools.

use toolhub_access::{KnownNames, RuleSet, tool_names};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use crate::hub::Hub;
use crate::settings::DEFAULT_PROFILE;

impl Hub {
    /// Warnings about names in the rules that do not exist. Names of tools are checked once all servers have been listed.
    pub fn unknown_names_in_rules(&self) -> Vec<LocalizedText> {
        let settings = self.settings();
        let Ok(rules) = RuleSet::compile(settings.auth.rules.clone()) else { return Vec::new() };
        if rules.is_empty() {
            return Vec::new();
        }
        let servers = self.servers();
        let is_listed = self.unlisted().is_empty();
        let mut profiles: Vec<String> = settings.profiles.keys().cloned().collect();
        profiles.push(DEFAULT_PROFILE.to_owned());
        let known_names = KnownNames {
            keys: settings.auth.tokens.iter().map(|token| token.name.clone()).collect(),
            profiles,
            servers: servers.iter().map(|view| view.spec.id.to_string()).collect(),
            tools: is_listed.then(|| self.tool_names()),
        };
        let warnings = rules.unknown_names(&known_names);
        let text = |lang| move |warning: &toolhub_access::RuleWarning| warning.localize(lang);
        warnings
            .iter()
            .map(|warning| LocalizedText::new(text(Lang::En)(warning), text(Lang::Zh)(warning)))
            .collect()
    }

    /// Every name of every tool, also those that profiles give to tools.
    fn tool_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in self.catalog().iter() {
            for name in tool_names(&entry.tool) {
                names.push(format!("{}__{name}", entry.tool.source));
                names.push(name.to_owned());
            }
        }
        for profile in self.settings().profiles.values() {
            names.extend(profile.overrides.values().filter_map(|changes| changes.name.clone()));
        }
        names
    }
}
