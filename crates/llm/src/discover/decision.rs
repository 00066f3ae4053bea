//! Selects the model from the config and the environment only: a pure function without network access.

use toolhub_core::lang::LocalizedText;

use super::{DiscoveredModel, ModelChoice};
use crate::endpoint::{Endpoint, WireFormat};
use crate::key::ApiKey;

/// Base URLs and default models of OpenAI and Anthropic.
const OPENAI: (&str, &str) = ("https://api.openai.com/v1", "gpt-5-mini");
const ANTHROPIC: (&str, &str) = ("https://api.anthropic.com", "claude-sonnet-4-5");

/// The result of the selection.
#[derive(Debug, Clone)]
pub enum ModelDecision {
    /// Use this model.
    Use(DiscoveredModel),
    /// The endpoint is known, but its model must be chosen from its list.
    ListModels(DiscoveredModel),
    /// Nothing is configured: search for a local model server.
    ProbeLocal {
        /// The value of `OLLAMA_HOST`, if set.
        ollama: Option<String>,
        /// The configured model, if any.
        model: Option<String>,
    },
    /// The configuration is invalid.
    Wrong(LocalizedText),
}

/// The environment variables of a wire format.
struct Variables {
    api: WireFormat,
    key: &'static str,
    url: &'static str,
    model: &'static str,
    home: (&'static str, &'static str),
}

const VARIABLES: [Variables; 2] = [
    Variables {
        api: WireFormat::Anthropic,
        key: "ANTHROPIC_API_KEY",
        url: "ANTHROPIC_BASE_URL",
        model: "ANTHROPIC_MODEL",
        home: ANTHROPIC,
    },
    Variables {
        api: WireFormat::OpenAi,
        key: "OPENAI_API_KEY",
        url: "OPENAI_BASE_URL",
        model: "OPENAI_MODEL",
        home: OPENAI,
    },
];

fn variables_of(api: WireFormat) -> &'static Variables {
    match api {
        WireFormat::Anthropic => &VARIABLES[0],
        WireFormat::OpenAi => &VARIABLES[1],
    }
}

/// Selects the model. `lookup` returns the value of an environment variable.
pub fn select_model(choice: &ModelChoice, lookup: &(dyn Fn(&str) -> Option<String> + Sync)) -> ModelDecision {
    let set = |name: &str| lookup(name).filter(|text| !text.trim().is_empty());
    if let Some(url) = &choice.url {
        let api = choice.api.unwrap_or_else(|| api_of(&url.0));
        let why = LocalizedText::new("`[llm] url` in the config", "配置中的 `[llm] url`");
        let at = EndpointChoice { api, url: url.0.clone(), variables: variables_of(api), why };
        return at.decide(choice, &set);
    }
    if let Some(api) = choice.api {
        let variables = variables_of(api);
        let url = set(variables.url).unwrap_or_else(|| variables.home.0.to_owned());
        let why = LocalizedText::new("`[llm] api` in the config", "配置中的 `[llm] api`");
        return EndpointChoice { api, url, variables, why }.decide(choice, &set);
    }
    for variables in &VARIABLES {
        let name = match (set(variables.key), set(variables.url), variables.api) {
            (Some(_), _, _) => variables.key,
            // Local servers often need no key.
            (None, Some(_), WireFormat::OpenAi) => variables.url,
            _ => continue,
        };
        let url = set(variables.url).unwrap_or_else(|| variables.home.0.to_owned());
        let why = LocalizedText::new(format!("`{name}` in the environment"), format!("环境变量 `{name}`"));
        return EndpointChoice { api: variables.api, url, variables, why }.decide(choice, &set);
    }
    ModelDecision::ProbeLocal { ollama: set("OLLAMA_HOST"), model: choice.model.clone() }
}

/// The default wire format of a URL.
fn api_of(url: &str) -> WireFormat {
    let is_anthropic = url.contains("anthropic") || url.trim_end_matches('/').ends_with("/messages");
    if is_anthropic { WireFormat::Anthropic } else { WireFormat::OpenAi }
}

/// A selected endpoint.
struct EndpointChoice {
    api: WireFormat,
    url: String,
    variables: &'static Variables,
    why: LocalizedText,
}

impl EndpointChoice {
    fn decide(self, choice: &ModelChoice, set: &dyn Fn(&str) -> Option<String>) -> ModelDecision {
        let Self { api, url, variables, why } = self;
        let mut endpoint = match Endpoint::new(api, &url, String::new()) {
            Ok(endpoint) => choice.applied_to(endpoint),
            Err(wrong) => return ModelDecision::Wrong(wrong),
        };
        let at_home = is_at(&endpoint, api, variables.home.0);
        // A key from the environment is only sent to the endpoint it belongs to.
        let of_environment = at_home || set(variables.url).is_some_and(|url| is_at(&endpoint, api, &url));
        endpoint.key = match (&choice.key, set(variables.key).filter(|_| of_environment)) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(text)) => match ApiKey::new(&text) {
                Some(key) => Some(key),
                None => return ModelDecision::Wrong(invalid_key(variables.key)),
            },
            (None, None) if at_home => return ModelDecision::Wrong(missing_key(&endpoint, variables.key)),
            (None, None) => None,
        };
        let named = choice.model.clone().or_else(|| set(variables.model).filter(|_| of_environment));
        match named.or_else(|| at_home.then(|| variables.home.1.to_owned())) {
            Some(model) => ModelDecision::Use(DiscoveredModel { endpoint: endpoint.with_model(model), why }),
            None => ModelDecision::ListModels(DiscoveredModel { endpoint, why }),
        }
    }
}

fn is_at(endpoint: &Endpoint, api: WireFormat, url: &str) -> bool {
    Endpoint::new(api, url, String::new()).is_ok_and(|other| other.origin() == endpoint.origin())
}

fn invalid_key(variable: &str) -> LocalizedText {
    LocalizedText::new(
        format!("`{variable}` contains characters that a key cannot have: copy the key again"),
        format!("`{variable}` 含有密钥不该有的字符：请重新复制密钥"),
    )
}

fn missing_key(endpoint: &Endpoint, variable: &str) -> LocalizedText {
    let origin = endpoint.origin();
    LocalizedText::new(
        format!("{origin} needs a key: set `{variable}`, or write `key = \"${{{variable}}}\"` in `[llm]`"),
        format!("{origin} 需要密钥：请设置 `{variable}`，或在 `[llm]` 中写 `key = \"${{{variable}}}\"`"),
    )
}
