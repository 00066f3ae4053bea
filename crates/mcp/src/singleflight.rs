//! Asking a server what it offers: one listing at a time for all who want one, begun anew where the server said
//! meanwhile that its list changed.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use toolhub_core::{EventKind, RawJson};

use crate::config::TransportSpec;
use crate::era::Era;
use crate::error::McpError;
use crate::listing::{self, Listing, Offer};
use crate::supervisor::{Purpose, Server};

/// What came of listing a server, and who it turned out to be.
#[derive(Debug, Clone)]
pub struct Listed {
    /// What it offers.
    pub listing: Listing,
    /// When it answered.
    pub at: SystemTime,
    /// The era it speaks; `None` if that is doubtful.
    pub era: Option<Era>,
    /// What it calls itself.
    pub peer: String,
}

type Answer = BoxFuture<'static, Result<Listed, McpError>>;

/// A listing that was begun. It ends when the last who waits for it goes away.
pub(crate) struct ListingFlight {
    /// How many changes the server had told of when it began.
    seen: u64,
    waiting: WeakShared<Answer>,
}

impl Server {
    /// Connects if need be and lists the tools.
    pub async fn list(self: &Arc<Self>) -> Result<Listed, McpError> {
        let _in_use = self.hold(Purpose::Work);
        self.listed().await
    }

    /// Lists the tools again where nothing must be started for that; `None` where it must. It does not count as use.
    pub async fn refresh(self: &Arc<Self>) -> Option<Result<Listed, McpError>> {
        // Held first, so that a child that runs is not stopped before it is asked.
        let _held = self.hold(Purpose::Upkeep);
        match self.within_reach() {
            true => Some(self.listed().await),
            false => None,
        }
    }

    /// Whether it can be asked without starting a program. A program that nobody uses was stopped, or never started,
    /// to spare what it costs; started every hour only to be asked for its list, it would cost that all the same,
    /// and it can be asked as soon as somebody has it started. A server over HTTP runs whether or not it is asked,
    /// and asking it is one short exchange.
    pub fn within_reach(&self) -> bool {
        !matches!(self.spec().transport, TransportSpec::Stdio(_)) || self.lock_status().open().is_some()
    }

    async fn listed(self: &Arc<Self>) -> Result<Listed, McpError> {
        let told = self.changes_told();
        loop {
            let (seen, waiting) = self.flight();
            let listed = waiting.await;
            // One that was begun before the last word of a change may have the list from before it.
            if seen >= told {
                return listed;
            }
        }
    }

    /// The listing that is under way, begun now if there is none.
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

    /// Connects if need be and lists what the server offers beside tools.
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
