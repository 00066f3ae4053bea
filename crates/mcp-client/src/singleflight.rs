//! Lists the tools of a server with singleflight: concurrent callers share one listing, and a new one starts if a
//! `list_changed` notification arrived meanwhile.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use toolhub_client_config::TransportSpec;
use toolhub_core::{EventKind, RawJson};
use toolhub_mcp_wire::{Era, McpError, Offer};

use crate::listing::{self, Listing};
use crate::supervisor::{Purpose, Server};

/// The result of listing a server, with the identity that it reports.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The tools.
    pub listing: Listing,
    /// When the server answered.
    pub at: SystemTime,
    /// The protocol era; `None` if it is doubtful.
    pub era: Option<Era>,
    /// Name and version that the server reports.
    pub peer: String,
}

type Answer = BoxFuture<'static, Result<Listed, McpError>>;

/// A listing in progress. It is cancelled when its last waiter is dropped.
pub(crate) struct ListingFlight {
    /// The change counter when the listing started.
    seen: u64,
    waiting: WeakShared<Answer>,
}

impl Server {
    /// Lists the tools, connecting if necessary.
    pub async fn list(self: &Arc<Self>) -> Result<Listed, McpError> {
        let _in_use = self.hold(Purpose::Work);
        self.listed().await
    }

    /// Lists the tools again if no process has to be started for it, otherwise returns `None`. Does not count as use for the
    /// idle timeout.
    pub async fn refresh(self: &Arc<Self>) -> Option<Result<Listed, McpError>> {
        // Held before the check, so that a running child is not stopped in between.
        let _held = self.hold(Purpose::Upkeep);
        match self.within_reach() {
            true => Some(self.listed().await),
            false => None,
        }
    }

    /// Whether the server can be listed without starting a process. A child is stopped while unused to save resources; an
    /// hourly refresh must not start it again, and it is listed when a caller starts it. A server over HTTP runs in any case,
    /// and listing it is one short request.
    pub fn within_reach(&self) -> bool {
        !matches!(self.spec().transport, TransportSpec::Stdio(_)) || self.lock_status().open().is_some()
    }

    async fn listed(self: &Arc<Self>) -> Result<Listed, McpError> {
        let told = self.changes_told();
        loop {
            let (seen, waiting) = self.flight();
            let listed = waiting.await;
            // A listing that started before the last `list_changed` notification may return the old list.
            if seen >= told {
                return listed;
            }
        }
    }

    /// Returns the listing in progress, or starts one.
    fn flight(self: &Arc<Self>) -> (u64, Shared<Answer>) {
        let mut status = self.lock_status();
        if let Some(flight) = &status.listing
            && let Some(waiting) = flight.waiting.upgrade().filter(|waiting| waiting.peek().is_none())
        {
            return (flight.seen, waiting);
        }
        let seen = self.changes_told();
        let waiting = Arc::clone(self).list_now().boxed().shared();
        status.listing = waiting.downgrade().map(|waiting| ListingFlight { seen, waiting });
        (seen, waiting)
    }

    async fn list_now(self: Arc<Self>) -> Result<Listed, McpError> {
        let patience = self.spec().connect_timeout;
        let mut connection = self.connection().await?;
        let began = self.mark();
        let mut listed = tokio::time::timeout(patience, listing::list(&connection)).await;
        if matches!(listed, Ok(Err(McpError::SessionExpired { .. }))) {
            self.forget(&connection);
            connection = self.connection().await?;
            listed = tokio::time::timeout(patience, listing::list(&connection)).await;
        }
        let result = listed
            .unwrap_or_else(|_| Err(McpError::TimedOut(patience).while_connecting(connection.stderr_tail())));
        self.note(began, result.as_ref().err());
        let listing = result?;
        let skipped = listing.skipped.clone();
        self.emit(EventKind::Listed { server: self.id().clone(), tools: listing.tools.len(), skipped });
        let greeting = &connection.greeting;
        let (era, peer) = (Some(greeting.era).filter(|_| !greeting.doubtful), greeting.peer.clone());
        Ok(Listed { listing, at: SystemTime::now(), era, peer })
    }

    /// Lists resources, resource templates or prompts, connecting if necessary.
    pub async fn offers(self: &Arc<Self>, offer: Offer) -> Result<Vec<RawJson>, McpError> {
        let _in_use = self.hold(Purpose::Work);
        let connection = self.connection().await?;
        let patience = self.spec().connect_timeout;
        match tokio::time::timeout(patience, listing::list_offer(&connection, offer)).await {
            Ok(offers) => offers,
            Err(_) => Err(McpError::TimedOut(patience)),
        }
    }
}
