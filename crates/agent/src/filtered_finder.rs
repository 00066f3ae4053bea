//! Restricts tool search to the tools that an agent may use, so that no plan contains a tool that it may not call. If the
//! request names a server, the search is restricted to that server's tools.

use toolhub_core::finder::{SearchResult, ToolFinder};
use toolhub_core::{BoxFuture, RawObject};

use toolhub_engine::Catalog;

use crate::allowlist::ToolAllowlist;

/// Factor by which the search limit is raised, because disallowed hits are removed.
const SEARCH_LIMIT_FACTOR: usize = 8;

/// A finder that returns only allowed tools.
pub(crate) struct FilteredFinder<'a> {
    pub(crate) finder: &'a dyn ToolFinder,
    pub(crate) allowlist: &'a ToolAllowlist,
    /// If set, only tools of this server are returned; the catalog lists them.
    pub(crate) server: Option<(&'a Catalog, &'a str)>,
}

impl FilteredFinder<'_> {
    fn finds(&self, name: &str) -> bool {
        let offers = |(catalog, server): (&Catalog, &str)| {
            catalog.named(name).any(|entry| entry.tool.source.to_string() == server)
        };
        self.allowlist.has(name) && self.server.is_none_or(offers)
    }
}

impl ToolFinder for FilteredFinder<'_> {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(async move {
            if self.allowlist.allows_all() && self.server.is_none() {
                return self.finder.search(request, limit).await;
            }
            let mut search = self.finder.search(request, limit.saturating_mul(SEARCH_LIMIT_FACTOR)).await;
            let best = search.hits.first().map(|hit| hit.tool.name().clone());
            search.hits.retain(|hit| self.finds(hit.tool.name().as_str()));
            search.hits.truncate(limit);
            // `fits` and `confidence` describe the best hit. If that hit was removed, they are lowered.
            let same = search.hits.first().map(|hit| hit.tool.name()) == best.as_ref();
            if !same {
                search.fits = false;
                search.confidence *= 0.5;
            }
            search
        })
    }

    fn describe(&self, name: &str) -> Vec<RawObject> {
        if self.finds(name) { self.finder.describe(name) } else { Vec::new() }
    }

    fn similar_names(&self, name: &str) -> Vec<String> {
        let mut similar = self.finder.similar_names(name);
        similar.retain(|name| self.finds(name));
        similar
    }

    fn note_unknown_tool(&self, name: &str) {
        self.finder.note_unknown_tool(name);
    }
}
