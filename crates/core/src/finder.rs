//! Tool search: results and their scores. Implementations define the ranking.

use crate::boxed::BoxFuture;
use crate::json::RawObject;
use crate::tool::Tool;

/// A search hit.
#[derive(Debug, Clone)]
pub struct SearchHit {
    /// The tool, with its capabilities.
    pub tool: Tool,
    /// Relevance, comparable only within one search.
    pub score: f64,
    /// The components of the score: name and value.
    pub parts: Vec<(&'static str, f64)>,
}

/// The result of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchResult {
    /// The best tools, best first, relevant or not.
    pub hits: Vec<SearchHit>,
    /// Whether any of them is relevant.
    pub fits: bool,
    /// Confidence in that, from 0 to 1.
    pub confidence: f64,
}

impl SearchResult {
    /// The tools to show; empty if none is relevant.
    pub fn fitting(&self) -> &[SearchHit] {
        if self.fits { &self.hits } else { &[] }
    }
}

/// Searches the tools of the catalog.
pub trait ToolFinder: Send + Sync {
    /// The best tools for a request in natural language.
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult>;

    /// The descriptions of all tools of this name, from all sources; the one that a call would use is first.
    fn describe(&self, name: &str) -> Vec<RawObject>;

    /// Similar names for an unknown name.
    fn similar_names(&self, name: &str) -> Vec<String>;

    /// Records that a call was refused because no tool of this name is visible. The default does nothing.
    fn note_unknown_tool(&self, _name: &str) {}
}
