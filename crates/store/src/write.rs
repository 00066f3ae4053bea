//! What may be written, as data: a group that fails as a whole can be done again, one by one.

use toolhub_core::approval::Approval;
use toolhub_core::conversation::Turn;
use toolhub_core::memory::{CallEnd, CallStart, RecordId};
use toolhub_core::ports::{CachedList, CachedOffers};
use toolhub_core::{ServerId, Source, ToolName};

/// One thing to be written while somebody waits for it. Each may be done twice and counts once.
#[derive(Debug)]
pub(crate) enum Write {
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    Begin(CallStart),
    Finish(CallEnd),
    /// The key tells one turn from another with the same words.
    Say(RecordId, Turn),
    Approve(Approval),
    Revoke(Source, ToolName),
    SaveList(ServerId, Box<CachedList>),
    SaveOffers(ServerId, Box<CachedOffers>),
    /// The lists that a server had under the configuration of that fingerprint.
    ForgetList(ServerId, String),
    /// Nothing: is answered once all that was handed over before is written.
    Settle,
    /// Nothing: is answered once the calls that were journaled as intents were tried to be moved.
    MoveIntents,
}

/// A finished call.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) start: CallStart,
    pub(crate) end: CallEnd,
}
