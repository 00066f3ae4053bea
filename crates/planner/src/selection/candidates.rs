//! The tools that a plan may use: the search results for each part of a request.

use std::collections::HashMap;

use jiff::civil::Date;
use toolhub_core::Tool;
use toolhub_core::finder::{SearchResult, ToolFinder};

use crate::lexer::mention::Reading;
use crate::lexer::split;
use crate::selection::choose;
use crate::selection::probe;
use crate::selection::skeleton;

/// Maximum number of search results per part.
const LOOKED_AT: usize = 10;
/// Maximum number of parts to search for. Requests with more parts are not planned without a model.
const MOST_PARTS: usize = 24;

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
            let search = finder.search(&part, LOOKED_AT).await;
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
    let plain = crate::plain(request);
    let text = plain.as_str();
    // Splitting does not depend on the date.
    let reading = Reading::of(text, Date::ZERO);
    let mut found = vec![text.to_owned()];
    found.extend(skeleton::skeleton(&reading));
    let whole = choose::wish(&reading);
    found.extend(whole.query());
    for clause in split::clauses(&reading).into_iter().take(MOST_PARTS) {
        let part = text.get(clause.start..clause.end).unwrap_or_default().trim();
        let own = Reading::of(part, Date::ZERO);
        let wish = choose::wish(&own);
        let about = wish.query_about(&whole);
        for part in
            [Some(part.to_owned()), skeleton::skeleton(&own), wish.query(), about].into_iter().flatten()
        {
            if !part.is_empty() && !found.contains(&part) {
                found.push(part);
            }
        }
    }
    for query in probe::queries(&reading) {
        found.push(query.to_owned());
    }
    found
}
