//! Lists the tools of a server with singleflight: concurrent callers share one listing, and a new one starts if a
//! `list_changed` notification arrived meanwhile.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use toolhub_client_config::TransportSpec;
use toolhub_core::{EventKind, RawJson};
use toolhub_mcp_wire::{McpError, Offer};

use crate::listing;
use crate::listing_flight::{ListingFlight, ListingResult, ServerListing};
use crate::server_status::RequestPurpose;
use crate::supervisor::Server;

impl Server {
    /// Lists the tools, connecting if necessary.
    pub async fn list(self: &Arc<Self>) -> Result<ServerListing, McpError> {
        let _in_use = self.begin_request(RequestPurpose::CallerRequest);
        self.listed().await
    }

    /// Lists the tools again if no process has to be started for it, otherwise returns `None`. Does not count as use for the
    /// idle timeout.
    pub async fn refresh(self: &Arc<Self>) -> Option<Result<ServerListing, McpError>> {
        // Held before the check, so that a running child is not stopped in between.
        let _guard = self.begin_request(RequestPurpose::Refresh);
        match self.can_list_without_start() {
            true => Some(self.listed().await),
            false => None,
        }
    }

    /// Whether the server can be listed without starting a process. A child is stopped while unused to save resources; an
    /// hourly refresh must not start it again, and it is listed when a caller starts it. A server over HTTP runs in any case,
    /// and listing it is one short request.
    pub fn can_list_without_start(&self) -> bool {
        !matches!(self.spec().transport, TransportSpec::Stdio(_)) || self.lock_status().open().is_some()
    }

    async fn listed(self: &Arc<Self>) -> Result<ServerListing, McpError> {
        let required = self.change_count();
        loop {
            let (seen, waiting) = self.join_listing();
            let listed = waiting.await;
            // A listing that started before the last `list_changed` notification may return the old list.
            if seen >= required {
                return listed;
            }
        }
    }

    /// Returns the listing in progress, or starts one.
    fn join_listing(self: &Arc<Self>) -> (u64, Shared<ListingResult>) {
        let mut status = self.lock_status();
        if let Some(join_listing) = &status.listing
            && let Some(waiting) = join_listing.waiting.upgrade().filter(|waiting| waiting.peek().is_none())
        {
            return (join_listing.seen, waiting);
        }
        let seen = self.change_count();
        let waiting = Arc::clone(self).list_now().boxed().shared();
        status.listing = waiting.downgrade().map(|waiting| ListingFlight { seen, waiting });
        (seen, waiting)
    }

    async fn list_now(self: Arc<Self>) -> Result<ServerListing, McpError> {
        let timeout = self.spec().connect_timeout;
        let mut connection = self.connection().await?;
        let began = self.failure_mark();
        let mut listed = tokio::time::timeout(timeout, listing::list(&connection)).await;
        if matches!(listed, Ok(Err(McpError::SessionExpired { .. }))) {
            self.discard(&connection);
            connection = self.connection().await?;
            listed = tokio::time::timeout(timeout, listing::list(&connection)).await;
        }
        let result = listed
            .unwrap_or_else(|_| Err(McpError::TimedOut(timeout).while_connecting(connection.stderr_tail())));
        self.record_outcome(began, result.as_ref().err());
        let listing = result?;
        let skipped = listing.skipped.clone();
        self.emit(EventKind::Listed { server: self.id().clone(), tools: listing.tools.len(), skipped });
        let server_info = &connection.server_info;
        let (era, peer) =
            (Some(server_info.era).filter(|_| !server_info.era_uncertain), server_info.peer.clone());
        Ok(ServerListing { listing, at: SystemTime::now(), era, peer })
    }

    /// Lists resources, resource templates or prompts, connecting if necessary.
    pub async fn offers(self: &Arc<Self>, offer: Offer) -> Result<Vec<RawJson>, McpError> {
        let _in_use = self.begin_request(RequestPurpose::CallerRequest);
        let connection = self.connection().await?;
        let timeout = self.spec().connect_timeout;
        match tokio::time::timeout(timeout, listing::list_offer(&connection, offer)).await {
            Ok(offers) => offers,
            Err(_) => Err(McpError::TimedOut(timeout)),
        }
    }
}
