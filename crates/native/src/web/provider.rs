//! The search services that are known, and what tells them apart before a request is made.

use serde::Deserialize;

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// An instance of SearXNG.
    Searxng,
    /// The API of Brave Search.
    Brave,
    /// The API of Tavily.
    Tavily,
}

impl SearchProvider {
    /// In the order in which the environment is looked through.
    pub(super) const ALL: [Self; 3] = [Self::Searxng, Self::Brave, Self::Tavily];

    /// As it is written in the config.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
        }
    }

    /// As it calls itself.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave Search",
            Self::Tavily => "Tavily",
        }
    }

    /// The variable that is enough to use it: the address of SearXNG, the key of the others.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Searxng => "SEARXNG_URL",
            Self::Brave => "BRAVE_API_KEY",
            Self::Tavily => "TAVILY_API_KEY",
        }
    }

    /// Where it is, unless the owner says otherwise; everybody has their own SearXNG.
    pub(super) fn home(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// The path of its search.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Searxng | Self::Tavily => "/search",
            Self::Brave => "/res/v1/web/search",
        }
    }
}
