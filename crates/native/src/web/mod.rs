//! `search_web`: sends a query to a search service. The submodules select the service, implement its API and define the
//! failures.

mod brave;
mod client;
mod error;
mod error_response;
mod exchange;
mod key;
mod language;
mod plain;
mod provider;
mod response;
mod search_query;
mod searxng;
mod setup;
mod setup_help;
mod tavily;

use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

pub use provider::SearchProvider;
pub use search_query::Freshness;
pub use setup::{SearchConfig, WebSearch};

use search_query::{SearchArguments, SearchQuery};

/// Searches the web and gives titles, addresses and short excerpts of the pages found, best first.
///
/// Use it for news, facts that change, and whatever you are not sure of; name the address that a fact comes from.
#[tool(read_only, open_world, crate = crate::private)]
pub async fn search_web(
    #[state] web: &WebSearch,
    #[doc = "What to search for, in a few words, in the language of the pages you want"] query: String,
    #[doc = "How many results to give"]
    #[default(5)]
    #[schemars(range(min = 1, max = 20))]
    count: u8,
    #[doc = "Language of the pages: `zh`, `en`, `pt-BR`; any if left out"] language: Option<String>,
    #[doc = "How old the pages may be; any age if left out"] freshness: Option<Freshness>,
) -> Result<ToolOutput, ToolError> {
    let arguments = SearchArguments { query, count, language, freshness };
    let target = web.target()?;
    let search_query = SearchQuery::read(&arguments)?;
    let hits = exchange::search(target, &search_query, web.deadline()).await?;
    response::describe(target.provider, &search_query, hits)
}

#[cfg(test)]
mod tests;
