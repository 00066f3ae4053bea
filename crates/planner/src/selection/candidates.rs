//! The tools that a plan may use: the search results for each part of a request.

use std::collections::HashMap;

use jiff::civil::Date;
use toolhub_core::Tool;
use toolhub_core::finder::{SearchResult, ToolFinder};

use crate::lexer::mention::ParsedText;
use crate::lexer::split;
use crate::selection::clause_intent;
use crate::selection::generalize;
use crate::selection::implied_need;

/// Maximum number of search results per part.
const MAX_SEARCH_RESULTS: usize = 10;
/// Maximum number of parts to search for. Requests with more parts are not planned without a model.
const MAX_PARTS: usize = 24;

/// The search results for each part of one request.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    searches: HashMap<String, SearchResult>,
}

impl Candidates {
    /// Runs all searches that a plan for `request` needs.
    pub async fn gather(request: &str, finder: &dyn ToolFinder) -> Self {
        let mut found = Self::default();
        for part in sub_requests(request) {
            let search = finder.search(&part, MAX_SEARCH_RESULTS).await;
            found.add(part, search);
        }
        found
    }

    /// Adds the search result for one of the texts from [`sub_requests`].
    pub fn add(&mut self, part: impl Into<String>, search: SearchResult) {
        self.searches.insert(part.into(), search);
    }

    /// Every tool that was found for some part.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.searches.values().flat_map(|search| search.hits.iter().map(|hit| &hit.tool))
    }

    pub(crate) fn of(&self, part: &str) -> Option<&SearchResult> {
        self.searches.get(part)
    }
}

/// The texts to search tools for, without duplicates: the whole request, its clauses, and queries derived from its contents.
pub fn sub_requests(request: &str) -> Vec<String> {
    let plain = crate::normalize_request(request);
    let text = plain.as_str();
    // Splitting does not depend on the date.
    let parsed = ParsedText::of(text, Date::ZERO);
    let mut found = vec![text.to_owned()];
    found.extend(generalize::generalize(&parsed));
    let request_intent = clause_intent::intent(&parsed);
    found.extend(request_intent.query());
    for clause in split::clauses(&parsed).into_iter().take(MAX_PARTS) {
        let part = text.get(clause.start..clause.end).unwrap_or_default().trim();
        let own = ParsedText::of(part, Date::ZERO);
        let intent = clause_intent::intent(&own);
        let related_query = intent.query_about(&request_intent);
        for part in [Some(part.to_owned()), generalize::generalize(&own), intent.query(), related_query]
            .into_iter()
            .flatten()
        {
            if !part.is_empty() && !found.contains(&part) {
                found.push(part);
            }
        }
    }
    for query in implied_need::queries(&parsed) {
        found.push(query.to_owned());
    }
    found
}
