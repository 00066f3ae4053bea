//! Skills of MCP servers, as offered by `use_skill`. The caller of this crate implements fetching.

use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::BoxFuture;

/// A skill of an MCP server, shown as `SERVER:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSkill {
    /// The server's id.
    pub server: String,
    /// The name of the skill on the server.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The paths of its files, if the server lists them.
    pub files: Vec<String>,
}

impl RemoteSkill {
    /// The name under which it is offered.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.server, self.name)
    }
}

/// Fetches files of skills from MCP servers, and checks them against the listing.
pub trait SkillFetcher: Send + Sync {
    /// Returns the bytes of a file, or of the `SKILL.md` if `file` is `None`.
    fn fetch<'a>(
        &'a self,
        skill: &'a RemoteSkill,
        file: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<u8>, LocalizedText>>;
}
