//! Finding a model: what the owner chose, else what the environment offers, else one on this machine. What is decided
//! here is said with its reasons; nobody is asked anything but which models it has.

mod decision;
mod local;

use std::time::Duration;

use toolhub_core::lang::{Lang, Say as _, Text};

use crate::client::ModelClient;
use crate::endpoint::{Api, Endpoint, ToolCalls};
use crate::key::ApiKey;

#[cfg(test)]
mod tests;

pub use self::decision::{Decision, decide};
use self::local::Local;

/// How long an endpoint that somebody named may take to list its models.
const LISTING: Duration = Duration::from_secs(10);

/// What the owner chose, variables filled in. Everything may be left out.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// Where it is.
    pub url: Option<Address>,
    /// What it is called there.
    pub model: Option<String>,
    /// The wire format.
    pub api: Option<Api>,
    /// The key for it.
    pub key: Option<ApiKey>,
    /// How it calls tools.
    pub tool_calls: Option<ToolCalls>,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u32>,
    /// How freely it speaks.
    pub temperature: Option<f32>,
}

/// An address that may hold a password, and so is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(pub String);

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Address(…)")
    }
}

impl ModelChoice {
    /// The endpoint with what else was chosen.
    pub(crate) fn applied_to(&self, mut endpoint: Endpoint) -> Endpoint {
        endpoint.tool_calls = self.tool_calls.unwrap_or(endpoint.tool_calls);
        endpoint.timeout = self.timeout.unwrap_or(endpoint.timeout);
        endpoint.max_tokens = self.max_tokens.or(endpoint.max_tokens);
        endpoint.temperature = self.temperature.or(endpoint.temperature);
        endpoint
    }
}

/// A model that was found, and why this one.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is and how it is spoken to.
    pub endpoint: Endpoint,
    /// Why this one.
    pub why: Text,
}

/// Why there is no model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoModel {
    /// Nobody set one up, which is no error: toolhub works without.
    NotSetUp {
        /// Where it was looked for, and how to have one.
        why: Text,
    },
    /// The endpoint that is set up does not answer, and no model is named.
    Unreachable {
        /// Which endpoint, and why not.
        why: Text,
    },
    /// One is set up and cannot be used.
    Wrong {
        /// What is wrong, and what to do.
        why: Text,
    },
}

impl NoModel {
    /// Why there is none.
    pub fn why(&self) -> &Text {
        match self {
            Self::NotSetUp { why } | Self::Unreachable { why } | Self::Wrong { why } => why,
        }
    }
}

/// Finds a model. Models on this machine are asked for where nothing else is set up; that takes 0.3 s at most.
pub async fn discover(
    choice: &ModelChoice,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Found, NoModel> {
    match decide(choice, lookup) {
        Decision::Use(found) => Ok(found),
        Decision::Wrong(why) => Err(NoModel::Wrong { why }),
        Decision::AskForName(found) => named(found).await,
        Decision::LookHere { ollama, model } => {
            let found = local::look(&Local::all(ollama), model.as_deref()).await?;
            Ok(Found { endpoint: choice.applied_to(found.endpoint), ..found })
        }
    }
}

/// The same endpoint with the first model that it lists.
async fn named(found: Found) -> Result<Found, NoModel> {
    let client = ModelClient::new(found.endpoint.clone());
    let place = found.endpoint.place();
    let listed = client.models(LISTING).await.map_err(|error| {
        let (source, source_zh) = (found.why.say(Lang::En), found.why.say(Lang::Zh));
        let (en, zh) = (error.say(Lang::En), error.say(Lang::Zh));
        NoModel::Unreachable {
            why: Text::new(
                format!("the models of {place} ({source}) could not be listed: {en}; start it, or name one with `model = \"…\"` in `[llm]`"),
                format!("无法列出 {place}（{source_zh}）的模型：{zh}；请启动它，或在 `[llm]` 中写 `model = \"…\"` 指定模型"),
            ),
        }
    })?;
    let Some(model) = local::pick(&listed, None) else {
        return Err(NoModel::Wrong {
            why: Text::new(
                format!("{place} has no model that talks; write `model = \"…\"` in `[llm]`"),
                format!("{place} 没有可以对话的模型；请在 `[llm]` 中写 `model = \"…\"`"),
            ),
        });
    };
    Ok(Found { endpoint: found.endpoint.serving(model), why: found.why })
}
