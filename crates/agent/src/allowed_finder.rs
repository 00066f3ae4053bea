//! Finding among the tools that an agent may use: what it may not call is not found, so that no plan is made with it. A
//! request that names a server finds that server's tools.

use toolhub_core::finder::{Search, ToolFinder};
use toolhub_core::{BoxFuture, RawObject};

use toolhub_engine::Catalog;

use crate::allowed::Allowed;

/// How much more is looked for, as some of it is left out.
const MORE: usize = 8;

/// A finder that finds only what is allowed.
pub(crate) struct AllowedFinder<'a> {
    pub(crate) finder: &'a dyn ToolFinder,
    pub(crate) allowed: &'a Allowed,
    /// The server whose tools alone are found, with the catalog that lists them.
    pub(crate) server: Option<(&'a Catalog, &'a str)>,
}

impl AllowedFinder<'_> {
    fn finds(&self, name: &str) -> bool {
        let offers = |(catalog, server): (&Catalog, &str)| {
            catalog.named(name).any(|entry| entry.tool.source.to_string() == server)
        };
        self.allowed.has(name) && self.server.is_none_or(offers)
    }
}

impl ToolFinder for AllowedFinder<'_> {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, Search> {
        Box::pin(async move {
            if self.allowed.is_everything() && self.server.is_none() {
                return self.finder.search(request, limit).await;
            }
            let mut search = self.finder.search(request, limit.saturating_mul(MORE)).await;
            let best = search.hits.first().map(|hit| hit.tool.name().clone());
            search.hits.retain(|hit| self.finds(hit.tool.name().as_str()));
            search.hits.truncate(limit);
            // That some tool fits was said of the best one; where that may not be used, it is no longer sure.
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

    fn near(&self, name: &str) -> Vec<String> {
        let mut near = self.finder.near(name);
        near.retain(|name| self.finds(name));
        near
    }
}
