//! `[agents.NAME]` of `toolhub.toml`: what an agent is told, which tools and which model it has, and how far it may go.

use serde::Deserialize;
use toolhub_agent::{Allowed, Budget, Way};

use super::span::Span;

/// The agent that answers where none is named.
pub const DEFAULT_AGENT: &str = "default";

/// `[agents.NAME]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    /// The model it asks, by its name at the endpoint of `[llm]`.
    pub model: Option<String>,
    /// What the model is told before everything else.
    pub instructions: Option<String>,
    /// The tools it may use, `*` for any letters; all, where this is not set, and none with an empty list.
    pub tools: Option<Vec<String>>,
    /// How it works with its model.
    pub way: Option<WayName>,
    /// How often a model is asked for one request.
    pub rounds: Option<u32>,
    /// How long one request may take.
    pub time: Option<Span>,
    /// Tokens that a model may read and write for one request.
    pub tokens: Option<u64>,
    /// Tokens of the prompt that tell of tools.
    pub prompt_tokens: Option<usize>,
}

/// How an agent works with its model, as the file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WayName {
    /// The model calls tools while it talks.
    Talk,
    /// The model makes a plan, which is run; then it answers.
    Plan,
}

impl From<WayName> for Way {
    fn from(name: WayName) -> Self {
        match name {
            WayName::Talk => Self::Talk,
            WayName::Plan => Self::Plan,
        }
    }
}

impl AgentSettings {
    /// How far it may go.
    pub fn budget(&self) -> Budget {
        let usual = Budget::default();
        Budget {
            rounds: self.rounds.unwrap_or(usual.rounds),
            time: self.time.map_or(usual.time, |span| span.0),
            tokens: self.tokens.unwrap_or(usual.tokens),
            prompt_tokens: self.prompt_tokens.unwrap_or(usual.prompt_tokens),
        }
    }

    /// The tools it may use.
    pub fn allowed(&self) -> Allowed {
        self.tools.clone().map_or_else(Allowed::default, Allowed::only)
    }
}
