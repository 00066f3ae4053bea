//! Which search service is used: what the config chose, else what the environment offers.

use std::time::Duration;

use toolhub_core::lang::Text;
use url::Url;

use super::failure::SearchFailure;
use super::key::{ApiKey, hidden};
use super::provider::SearchProvider;

/// Less than a call has, so that it is the service that is named when it is slow.
const DEADLINE: Duration = Duration::from_secs(25);

/// What the owner chose, variables filled in.
#[derive(Clone)]
pub struct SearchChoice {
    /// Which service.
    pub provider: SearchProvider,
    /// Where it is; the usual place if not given.
    pub url: Option<String>,
    /// The key for it.
    pub api_key: Option<String>,
}

impl std::fmt::Debug for SearchChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchChoice").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// What `search_web` searches with. Nothing is connected to, or even prepared, before the first search.
#[derive(Debug, Clone)]
pub struct WebSearch {
    setup: Result<Target, SearchFailure>,
    deadline: Duration,
}

/// A service that can be asked.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) provider: SearchProvider,
    /// The address of its search.
    pub(super) url: Url,
    pub(super) key: Option<ApiKey>,
    /// Where the key came from.
    pub(super) key_place: KeyPlace,
}

/// Where a key came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPlace {
    Config,
    Variable(&'static str),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("provider", &self.provider).field("place", &self.place()).finish()
    }
}

impl WebSearch {
    /// The first service that the environment has something for.
    pub fn found(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |provider: &SearchProvider| lookup(provider.variable()).is_some_and(|text| !blank(&text));
        match SearchProvider::ALL.into_iter().find(set) {
            Some(provider) => Self::chosen(SearchChoice { provider, url: None, api_key: None }, lookup),
            None => Self::with(Err(SearchFailure::NotSetUp)),
        }
    }

    /// The service that the owner chose; what the choice leaves out is looked for in the environment.
    pub fn chosen(choice: SearchChoice, lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::with(target(choice, lookup).map_err(SearchFailure::WrongSetup))
    }

    /// A choice that cannot be followed: every search says why.
    pub fn wrong(why: Text) -> Self {
        Self::with(Err(SearchFailure::WrongSetup(why)))
    }

    /// The same with another limit for a search.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    fn with(setup: Result<Target, SearchFailure>) -> Self {
        Self { setup, deadline: DEADLINE }
    }

    /// Whether there is somebody to ask.
    pub fn is_set_up(&self) -> bool {
        self.target().is_ok()
    }

    pub(super) fn target(&self) -> Result<&Target, SearchFailure> {
        self.setup.as_ref().map_err(Clone::clone)
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }
}

impl Target {
    /// Its machine, for people: never the whole address, which may hold a password.
    pub(super) fn place(&self) -> String {
        place_of(&self.url)
    }

    /// `text` without what nobody may see.
    pub(super) fn hide(&self, text: &str) -> String {
        let text = hidden(text, self.key.as_ref().map_or("", ApiKey::expose));
        hidden(&text, self.url.password().unwrap_or_default())
    }
}

/// Machine and port of an address.
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

fn target(choice: SearchChoice, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Target, Text> {
    let SearchChoice { provider, url, api_key } = choice;
    let (id, variable) = (provider.id(), provider.variable());
    let given = |text: Option<String>| text.filter(|text| !blank(text));
    let from_variable = || given(lookup(variable));
    let (url, key) = (given(url), given(api_key));
    let (url, key, key_place) = match provider {
        SearchProvider::Searxng => (url.or_else(from_variable), key, KeyPlace::Config),
        _ => match key {
            Some(key) => (url, Some(key), KeyPlace::Config),
            None => (url, from_variable(), KeyPlace::Variable(variable)),
        },
    };
    let url = url.or_else(|| provider.home().map(str::to_owned)).ok_or_else(|| {
        Text::new(
            format!("`[web_search]` names `{id}` without its `url`: write `url = \"http://127.0.0.1:8080\"` there, or set `{variable}`"),
            format!("`[web_search]` 选了 `{id}`，但没有写 `url`：请在其中写 `url = \"http://127.0.0.1:8080\"`，或设置 `{variable}`"),
        )
    })?;
    let key = match key {
        None if provider == SearchProvider::Searxng => None,
        None => {
            return Err(Text::new(
                format!(
                    "`[web_search]` names `{id}`, which needs a key: write `api_key = \"…\"` there, or set `{variable}`"
                ),
                format!(
                    "`[web_search]` 选了 `{id}`，它需要密钥：请在其中写 `api_key = \"…\"`，或设置 `{variable}`"
                ),
            ));
        }
        Some(text) => Some(ApiKey::new(&text).ok_or_else(|| {
            let place = key_place.name();
            Text::new(
                format!("{place} holds characters that no key has: copy the key again"),
                format!("{place} 含有密钥不该有的字符：请重新复制密钥"),
            )
        })?),
    };
    Ok(Target { provider, url: address(url.trim(), provider)?, key, key_place })
}

impl KeyPlace {
    /// For messages.
    pub(super) fn name(self) -> String {
        match self {
            Self::Config => "`api_key` in `[web_search]`".to_owned(),
            Self::Variable(name) => format!("`{name}`"),
        }
    }
}

/// The address of the search of the service at `base`, which may name the search itself already.
fn address(base: &str, provider: SearchProvider) -> Result<Url, Text> {
    let wrong = |en: &str, zh: &str| {
        let id = provider.id();
        Text::new(
            format!("the address of `{id}` is wrong: {en}; write it like `http://127.0.0.1:8080`"),
            format!("`{id}` 的地址不对：{zh}；请写成 `http://127.0.0.1:8080` 这样"),
        )
    };
    // What is wrong is told without the address: it may hold a password.
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
