//! Responses of the agent to clients of the OpenAI-compatible endpoint: the data that a store keeps, and the port to it.

use std::time::SystemTime;

use crate::boxed::BoxFuture;
use crate::json::RawJson;
use crate::store_error::StoreError;

/// The state of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseStatus {
    /// It has not begun.
    Queued,
    /// The agent works on it.
    InProgress,
    /// It is complete, or waits for the client.
    Completed,
    /// It ended early, for example at a token limit.
    Incomplete,
    /// It failed.
    Failed,
    /// The client cancelled it.
    Cancelled,
}

impl ResponseStatus {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::InProgress, Self::Completed, Self::Incomplete, Self::Failed, Self::Cancelled];

    /// The name in the API and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether it does not change any more.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress)
    }
}

/// A stored response.
#[derive(Debug, Clone)]
pub struct StoredResponse {
    /// Its id, such as `resp_…`.
    pub id: String,
    /// The principal that requested it. No other principal can read it.
    pub principal: String,
    /// The response that it continues.
    pub previous: Option<String>,
    /// Its state.
    pub status: ResponseStatus,
    /// The request of the client, from which an interrupted response is continued.
    pub request: RawJson,
    /// The input items: an array.
    pub input: RawJson,
    /// The response as the client receives it: an object.
    pub body: RawJson,
    /// When it was created.
    pub created_at: SystemTime,
    /// When it is deleted.
    pub expires_at: SystemTime,
}

/// What became of the replacement of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseUpdate {
    /// It was replaced.
    Written,
    /// It was not replaced: it had ended with this status, which does not change any more.
    Ended(ResponseStatus),
    /// It was not replaced: another process works on it, or worked on it and has ended.
    OtherOwner,
    /// It was not replaced: it was deleted, has expired, or was never there.
    Missing,
}

/// An unfinished response that this process owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedResponse {
    /// Its id.
    pub id: String,
    /// The principal that requested it.
    pub principal: String,
    /// Whether a client has requested that it is cancelled.
    pub is_cancelled: bool,
    /// Whether it was taken over from another process, and not updated since.
    pub is_adopted: bool,
}

/// A call that waits for the approval of the client.
#[derive(Debug, Clone)]
pub struct PendingApproval {
    /// The id of the approval request, such as `mcpr_…`.
    pub id: String,
    /// The principal that may answer.
    pub principal: String,
    /// The call: an object, in the form of the approval request.
    pub call: RawJson,
    /// When it can no longer be answered.
    pub expires_at: SystemTime,
}

/// Limits of the stored responses.
#[derive(Debug, Clone, Copy)]
pub struct ResponseLimits {
    /// Maximum total size of all responses, in bytes. The oldest final ones of the principals that hold most are deleted
    /// first, so that a principal with less than an equal share loses none.
    pub max_bytes: u64,
}

/// Storage of responses. A response or an approval of another principal does not exist for a caller.
pub trait Responses: Send + Sync {
    /// Stores a new response durably.
    fn add_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Replaces an unfinished response of this process durably. A response that has ended, that another process has taken
    /// over, or that was deleted stays as it is. A repetition of the last replacement counts as written.
    fn update_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<ResponseUpdate, StoreError>>;

    /// Requests durably that the process that works on a response cancels it. Returns whether it is unfinished.
    fn request_cancellation<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The unfinished responses that this process owns. A response that was deleted, has expired or was taken over by another process
    /// is not among them.
    fn owned_responses(&self) -> BoxFuture<'_, Result<Vec<OwnedResponse>, StoreError>>;

    /// A response of a principal, unless it has expired.
    fn response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>>;

    /// Deletes a response; returns whether there was one.
    fn delete_response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Deletes all responses and approvals of a principal, also unfinished ones. Returns how many were deleted.
    fn delete_responses_of<'a>(&'a self, principal: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// The responses that are not final and whose process has ended, oldest first. This process takes them over: while it
    /// lives, no other process receives them, and they are returned again until it updates them.
    fn unfinished_responses(&self) -> BoxFuture<'_, Result<Vec<StoredResponse>, StoreError>>;

    /// Stores a call that waits for an approval.
    fn put_approval(&self, approval: PendingApproval) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes and returns a call that waits for an approval. Of several concurrent callers, one receives it.
    fn take_approval<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<Option<PendingApproval>, StoreError>>;

    /// Deletes what has expired, and final responses beyond the limits. Returns how many were deleted.
    fn purge_responses(&self, limits: ResponseLimits) -> BoxFuture<'_, Result<u64, StoreError>>;
}
