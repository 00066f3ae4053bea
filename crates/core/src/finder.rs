//! Tool search: results and their scores. Implementations define the ranking.

use crate::json::RawObject;
use crate::ports::BoxFuture;
use crate::tool::Tool;

/// A search hit.
#[derive(Debug, Clone)]
pub struct Found {
    /// The tool, with its capabilities.
    pub tool: Tool,
    /// Relevance, comparable only within one search.
    pub score: f64,
    /// The components of the score: name and value.
    pub parts: Vec<(&'static str, f64)>,
}

/// The result of a search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The best tools, best first, relevant or not.
    pub hits: Vec<Found>,
    /// Whether any of them is relevant.
    pub fits: bool,
    /// Confidence in that, from 0 to 1.
    pub confidence: f64,
}

impl Search {
    /// The tools to show; empty if none is relevant.
    pub fn fitting(&self) -> &[Found] {
        if self.fits { &self.hits } else { &[] }
    }
}

/// Searches the tools of the catalog.
pub trait ToolFinder: Send + Sync {
    /// The best tools for a request in natural language.
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, Search>;

    /// The descriptions of all tools of this name, from all sources; the one that a call would use is first.
    fn describe(&self, name: &str) -> Vec<RawObject>;

    /// Similar names for an unknown name.
    fn near(&self, name: &str) -> Vec<String>;
}
