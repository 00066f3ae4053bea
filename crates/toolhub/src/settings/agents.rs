//! `[agents.NAME]` of `toolhub.toml`: the instructions, tools, model and budget of an agent.

use serde::Deserialize;
use toolhub_agent::{AgentBudget, AgentMode, ToolAllowlist};

use super::span::DurationSetting;

/// The agent that is used if none is named.
pub const DEFAULT_AGENT: &str = "default";

/// `[agents.NAME]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    /// Its model, by its name at the endpoint of `[llm]`.
    pub model: Option<String>,
    /// The beginning of the system prompt.
    pub instructions: Option<String>,
    /// The tools it may use, with `*` as a wildcard. All tools if unset, none if the list is empty.
    pub tools: Option<Vec<String>>,
    /// How it uses its model.
    #[serde(alias = "way")]
    pub mode: Option<ModeName>,
    /// The maximum number of model requests per user request.
    pub rounds: Option<u32>,
    /// The time limit of a request.
    pub time: Option<DurationSetting>,
    /// The maximum number of input and output tokens per request.
    pub tokens: Option<u64>,
    /// The maximum number of prompt tokens that describe tools.
    pub prompt_tokens: Option<usize>,
}

/// How an agent uses its model, as named in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeName {
    /// The model calls tools during the conversation.
    Talk,
    /// The model makes a plan, which is run; then it answers.
    Plan,
    /// The model writes scripts that call tools.
    Code,
}

impl From<ModeName> for AgentMode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Talk => Self::Talk,
            ModeName::Plan => Self::Plan,
            ModeName::Code => Self::Code,
        }
    }
}

impl AgentSettings {
    /// The limits of a request.
    pub fn budget(&self) -> AgentBudget {
        let defaults = AgentBudget::default();
        AgentBudget {
            rounds: self.rounds.unwrap_or(defaults.rounds),
            time: self.time.map_or(defaults.time, |span| span.0),
            tokens: self.tokens.unwrap_or(defaults.tokens),
            prompt_tokens: self.prompt_tokens.unwrap_or(defaults.prompt_tokens),
        }
    }

    /// The tools it may use.
    pub fn allowlist(&self) -> ToolAllowlist {
        self.tools.clone().map_or_else(ToolAllowlist::default, ToolAllowlist::only)
    }
}
