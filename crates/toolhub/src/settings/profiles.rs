//! `[profiles.NAME]` of `toolhub.toml`: what clients of the gateway see, and under which texts.

use std::collections::BTreeMap;

use serde::Deserialize;
use toolhub_agent::Allowed;

/// The profile of `/mcp` where none is named.
pub const DEFAULT_PROFILE: &str = "default";

/// `[profiles.NAME]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ProfileSettings {
    /// The sources whose tools are offered, `native` among them; all, where there is none.
    pub servers: Vec<String>,
    /// The tools that are offered, `*` for any letters; all, where there is none.
    pub tools: Vec<String>,
    /// More of them.
    pub allow: Vec<String>,
    /// Tools that are not offered, whatever else is said.
    pub deny: Vec<String>,
    /// Only tools that are good for one of these.
    pub tags: Vec<String>,
    /// Whether all tools are listed, or found by searching.
    pub expose: Expose,
    /// Tools that are listed even where the others are found by searching.
    pub pinned: Vec<String>,
    /// Whether arguments that miss a schema by a hair are mended.
    pub mend_arguments: bool,
    /// Whether definitions are offered as they are, though some clients then refuse the whole list.
    pub lossless: bool,
    /// Other texts and arguments for some tools.
    pub overrides: BTreeMap<String, Override>,
}

/// How tools are shown to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expose {
    /// All are listed.
    All,
    /// `search_tools`, `describe_tool`, `call_tool` and the pinned ones are listed; the others are found.
    Search,
    /// As `all` where there are few, as `search` where there are many.
    #[default]
    Auto,
}

/// What is said of a tool instead of its own words.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Override {
    /// Another name.
    pub name: Option<String>,
    /// Another title.
    pub title: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Arguments that are always given, and that clients do not see.
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

impl ProfileSettings {
    /// Whether the tools of that source are offered at all.
    pub fn has_source(&self, source: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|server| server == source)
    }

    /// Whether the tool of that name is not offered, whatever else is said.
    pub fn denies(&self, name: &str) -> bool {
        !self.deny.is_empty() && Allowed::new(self.deny.clone()).has(name)
    }

    /// Whether the skill of that name is offered; one of a server is named `server:skill`.
    pub fn admits_skill(&self, name: &str) -> bool {
        let (server, own) = match name.split_once(':') {
            Some((server, own)) => (Some(server), own),
            None => (None, name),
        };
        let admitted = match server {
            Some(server) => self.has_source(server),
            None => self.offers_skills(),
        };
        admitted && !self.denies(name) && !self.denies(own)
    }

    /// Whether the hub's own skills are offered at all.
    pub fn offers_skills(&self) -> bool {
        let tags = [toolhub_skills::use_skill::TAG.to_owned()];
        self.has_source("skill") && self.has_tool(toolhub_skills::use_skill::NAME, &tags)
    }

    /// Whether the owner names the tool, and not only some among which it is.
    pub fn names_tool(&self, name: &str) -> bool {
        self.tools.iter().chain(&self.allow).chain(&self.pinned).any(|named| named == name)
    }

    /// Whether the tool of that name, good for these, is offered.
    pub fn has_tool(&self, name: &str, tags: &[String]) -> bool {
        let wanted: Vec<String> = self.tools.iter().chain(&self.allow).cloned().collect();
        let tagged = self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag));
        !self.denies(name) && tagged && Allowed::new(wanted).has(name)
    }
}
