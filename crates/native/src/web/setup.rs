//! Selects the search service: the configured one, otherwise one from the environment.

use std::time::Duration;

use toolhub_core::lang::LocalizedText;
use url::Url;

use super::error::SearchError;
use super::key::{ApiKey, KeySource, hidden};
use super::provider::SearchProvider;

/// Less than the timeout of a call, so that the error names the slow service.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);

/// The user's configuration, with variables expanded.
#[derive(Clone)]
pub struct SearchConfig {
    /// The service.
    pub provider: SearchProvider,
    /// The URL; the default one if `None`.
    pub url: Option<String>,
    /// The API key.
    pub api_key: Option<String>,
}

impl std::fmt::Debug for SearchConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchConfig").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// The configured service of `search_web`. Creates nothing and connects to nothing before the first search.
#[derive(Debug, Clone)]
pub struct WebSearch {
    setup: Result<Target, SearchError>,
    deadline: Duration,
}

/// A usable service.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) provider: SearchProvider,
    /// The URL of its search endpoint.
    pub(super) url: Url,
    pub(super) key: Option<ApiKey>,
    /// The origin of the key.
    pub(super) key_source: KeySource,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("provider", &self.provider)
            .field("location", &self.location())
            .finish()
    }
}

impl WebSearch {
    /// The first service with a variable in the environment.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |provider: &SearchProvider| lookup(provider.variable()).is_some_and(|text| !blank(&text));
        match SearchProvider::ALL.into_iter().find(set) {
            Some(provider) => Self::from_config(SearchConfig { provider, url: None, api_key: None }, lookup),
            None => Self::with(Err(SearchError::NotConfigured)),
        }
    }

    /// The configured service; missing values are taken from the environment.
    pub fn from_config(choice: SearchConfig, lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::with(target(choice, lookup).map_err(SearchError::InvalidConfig))
    }

    /// An invalid configuration, which every search reports.
    pub fn wrong(why: LocalizedText) -> Self {
        Self::with(Err(SearchError::InvalidConfig(why)))
    }

    /// Replaces the deadline of a search.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    fn with(setup: Result<Target, SearchError>) -> Self {
        Self { setup, deadline: REQUEST_TIMEOUT }
    }

    /// Whether a service is configured.
    pub fn is_set_up(&self) -> bool {
        self.target().is_ok()
    }

    pub(super) fn target(&self) -> Result<&Target, SearchError> {
        self.setup.as_ref().map_err(Clone::clone)
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }
}

impl Target {
    /// Host and port for messages, without a password in the URL.
    pub(super) fn location(&self) -> String {
        place_of(&self.url)
    }

    /// Removes secrets from `text`.
    pub(super) fn hide(&self, text: &str) -> String {
        let text = hidden(text, self.key.as_ref().map_or("", ApiKey::expose));
        hidden(&text, self.url.password().unwrap_or_default())
    }
}

/// Host and port of a URL.
pub(super) fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn target(choice: SearchConfig, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Target, LocalizedText> {
    let SearchConfig { provider, url, api_key } = choice;
    let (id, variable) = (provider.id(), provider.variable());
    let non_blank = |text: Option<String>| text.filter(|text| !blank(text));
    let from_variable = || non_blank(lookup(variable));
    let (url, key) = (non_blank(url), non_blank(api_key));
    let (url, key, key_source) = match provider {
        SearchProvider::Searxng => (url.or_else(from_variable), key, KeySource::Config),
        _ => match key {
            Some(key) => (url, Some(key), KeySource::Config),
            None => (url, from_variable(), KeySource::Variable(variable)),
        },
    };
    let url = url.or_else(|| provider.home().map(str::to_owned)).ok_or_else(|| {
        LocalizedText::new(
            format!("`[web_search]` names `{id}` without its `url`: write `url = \"http://127.0.0.1:8080\"` there, or set `{variable}`"),
            format!("`[web_search]` 选了 `{id}`，但没有写 `url`：请在其中写 `url = \"http://127.0.0.1:8080\"`，或设置 `{variable}`"),
        )
    })?;
    let key = match key {
        None if provider == SearchProvider::Searxng => None,
        None => {
            return Err(LocalizedText::new(
                format!(
                    "`[web_search]` names `{id}`, which needs a key: write `api_key = \"…\"` there, or set `{variable}`"
                ),
                format!(
                    "`[web_search]` 选了 `{id}`，它需要密钥：请在其中写 `api_key = \"…\"`，或设置 `{variable}`"
                ),
            ));
        }
        Some(text) => Some(ApiKey::new(&text).ok_or_else(|| {
            let location = key_source.name();
            LocalizedText::new(
                format!("{location} contains characters that a key cannot have: copy the key again"),
                format!("{location} 含有密钥不该有的字符：请重新复制密钥"),
            )
        })?),
    };
    Ok(Target { provider, url: address(url.trim(), provider)?, key, key_source })
}

/// The URL of the search endpoint at `base`, which may include its path.
fn address(base: &str, provider: SearchProvider) -> Result<Url, LocalizedText> {
    let wrong = |en: &str, zh: &str| {
        let id = provider.id();
        LocalizedText::new(
            format!("the address of `{id}` is wrong: {en}; write it like `http://127.0.0.1:8080`"),
            format!("`{id}` 的地址不对：{zh}；请写成 `http://127.0.0.1:8080` 这样"),
        )
    };
    // The message omits the URL, which may contain a password.
    let mut url = Url::parse(base).map_err(|error| wrong(&error.to_string(), &error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it is neither http nor https", "它既不是 http 也不是 https"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with(provider.path()) {
        url.set_path(&format!("{path}{}", provider.path()));
    }
    url.set_fragment(None);
    Ok(url)
}
