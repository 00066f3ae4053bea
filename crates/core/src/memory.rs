//! What is remembered of calls: how one began, what came of it, and what may be asked about the past. Keeping it is
//! a store's business.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::call::CallId;
use crate::error::{Effect, ToolError};
use crate::json::{RawJson, RawObject};
use crate::lang::Text;
use crate::outcome::{AttemptEnd, AttemptRecord};
use crate::ports::{BoxFuture, StoreError};
use crate::source::Source;
use crate::statistics::ToolStatistics;
use crate::tool::ToolName;

/// Names one remembered call, and is the handle of its full result. Unlike a call's id, which the caller may choose,
/// it is unique across machines; it sorts by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(Arc<str>);

/// Letters that are hard to mistake for one another, sorted as their bytes are.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl RecordId {
    /// An id as it was written down.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// A new id: the time in milliseconds, a count, and a number that other processes do not share.
    pub fn fresh() -> Self {
        Self::at(SystemTime::now())
    }

    /// The same, for who has just looked at the clock.
    pub fn at(now: SystemTime) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = since.as_secs().saturating_mul(1000) + u64::from(since.subsec_millis());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 18];
        let (time, rest) = id.split_at_mut(9);
        let (counted, process) = rest.split_at_mut(3);
        for (mut number, letters) in [(millis, time), (count, counted), (*PROCESS, process)] {
            for letter in letters.iter_mut().rev() {
                *letter = LETTERS[(number & 31) as usize];
                number >>= 5;
            }
        }
        Self(std::str::from_utf8(&id).unwrap_or_default().into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It has begun, and the hub that runs it lives.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// Nobody can tell: it may have taken effect.
    Unknown,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Running, Self::Succeeded, Self::Failed, Self::Unknown];

    /// Its name, as it is kept and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The status of a call that ended with `error`; `may_change` says whether it could have changed anything.
    pub fn of(error: Option<&ToolError>, may_change: bool) -> Self {
        match error {
            None => Self::Succeeded,
            // The tool or its server reported the failure. An HTTP status may come from a proxy on the way.
            Some(ToolError::Failed { .. } | ToolError::Panicked | ToolError::Protocol { .. }) => Self::Failed,
            Some(error) if may_change && error.effect() == Effect::Unknown => Self::Unknown,
            Some(_) => Self::Failed,
        }
    }
}

/// Arguments of at most so many bytes are kept whole.
pub const MAX_STORED_ARGUMENT_BYTES: usize = 16 << 10;
/// Of longer arguments so many bytes are kept.
const STORED_PREFIX_BYTES: usize = 4 << 10;

/// The form in which arguments are kept. A record has a bounded size, whatever a caller sends: of long arguments it has
/// the beginning, the size and the SHA-256 of the text, as in `{"$truncated": {"bytes": …, "sha256": …, "prefix": …}}`.
pub fn stored_arguments(arguments: &RawJson) -> RawJson {
    let text = arguments.get();
    if text.len() <= MAX_STORED_ARGUMENT_BYTES {
        return arguments.clone();
    }
    let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let prefix = &text[..text.floor_char_boundary(STORED_PREFIX_BYTES)];
    let cut = RawObject::default()
        .with("bytes", RawJson::of(&text.len()))
        .with("sha256", digest.as_str())
        .with("prefix", prefix);
    RawObject::default().with("$truncated", cut.into_raw()).into_raw()
}

/// A call that is about to run.
#[derive(Debug, Clone)]
pub struct CallStart {
    /// Names the record.
    pub record: RecordId,
    /// The call's own id.
    pub call: CallId,
    /// Which tool, or which capability.
    pub tool: ToolName,
    /// The arguments.
    pub arguments: RawJson,
    /// The conversation it belongs to.
    pub conversation: Option<String>,
    /// What somebody asked for in words, where the call serves such a request.
    pub request: Option<String>,
    /// How the candidates are run.
    pub strategy: String,
    /// Where the candidates live, first tried first.
    pub candidates: Vec<Source>,
    /// Whether it may change anything.
    pub may_change: bool,
    /// When it began.
    pub at: SystemTime,
}

/// How one try of one candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptStatus {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was not needed any more.
    Cancelled,
}

impl AttemptStatus {
    /// Its name, as it is kept and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the tool did what it should; a try that was no longer needed says nothing about it.
    pub fn success(self) -> Option<bool> {
        match self {
            Self::Succeeded => Some(true),
            Self::Failed => Some(false),
            Self::Cancelled => None,
        }
    }

    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
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

/// One try of one candidate, as it is remembered.
#[derive(Debug, Clone)]
pub struct AttemptNote {
    /// Where the candidate lives.
    pub source: Source,
    /// Its tool; another name than the call's where it was chosen by capability.
    pub tool: ToolName,
    /// How it ended.
    pub status: AttemptStatus,
    /// How long it took.
    pub took: Duration,
    /// The kind of failure, and what was said.
    pub error: Option<(String, Text)>,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// Names the record.
    pub record: RecordId,
    /// What became of it.
    pub status: Status,
    /// How long it all took.
    pub took: Duration,
    /// The kind of failure, and what was said.
    pub error: Option<(String, Text)>,
    /// Where the answer came from.
    pub sources: Vec<Source>,
    /// What was tried.
    pub attempts: Vec<AttemptNote>,
    /// The full output.
    pub output: Option<RawJson>,
}

/// Where calls are written down as they happen.
pub trait CallLog: Send + Sync {
    /// Writes that a call is about to run, and waits until that outlives a crash. A call that may change something
    /// must not run where this fails.
    fn begin(&self, start: CallStart) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes what came of a call that was begun, and waits until that outlives a crash.
    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes a finished call; one that was begun has its end by that. Returns once the call survives the end of the
    /// process, where the log has a journal for that.
    fn note(&self, start: CallStart, end: CallEnd);

    /// Whether the details of a call that changed nothing and succeeded are stored; if not, it is only counted.
    fn wants_details(&self) -> bool {
        true
    }

    /// Waits while the log is behind by too much; `None` if it is not. Asked before a call runs.
    fn wait_for_room(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Counts what was tried in a call that began at that time and whose details are left out.
    fn count(&self, attempts: &[AttemptRecord], at: SystemTime);
}

/// A remembered call.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// How it began.
    pub start: CallStart,
    /// What became of it.
    pub status: Status,
    /// How long it took, where it ended.
    pub took: Option<Duration>,
    /// The kind of failure, and what was said.
    pub error: Option<(String, Text)>,
    /// Where the answer came from.
    pub sources: Vec<Source>,
    /// What was tried.
    pub attempts: Vec<AttemptNote>,
}

/// Which calls are wanted.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// Of that tool.
    pub tool: Option<String>,
    /// Answered, or else tried, at that source.
    pub source: Option<String>,
    /// With that status.
    pub status: Option<Status>,
    /// Of that conversation.
    pub conversation: Option<String>,
    /// With exactly these arguments, as canonical JSON.
    pub arguments: Option<String>,
    /// Whose request, arguments or tool contain that text, whatever its case.
    pub text: Option<String>,
    /// Begun at or after that moment.
    pub since: Option<SystemTime>,
    /// Newer than that record.
    pub after: Option<RecordId>,
    /// Older than that record.
    pub before: Option<RecordId>,
    /// At most so many, the newest; all where it is `None`.
    pub limit: Option<usize>,
}

/// What may be asked about the past.
pub trait CallHistory: Send + Sync {
    /// The calls that fit, newest first.
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>>;

    /// The full output behind a handle; `None` where there is none of that name.
    fn output<'a>(&'a self, handle: &'a RecordId) -> BoxFuture<'a, Result<Option<RawJson>, StoreError>>;

    /// How every tool has fared.
    fn statistics(&self) -> BoxFuture<'_, Result<Vec<ToolStatistics>, StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ids_sort_by_time_and_are_unique() {
        let ids: Vec<RecordId> = (0..5_000).map(|_| RecordId::fresh()).collect();
        assert!(ids.is_sorted(), "{:?}", ids.windows(2).find(|pair| pair[0] >= pair[1]));
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
        assert_eq!(ids[0].as_str().len(), 18);
    }

    #[test]
    fn only_what_may_have_changed_something_is_unknown() {
        let timed_out = ToolError::TimedOut { after: Duration::from_secs(1), effect: Effect::Unknown };
        let check = |error: Option<&ToolError>, may_change, expect| {
            assert_eq!(Status::of(error, may_change), expect, "{error:?}");
        };
        check(None, true, Status::Succeeded);
        check(Some(&timed_out), true, Status::Unknown);
        check(Some(&timed_out), false, Status::Failed);
        check(Some(&ToolError::failed("no")), true, Status::Failed);
        check(
            Some(&ToolError::TimedOut { after: Duration::ZERO, effect: Effect::None }),
            true,
            Status::Failed,
        );
    }
}
