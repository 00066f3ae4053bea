//! `[web_search]` of `toolhub.toml`: the web search service; by default one that the environment configures.

use serde::Deserialize;
use toolhub_client_config::expand_variables;
use toolhub_core::lang::LocalizedText;
use toolhub_native::{SearchConfig, SearchProvider, WebSearch};

/// `[web_search]`
#[derive(Clone, Deserialize)]
pub struct WebSearchSettings {
    /// The search service.
    pub provider: SearchProvider,
    /// Its URL; `${VAR}` is expanded from the environment.
    #[serde(default)]
    pub url: Option<String>,
    /// Its API key; `${VAR}` is expanded from the environment.
    #[serde(default)]
    pub api_key: Option<toolhub_core::Secret>,
}

// The URL may contain a password.
impl std::fmt::Debug for WebSearchSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSearchSettings").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl WebSearchSettings {
    /// The search service: the configured one, otherwise one that the environment configures.
    pub(super) fn search_service(settings: Option<&Self>) -> WebSearch {
        let lookup = |name: &str| std::env::var(name).ok();
        let Some(settings) = settings else { return WebSearch::from_environment(&lookup) };
        match settings.filled_in(&lookup) {
            Ok(choice) => WebSearch::from_config(choice, &lookup),
            Err(name) => WebSearch::wrong(LocalizedText::new(
                format!(
                    "`[web_search]` uses ${{{name}}}, which is not set: set it, or write the value itself"
                ),
                format!("`[web_search]` 用到了未设置的 ${{{name}}}：请设置它，或直接写出它的值"),
            )),
        }
    }

    /// Expands the variables. The error is the name of the first one that is not set.
    fn filled_in(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<SearchConfig, String> {
        let fill = |text: &str| expand_variables(text, lookup);
        Ok(SearchConfig {
            provider: self.provider,
            url: self.url.as_deref().map(fill).transpose()?,
            api_key: self.api_key.as_ref().map(|key| fill(key.expose())).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_and_hides_secrets() {
        let settings: WebSearchSettings = toml_edit::de::from_str(
            "provider = \"tavily\"\nurl = \"http://a:${PASS}@host\"\napi_key = \"${KEY:-hunter2}\"\n",
        )
        .unwrap();
        let lookup = |name: &str| (name == "PASS").then(|| "hunter3".to_owned());
        let choice = settings.filled_in(&lookup).unwrap();
        assert_eq!(choice.url.as_deref(), Some("http://a:hunter3@host"));
        assert_eq!(choice.api_key.as_deref(), Some("hunter2"));
        let debug = format!("{settings:?} {choice:?}");
        assert!(!debug.contains("hunter") && debug.contains("Tavily"), "{debug}");
        assert_eq!(settings.filled_in(&|_| None).unwrap_err(), "PASS");
    }
}
