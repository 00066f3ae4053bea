//! Finds a model: the configured one, otherwise one from the environment, otherwise one on this machine. The result
//! includes the reason. The only requests made are those that list models.

mod decision;
mod local;

use std::time::Duration;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use crate::client::ModelClient;
use crate::endpoint::{Endpoint, ToolCalls, WireFormat};
use crate::key::ApiKey;

#[cfg(test)]
mod tests;

pub use self::decision::{ModelDecision, select_model};
use self::local::LocalServer;

/// Timeout for listing the models of a configured endpoint.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// The user's configuration, with variables expanded. All fields are optional.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// The URL of the endpoint.
    pub url: Option<EndpointUrl>,
    /// The name of the model.
    pub model: Option<String>,
    /// The wire format.
    pub api: Option<WireFormat>,
    /// The API key.
    pub key: Option<ApiKey>,
    /// How the model calls tools.
    pub tool_calls: Option<ToolCalls>,
    /// Timeout of a response.
    pub timeout: Option<Duration>,
    /// Maximum number of tokens of a response.
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
}

/// A URL that may contain a password, and is therefore not printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl(pub String);

impl std::fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Address(…)")
    }
}

impl ModelChoice {
    /// Applies the other options to an endpoint.
    pub(crate) fn applied_to(&self, mut endpoint: Endpoint) -> Endpoint {
        endpoint.tool_calls = self.tool_calls.unwrap_or(endpoint.tool_calls);
        endpoint.timeout = self.timeout.unwrap_or(endpoint.timeout);
        endpoint.max_tokens = self.max_tokens.or(endpoint.max_tokens);
        endpoint.temperature = self.temperature.or(endpoint.temperature);
        endpoint
    }
}

/// A selected model and the reason.
#[derive(Debug, Clone)]
pub struct DiscoveredModel {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The reason.
    pub why: LocalizedText,
}

/// Why there is no model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoModel {
    /// None is configured. This is not an error: toolhub works without a model.
    NotSetUp {
        /// Where toolhub searched, and how to configure one.
        why: LocalizedText,
    },
    /// The configured endpoint does not respond, and no model is named.
    Unreachable {
        /// The endpoint and the reason.
        why: LocalizedText,
    },
    /// The configuration is invalid.
    Wrong {
        /// The error and its correction.
        why: LocalizedText,
    },
}

impl NoModel {
    /// The message.
    pub fn why(&self) -> &LocalizedText {
        match self {
            Self::NotSetUp { why } | Self::Unreachable { why } | Self::Wrong { why } => why,
        }
    }
}

/// Finds a model. Local servers are probed only if nothing is configured; that takes 0.3 s at most.
pub async fn discover_model(
    choice: &ModelChoice,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<DiscoveredModel, NoModel> {
    match select_model(choice, lookup) {
        ModelDecision::Use(found) => Ok(found),
        ModelDecision::Wrong(why) => Err(NoModel::Wrong { why }),
        ModelDecision::ListModels(found) => named(found).await,
        ModelDecision::ProbeLocal { ollama, model } => {
            let found = local::probe(&LocalServer::all(ollama), model.as_deref()).await?;
            Ok(DiscoveredModel { endpoint: choice.applied_to(found.endpoint), ..found })
        }
    }
}

/// Completes an endpoint with the first model that it lists.
async fn named(found: DiscoveredModel) -> Result<DiscoveredModel, NoModel> {
    let client = ModelClient::new(found.endpoint.clone());
    let origin = found.endpoint.origin();
    let listed = client.models(LISTING_TIMEOUT).await.map_err(|error| {
        let (source, source_zh) = (found.why.localize(Lang::En), found.why.localize(Lang::Zh));
        let (en, zh) = (error.localize(Lang::En), error.localize(Lang::Zh));
        NoModel::Unreachable {
            why: LocalizedText::new(
                format!("the models of {origin} ({source}) could not be listed: {en}; start it, or name one with `model = \"…\"` in `[llm]`"),
                format!("无法列出 {origin}（{source_zh}）的模型：{zh}；请启动它，或在 `[llm]` 中写 `model = \"…\"` 指定模型"),
            ),
        }
    })?;
    let Some(model) = local::pick(&listed, None) else {
        return Err(NoModel::Wrong {
            why: LocalizedText::new(
                format!("{origin} has no model that talks; write `model = \"…\"` in `[llm]`"),
                format!("{origin} 没有可以对话的模型；请在 `[llm]` 中写 `model = \"…\"`"),
            ),
        });
    };
    Ok(DiscoveredModel { endpoint: found.endpoint.with_model(model), why: found.why })
}
