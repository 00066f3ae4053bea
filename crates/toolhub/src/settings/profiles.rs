//! `[profiles.NAME]` of `toolhub.toml`: the tools that clients of the gateway see, and their texts.

use std::collections::BTreeMap;

use serde::Deserialize;
use toolhub_agent::ToolAllowlist;

/// The profile of `/mcp` without a name.
pub const DEFAULT_PROFILE: &str = "default";

/// `[profiles.NAME]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ProfileSettings {
    /// The sources whose tools are offered, including `native`; all if empty.
    pub servers: Vec<String>,
    /// The tools that are offered, with `*` as a wildcard; all if empty.
    pub tools: Vec<String>,
    /// Further tools that are offered.
    pub allow: Vec<String>,
    /// Tools that are never offered.
    pub deny: Vec<String>,
    /// Only tools with one of these tags.
    pub tags: Vec<String>,
    /// Whether tools are listed or found by search.
    pub expose: Expose,
    /// Tools that are listed even if the others are found by search.
    pub pinned: Vec<String>,
    /// Whether arguments with minor schema violations are coerced.
    #[serde(alias = "mend_arguments")]
    pub coerce_arguments: bool,
    /// Whether definitions are offered unchanged, though some clients then reject the whole list.
    pub lossless: bool,
    /// Replaced texts and fixed arguments of tools.
    pub overrides: BTreeMap<String, ToolOverride>,
}

/// How tools are offered to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expose {
    /// All tools are listed.
    All,
    /// `search_tools`, `describe_tool`, `call_tool` and pinned tools are listed; the others are found by search.
    Search,
    /// `search_tools`, `describe_tool`, `run_script` and pinned tools are listed; scripts call the others.
    Code,
    /// `all` with few tools, `search` with many.
    #[default]
    Auto,
}

/// Replaced texts and fixed arguments of a tool.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolOverride {
    /// Another name.
    pub name: Option<String>,
    /// Another title.
    pub title: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Fixed arguments, which are hidden from clients.
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

impl ProfileSettings {
    /// Whether the tools of that source are offered.
    pub fn has_source(&self, source: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|server| server == source)
    }

    /// Whether the tool is never offered.
    pub fn denies(&self, name: &str) -> bool {
        !self.deny.is_empty() && ToolAllowlist::new(self.deny.clone()).has(name)
    }

    /// Whether the skill is offered; a skill of a server is named `server:skill`.
    pub fn admits_skill(&self, name: &str) -> bool {
        let (server, skill_name) = match name.split_once(':') {
            Some((server, skill_name)) => (Some(server), skill_name),
            None => (None, name),
        };
        let admitted = match server {
            Some(server) => self.has_source(server),
            None => self.offers_skills(),
        };
        admitted && !self.denies(name) && !self.denies(skill_name)
    }

    /// Whether the hub's own skills are offered.
    pub fn offers_skills(&self) -> bool {
        let tags = [toolhub_skills::use_skill_definition::TAG.to_owned()];
        self.has_source("skill") && self.has_tool(toolhub_core::USE_SKILL, &tags)
    }

    /// Whether the profile names the tool itself, not only by a wildcard.
    pub fn names_tool(&self, name: &str) -> bool {
        self.tools.iter().chain(&self.allow).chain(&self.pinned).any(|named| named == name)
    }

    /// Whether the tool with these tags is offered.
    pub fn has_tool(&self, name: &str, tags: &[String]) -> bool {
        let patterns: Vec<String> = self.tools.iter().chain(&self.allow).cloned().collect();
        let tagged = self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag));
        !self.denies(name) && tagged && ToolAllowlist::new(patterns).has(name)
    }
}
