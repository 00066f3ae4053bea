//! The result of listing a server, and the listing in progress that its callers share. `singleflight` starts and joins it.

use std::time::SystemTime;

use futures_util::future::{BoxFuture, WeakShared};
use toolhub_mcp_wire::{Era, McpError};

use crate::listing::ToolListing;

/// The result of listing a server, with the identity that it reports.
#[derive(Debug, Clone)]
pub struct ServerListing {
    /// The tools.
    pub listing: ToolListing,
    /// When the server answered.
    pub at: SystemTime,
    /// The protocol era; `None` if it is doubtful.
    pub era: Option<Era>,
    /// Name and version that the server reports.
    pub peer: String,
}

pub(crate) type ListingResult = BoxFuture<'static, Result<ServerListing, McpError>>;

/// A listing in progress. It is cancelled when its last waiter is dropped.
pub(crate) struct ListingFlight {
    /// The change counter when the listing started.
    pub(crate) seen: u64,
    pub(crate) waiting: WeakShared<ListingResult>,
}
