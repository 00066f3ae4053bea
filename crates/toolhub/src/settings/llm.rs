//! `[llm]` of `toolhub.toml`: the language model and its options.

use serde::Deserialize;
use toolhub_client_config::expand_variables;
use toolhub_core::Secret;
use toolhub_core::lang::LocalizedText;
use toolhub_llm::discover::{EndpointUrl, ModelChoice};
use toolhub_llm::{ApiKey, ToolCalls, WireFormat};

use super::span::DurationSetting;

/// `[llm]`
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct LlmSettings {
    /// Whether a model is used; default `true`.
    pub enabled: Option<bool>,
    /// The URL of its endpoint; `${VAR}` is expanded from the environment.
    pub url: Option<String>,
    /// Its name at the endpoint; `${VAR}` is expanded from the environment.
    pub model: Option<String>,
    /// The wire format; derived from the URL if unset.
    pub api: Option<WireFormat>,
    /// The API key; `${VAR}` is expanded from the environment.
    pub key: Option<Secret>,
    /// How it calls tools.
    pub tool_calls: Option<ToolCalls>,
    /// Timeout of a response.
    pub timeout: Option<DurationSetting>,
    /// The maximum number of output tokens.
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
}

// The URL may contain a password.
impl std::fmt::Debug for LlmSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmSettings")
            .field("model", &self.model)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

impl LlmSettings {
    /// Whether a model is used if one is available.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Expands the variables.
    pub fn choice(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<ModelChoice, LocalizedText> {
        let fill = |text: &str| expand_variables(text, lookup).map_err(|name| unset(&name));
        let key = self.key.as_ref().map(|key| fill(key.expose())).transpose()?;
        Ok(ModelChoice {
            url: self.url.as_deref().map(fill).transpose()?.map(EndpointUrl),
            model: self.model.as_deref().map(fill).transpose()?,
            api: self.api,
            // An empty key counts as unset: local servers often need none.
            key: match key.filter(|key| !key.trim().is_empty()) {
                Some(key) => Some(ApiKey::new(&key).ok_or_else(invalid_key)?),
                None => None,
            },
            tool_calls: self.tool_calls,
            timeout: self.timeout.map(|span| span.0),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
        })
    }
}

fn unset(name: &str) -> LocalizedText {
    LocalizedText::new(
        format!("`[llm]` uses ${{{name}}}, which is not set: set it, or write the value itself"),
        format!("`[llm]` 用到了未设置的 ${{{name}}}：请设置它，或直接写出它的值"),
    )
}

fn invalid_key() -> LocalizedText {
    LocalizedText::new(
        "`key` in `[llm]` contains characters that a key cannot have: copy the key again",
        "`[llm]` 中的 `key` 含有密钥不该有的字符：请重新复制密钥",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_and_hides_secrets() {
        let settings: LlmSettings = toml_edit::de::from_str(
            "url = \"http://a:${PASS}@host/v1\"\nkey = \"${KEY:-hunter2}\"\nmodel = \"m\"\ntimeout = \"5m\"\ntool_calls = \"text\"\n",
        )
        .unwrap();
        let lookup = |name: &str| (name == "PASS").then(|| "hunter3".to_owned());
        let choice = settings.choice(&lookup).unwrap();
        assert_eq!(choice.url, Some(EndpointUrl("http://a:hunter3@host/v1".to_owned())));
        assert_eq!(choice.key, ApiKey::new("hunter2"));
        assert_eq!(choice.timeout.unwrap().as_secs(), 300);
        assert_eq!(choice.tool_calls, Some(ToolCalls::Text));
        let debug = format!("{settings:?} {choice:?}");
        assert!(!debug.contains("hunter") && debug.contains("\"m\""), "{debug}");
        assert!(settings.choice(&|_| None).unwrap_err().to_string().contains("${PASS}"));
    }

    #[test]
    fn empty_api_key_is_unset_and_invalid_one_is_reported() {
        let settings = |key: &str| LlmSettings { key: Some(Secret::new(key)), ..LlmSettings::default() };
        assert_eq!(settings("${NONE:-}").choice(&|_| None).unwrap().key, None);
        let error = settings("sk-\u{7}hunter2").choice(&|_| None).unwrap_err().to_string();
        assert!(error.contains("a key cannot have") && !error.contains("hunter2"), "{error}");
    }
}
