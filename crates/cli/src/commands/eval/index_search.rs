//! The search of the evaluation: an index without a hub around it.

use toolhub_core::finder::{SearchHit, SearchResult};
use toolhub_search::{SearchRequest, ToolIndex};

/// Searches the tools for a request or a part of one.
pub(crate) fn search_index(index: &ToolIndex, part: &str, limit: usize) -> SearchResult {
    let ranking = index.rank(&SearchRequest::new(part).limit(limit));
    let found = |hit: &toolhub_search::RankedTool<'_>| SearchHit {
        tool: hit.tool.clone(),
        score: f64::from(hit.score),
        parts: Vec::new(),
    };
    SearchResult {
        hits: ranking.hits.iter().map(found).collect(),
        fits: ranking.fits,
        confidence: f64::from(ranking.confidence),
    }
}
