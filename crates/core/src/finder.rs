//! Finding tools for a request: what is found and why. How they are ranked is left to whoever implements it.

use crate::json::RawObject;
use crate::ports::BoxFuture;
use crate::tool::Tool;

/// One tool that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The tool, with what it is good for.
    pub tool: Tool,
    /// How well it fits, to compare with others of one search.
    pub score: f64,
    /// What the score is made of: what, and how much.
    pub parts: Vec<(&'static str, f64)>,
}

/// What a search came to.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The best tools, best first, whether they fit or not.
    pub hits: Vec<Found>,
    /// Whether any of them is worth showing.
    pub fits: bool,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
}

impl Search {
    /// The tools to show: none where none fits.
    pub fn fitting(&self) -> &[Found] {
        if self.fits { &self.hits } else { &[] }
    }
}

/// Somebody who knows every tool and finds the right ones.
pub trait ToolFinder: Send + Sync {
    /// The best tools for a request in words.
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, Search>;

    /// Every tool of that name, wherever it lives, as it is shown; the one that would be called first.
    fn describe(&self, name: &str) -> Vec<RawObject>;

    /// Names that are near to one that nobody has.
    fn near(&self, name: &str) -> Vec<String>;
}
