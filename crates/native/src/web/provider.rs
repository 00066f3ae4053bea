//! The supported search services and their properties.

use serde::Deserialize;

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// A SearXNG instance.
    Searxng,
    /// The Brave Search API.
    Brave,
    /// The Tavily API.
    Tavily,
}

impl SearchProvider {
    /// In the order in which the environment is searched.
    pub(super) const ALL: [Self; 3] = [Self::Searxng, Self::Brave, Self::Tavily];

    /// The name in the config.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
        }
    }

    /// The display name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave Search",
            Self::Tavily => "Tavily",
        }
    }

    /// The environment variable that suffices to use it: the URL of SearXNG, the key of the others.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Searxng => "SEARXNG_URL",
            Self::Brave => "BRAVE_API_KEY",
            Self::Tavily => "TAVILY_API_KEY",
        }
    }

    /// The default base URL; none for SearXNG, which is self-hosted.
    pub(super) fn home(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// The path of the search endpoint.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Searxng | Self::Tavily => "/search",
            Self::Brave => "/res/v1/web/search",
        }
    }
}
