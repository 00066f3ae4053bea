//! Writes as data, so that a group that failed as a whole can be repeated one by one.

use toolhub_core::approval::Approval;
use toolhub_core::audit::AuditEvent;
use toolhub_core::call_log::{CallEnd, CallStart, RecordId};
use toolhub_core::conversation::ConversationTurn;
use toolhub_core::ports::{CachedList, CachedOffers, StoreError};
use toolhub_core::shared_state::ChangedPart;
use toolhub_core::{ServerId, Source, ToolName};

use crate::responses::ResponseWrite;
use crate::state::StateWrite;

/// The answer to a write: the number of rows that it changed, which is 0 or 1 for most.
pub(crate) type WriteAnswer = Result<u64, StoreError>;

/// A write whose caller waits for it. Every write is idempotent.
#[derive(Debug)]
pub(crate) enum Write {
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    Begin(CallStart),
    Finish(CallEnd),
    /// The key distinguishes turns with equal texts.
    AppendTurn(RecordId, ConversationTurn),
    Approve(Approval),
    Revoke(Source, ToolName),
    SaveList(ServerId, Box<CachedList>),
    SaveOffers(ServerId, Box<CachedOffers>),
    /// Deletes the lists of a server under the configuration with this fingerprint.
    ForgetList(ServerId, String),
    /// Writes responses of the agent and approvals of their calls.
    Responses(ResponseWrite),
    /// Writes state that replicas share.
    State(StateWrite),
    /// Appends to the audit log. The key distinguishes equal events.
    Audit(
        #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))] RecordId,
        Box<AuditEvent>,
    ),
    /// Marks the running calls of these dead stores as unknown, after their journals were replayed, and appends them to the audit log.
    AdoptOrphans(Vec<i64>),
    /// Writes nothing: is answered once all previous writes are done.
    Settle,
    /// Signs a checkpoint of the audit log after the other writes of its group.
    Checkpoint,
    /// Writes nothing: is answered after an attempt to move the journaled intents.
    MoveIntents,
}

impl Write {
    /// The part of a hub that other replicas must read again after this write. Shared state decides by the rows that changed.
    pub(crate) fn part(&self) -> Option<ChangedPart> {
        match self {
            Self::Approve(_) | Self::Revoke(..) => Some(ChangedPart::Approvals),
            Self::SaveList(..) | Self::ForgetList(..) => Some(ChangedPart::ToolLists),
            _ => None,
        }
    }
}

/// A finished call.
#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) start: CallStart,
    pub(crate) end: CallEnd,
}
