//! Records of calls: start, end, and queries about past calls. A store implements the traits.

use std::time::{Duration, SystemTime};

use crate::boxed::BoxFuture;
use crate::call::CallId;
use crate::error::{Effect, ToolError};
use crate::hex;
use crate::json::{RawJson, RawObject};
use crate::lang::LocalizedText;
use crate::outcome::{AttemptEnd, AttemptRecord};
use crate::principal::Authorization;
pub use crate::record_id::RecordId;
use crate::source::Source;
use crate::statistics::{StatisticsSummary, SummaryQuery, ToolStatistics};
use crate::store_error::StoreError;
use crate::text::byte_prefix;
use crate::tool::ToolName;

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallStatus {
    /// Started, and the process that runs it is alive.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// Unknown: it may have taken effect.
    Unknown,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Running, Self::Succeeded, Self::Failed, Self::Unknown];

    /// Name in storage and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The status of a call that ended with `error`; `may_change` states whether the call may change state.
    pub fn of(error: Option<&ToolError>, may_change: bool) -> Self {
        match error {
            None => Self::Succeeded,
            // The tool or its server reported the failure. HTTP statuses are not listed, since a proxy may have sent
            // them.
            Some(ToolError::Failed { .. } | ToolError::Panicked | ToolError::Protocol { .. }) => Self::Failed,
            Some(error) if may_change && error.effect() == Effect::Unknown => Self::Unknown,
            Some(_) => Self::Failed,
        }
    }
}

/// Maximum size of arguments that are stored completely.
pub const MAX_STORED_ARGUMENT_BYTES: usize = 16 << 10;
/// Stored prefix of longer arguments.
const STORED_PREFIX_BYTES: usize = 4 << 10;

/// The stored form of arguments. The size of a record is bounded: for long arguments it contains a prefix, the size
/// and the SHA-256 of the text, as in `{"$truncated": {"bytes": …, "sha256": …, "prefix": …}}`.
pub fn stored_arguments(arguments: &RawJson) -> RawJson {
    let text = arguments.get();
    if text.len() <= MAX_STORED_ARGUMENT_BYTES {
        return arguments.clone();
    }
    let digest = hex::sha256(text.as_bytes());
    let prefix = byte_prefix(text, STORED_PREFIX_BYTES);
    let cut = RawObject::default()
        .with("bytes", RawJson::of(&text.len()))
        .with("sha256", digest.as_str())
        .with("prefix", prefix);
    RawObject::default().with("$truncated", cut.into_raw()).into_raw()
}

/// The start of a call.
#[derive(Debug, Clone)]
pub struct CallStart {
    /// The record id.
    pub record: RecordId,
    /// The call's own id.
    pub call: CallId,
    /// The name of the tool or capability.
    pub tool: ToolName,
    /// The arguments.
    pub arguments: RawJson,
    /// The conversation it belongs to.
    pub conversation: Option<String>,
    /// The user's request in natural language that the call serves, if any.
    pub request: Option<String>,
    /// The strategy.
    pub strategy: String,
    /// The sources of the candidates, in the order they are tried.
    pub candidates: Vec<Source>,
    /// Whether the call may change state.
    pub may_change: bool,
    /// The start time.
    pub at: SystemTime,
    /// Who made it, and what allowed it.
    pub authorization: Authorization,
    /// The call that made this one, if a tool did.
    pub parent: Option<CallId>,
}

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptStatus {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cancelled because its result was no longer needed.
    Cancelled,
}

impl AttemptStatus {
    /// Name in storage and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the attempt succeeded; `None` for a cancelled attempt, which does not count.
    pub fn success(self) -> Option<bool> {
        match self {
            Self::Succeeded => Some(true),
            Self::Failed => Some(false),
            Self::Cancelled => None,
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::Cancelled].into_iter().find(|status| status.name() == name)
    }
}

impl From<&AttemptEnd> for AttemptStatus {
    fn from(end: &AttemptEnd) -> Self {
        match end {
            AttemptEnd::Succeeded => Self::Succeeded,
            AttemptEnd::Failed(_) => Self::Failed,
            AttemptEnd::Cancelled => Self::Cancelled,
        }
    }
}

/// A recorded attempt.
#[derive(Debug, Clone)]
pub struct StoredAttempt {
    /// The source of the candidate.
    pub source: Source,
    /// Its tool; differs from the call's name if it was chosen by capability.
    pub tool: ToolName,
    /// The result.
    pub status: AttemptStatus,
    /// The duration.
    pub took: Duration,
    /// The kind of error, and its message.
    pub error: Option<(String, LocalizedText)>,
}

/// The end of a call.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// The record id.
    pub record: RecordId,
    /// The status.
    pub status: CallStatus,
    /// Total duration.
    pub took: Duration,
    /// The kind of error, and its message.
    pub error: Option<(String, LocalizedText)>,
    /// The sources of the result.
    pub sources: Vec<Source>,
    /// The attempts.
    pub attempts: Vec<StoredAttempt>,
    /// The full output.
    pub output: Option<RawJson>,
}

/// The log to which calls are written as they run.
pub trait CallLog: Send + Sync {
    /// Writes the start of a call and waits until it is durable. A call that may change state must not run if this
    /// fails.
    fn begin(&self, start: CallStart) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes the end of a started call and waits until it is durable.
    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes a finished call, including the end of a started one. If the log has a journal, the record survives the
    /// end of the process once this returns.
    fn record_finished(&self, start: CallStart, end: CallEnd);

    /// Whether to store the details of a successful call that changes nothing; if not, it is only counted.
    fn should_store_details(&self) -> bool {
        true
    }

    /// Waits while the queue of the log is full; `None` if it is not. Called before a call runs.
    fn wait_for_capacity(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Counts the attempts of a call that started at `at` and is stored without details.
    fn count(&self, attempts: &[AttemptRecord], at: SystemTime);
}

/// A recorded call.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The start of the call.
    pub start: CallStart,
    /// Its status.
    pub status: CallStatus,
    /// Its duration, if it has ended.
    pub took: Option<Duration>,
    /// The kind of error, and its message.
    pub error: Option<(String, LocalizedText)>,
    /// The sources of the result.
    pub sources: Vec<Source>,
    /// The attempts.
    pub attempts: Vec<StoredAttempt>,
}

/// A filter for calls.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls answered, or else attempted, at this source.
    pub source: Option<String>,
    /// Only calls with this status.
    pub status: Option<CallStatus>,
    /// Only calls of this conversation.
    pub conversation: Option<String>,
    /// Only calls of the principal with this id.
    pub principal: Option<String>,
    /// Only the call with this id. Callers may repeat ids, and there is no index: the records are limited as well.
    pub call: Option<String>,
    /// Only calls that the call with this id made.
    pub parent: Option<String>,
    /// Only calls with exactly these arguments, as canonical JSON.
    pub arguments: Option<String>,
    /// Only calls whose request, arguments or tool contain this text, case-insensitive.
    pub text: Option<String>,
    /// Only calls started at or after this time.
    pub since: Option<SystemTime>,
    /// Only calls newer than this record.
    pub after: Option<RecordId>,
    /// Only calls older than this record.
    pub before: Option<RecordId>,
    /// Only this record and newer calls.
    pub from: Option<RecordId>,
    /// Maximum number of calls, the newest ones; `None` for all.
    pub limit: Option<usize>,
}

/// Queries about past calls.
pub trait CallHistory: Send + Sync {
    /// The matching calls, newest first.
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>>;

    /// The full output of a handle; `None` if there is none.
    fn output<'a>(&'a self, handle: &'a RecordId) -> BoxFuture<'a, Result<Option<RawJson>, StoreError>>;

    /// The statistics of all tools.
    fn statistics(&self) -> BoxFuture<'_, Result<Vec<ToolStatistics>, StoreError>>;

    /// The start of the newest part of the history before a record, or of all of it: a part has about `calls` calls, from the
    /// returned record on. Returns `None` if there are fewer. Filters without an index are searched in such parts, so that no
    /// query takes long.
    fn part_start(
        &self,
        _before: Option<RecordId>,
        _calls: usize,
    ) -> BoxFuture<'_, Result<Option<RecordId>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// The statistics of one tool at one source; `None` if it was never used.
    fn tool_statistics<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<Option<ToolStatistics>, StoreError>> {
        Box::pin(async move {
            let all_statistics = self.statistics().await?;
            Ok(all_statistics.into_iter().find(|entry| entry.source == *source && entry.tool == *tool))
        })
    }

    /// Sums over all tools, without reading each of them.
    fn statistics_summary(
        &self,
        query: SummaryQuery,
    ) -> BoxFuture<'_, Result<StatisticsSummary, StoreError>> {
        Box::pin(async move { Ok(StatisticsSummary::of(self.statistics().await?, query)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_bounds_of_record_ids_separate_times() {
        let at = |millis: u64| SystemTime::UNIX_EPOCH + Duration::from_micros(millis * 1_000 + 999);
        for millis in [0, 31, 32, 1_795_002_668_842] {
            let bound = RecordId::lower_bound(at(millis));
            assert!(RecordId::at(at(millis)) > bound, "{millis}");
            assert!(millis == 0 || RecordId::at(at(millis - 1)) < bound, "{millis}");
        }
    }

    #[test]
    fn record_ids_sort_by_time_and_are_unique() {
        let ids: Vec<RecordId> = (0..5_000).map(|_| RecordId::generate()).collect();
        assert!(ids.is_sorted(), "{:?}", ids.windows(2).find(|pair| pair[0] >= pair[1]));
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
        assert_eq!(ids[0].as_str().len(), 18);
    }

    #[test]
    fn status_is_unknown_only_if_the_call_may_have_changed_state() {
        let timed_out = ToolError::TimedOut { after: Duration::from_secs(1), effect: Effect::Unknown };
        let check = |error: Option<&ToolError>, may_change, expect| {
            assert_eq!(CallStatus::of(error, may_change), expect, "{error:?}");
        };
        check(None, true, CallStatus::Succeeded);
        check(Some(&timed_out), true, CallStatus::Unknown);
        check(Some(&timed_out), false, CallStatus::Failed);
        check(Some(&ToolError::failed("no")), true, CallStatus::Failed);
        check(
            Some(&ToolError::TimedOut { after: Duration::ZERO, effect: Effect::None }),
            true,
            CallStatus::Failed,
        );
    }
}
