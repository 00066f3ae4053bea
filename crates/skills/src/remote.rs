//! Skills of servers, as the tool that activates skills offers them; who fetches them is left to whoever knows servers.

use toolhub_core::lang::Text;
use toolhub_core::ports::BoxFuture;

/// A skill that a server has. Its name says whose it is: `SERVER:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSkill {
    /// The server's id.
    pub server: String,
    /// What the server calls the skill.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// The paths of its files, where the server says which there are.
    pub files: Vec<String>,
}

impl RemoteSkill {
    /// The name it is offered under.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.server, self.name)
    }
}

/// Somebody who fetches files of skills from servers, and checks that they are what was listed.
pub trait Fetch: Send + Sync {
    /// The text of a file; of the `SKILL.md`, where none is named.
    fn fetch<'a>(
        &'a self,
        skill: &'a RemoteSkill,
        file: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<u8>, Text>>;
}
