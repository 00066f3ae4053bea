//! The state of a server: its connection and failure history.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use toolhub_core::ServerId;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::shell;
use toolhub_mcp_wire::{Era, McpError};

use crate::breaker::{Breaker, BreakerDecision, TimePoint};
use crate::connection::Connection;
use crate::listing_flight::ListingFlight;

/// The connection state of a server, as it is shown to users.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// Not connected: not used yet, or disconnected.
    Idle,
    /// Connected.
    Connected {
        /// The protocol era.
        era: Era,
        /// The MCP protocol version.
        version: String,
        /// Name and version that the server reports.
        peer: String,
    },
    /// The last attempt failed.
    Failed(LocalizedText),
    /// Too many failures: the circuit is open.
    CircuitOpen {
        /// The cause of the last failure.
        cause: LocalizedText,
        /// Time until the next attempt is allowed.
        retry_in: Duration,
        /// Number of consecutive failures.
        failures: u32,
    },
}

/// The failure history of a server, stored between runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureHistory {
    /// The detected protocol era.
    pub era: Option<Era>,
    /// Number of consecutive failures: failed connects and lost connections.
    pub failures: u32,
    /// Time and cause of the last failure.
    pub last_failure: Option<(SystemTime, LocalizedText)>,
}

/// A connection attempt in progress.
pub(crate) struct ConnectAttempt {
    pub(crate) waiting: Shared<BoxFuture<'static, Result<Arc<Connection>, McpError>>>,
    pub(crate) abort: AbortHandle,
}

/// A connection and its background tasks, which are cancelled on drop.
pub(crate) struct LiveConnection {
    pub(crate) connection: Arc<Connection>,
    pub(crate) _background: DropGuard,
}

/// The mutable state of a server.
#[derive(Default)]
pub(crate) struct ServerStatus {
    pub(crate) live: Option<LiveConnection>,
    /// Cleared by the attempt when it ends.
    pub(crate) connecting: Option<ConnectAttempt>,
    /// The most recently started listing.
    pub(crate) listing: Option<ListingFlight>,
    pub(crate) era: Option<Era>,
    pub(crate) breaker: Breaker,
    pub(crate) last_error: Option<McpError>,
    pub(crate) in_flight: usize,
    /// When the last request ended.
    pub(crate) last_used: Option<Instant>,
    /// Number of failures in this run.
    failure_count: u64,
    /// Number of the last failure since the last answer.
    latest_failure: Option<u64>,
    /// Number of changes of the failure history, readable without the lock.
    pub(crate) history_version: Arc<AtomicU64>,
}

/// A point in time, as the number of failures so far. Requests record it when they start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureMark(u64);

impl ServerStatus {
    /// Creates the state of a server that has not been connected in this run.
    pub(crate) fn restore(failure_history: FailureHistory) -> Self {
        let FailureHistory { era, failures, last_failure } = failure_history;
        let (breaker, last_error) = match last_failure.filter(|_| failures > 0) {
            Some((at, cause)) => {
                (Breaker::restore(failures, at, TimePoint::now()), Some(McpError::connect(cause)))
            }
            None => (Breaker::default(), None),
        };
        Self { era, breaker, last_error, ..Self::default() }
    }

    /// The failure history to be stored.
    pub(crate) fn failure_history(&self) -> FailureHistory {
        let cause = self.last_error.as_ref().map(McpError::text);
        let last_failure = self.breaker.failed_at().zip(cause);
        FailureHistory { era: self.era, failures: self.breaker.failures(), last_failure }
    }

    /// The connection, if it is open.
    pub(crate) fn open(&self) -> Option<&Arc<Connection>> {
        self.live.as_ref().map(|live| &live.connection).filter(|connection| connection.is_open())
    }

    /// The connection state, as it is shown to users.
    pub(crate) fn state(&self) -> ServerState {
        match (self.open(), &self.last_error, self.breaker.decision(Instant::now())) {
            (_, Some(error), BreakerDecision::Reject(retry_in)) => {
                ServerState::CircuitOpen { cause: error.text(), retry_in, failures: self.breaker.failures() }
            }
            (Some(connection), ..) => {
                let server_info = connection.server_info.clone();
                ServerState::Connected {
                    era: server_info.era,
                    version: server_info.version,
                    peer: server_info.peer,
                }
            }
            (None, Some(error), _) => ServerState::Failed(error.text()),
            (None, None, _) => ServerState::Idle,
        }
    }

    /// The error for callers while the circuit is open.
    pub(crate) fn circuit_open_error(&self, server: &ServerId, remaining: Duration) -> McpError {
        let last = |lang| self.last_error.as_ref().map(|error| error.localize(lang)).unwrap_or_default();
        let (last, last_zh) = (last(Lang::En), last(Lang::Zh));
        let (failures, seconds) = (self.breaker.failures(), remaining.as_secs() + 1);
        let shown = shell::shell_quote(server.as_str());
        let cause = LocalizedText::new(
            format!(
                "it failed {failures} times in a row; circuit open for {seconds} s more \
                 (`toolhub servers test {shown}` tries it at once); last: {last}"
            ),
            format!(
                "它连续失败 {failures} 次，已熔断，{seconds} 秒后重试\
                 （`toolhub servers test {shown}` 立即重试）；最近一次：{last_zh}"
            ),
        );
        let stderr = self.last_error.as_ref().map(|error| error.stderr().to_vec()).unwrap_or_default();
        McpError::CircuitOpen { cause, stderr }
    }

    /// The current mark.
    pub(crate) fn failure_mark(&self) -> FailureMark {
        FailureMark(self.failure_count)
    }

    /// Records a failed connect or a lost request that started at `began`. Of several requests that were in flight when the
    /// connection was lost, only the first counts.
    pub(crate) fn record_failure(&mut self, FailureMark(began): FailureMark, error: &McpError) {
        if self.latest_failure.is_none_or(|last| last <= began) {
            self.failure_count += 1;
            self.latest_failure = Some(self.failure_count);
            self.breaker.record_failure(TimePoint::now());
        }
        self.record_error(error);
    }

    /// Records an error that is not a failure of the server.
    pub(crate) fn record_error(&mut self, error: &McpError) {
        self.last_error = Some(error.clone());
        self.history_version.fetch_add(1, Ordering::Release);
    }

    /// Records the outcome of a request. A lost connection counts as a failure; any answer, including an error, resets the
    /// breaker.
    pub(crate) fn record_outcome(&mut self, began: FailureMark, error: Option<&McpError>) {
        match error {
            Some(error @ (McpError::Lost { .. } | McpError::Connect { .. })) => {
                self.record_failure(began, error);
            }
            Some(McpError::CircuitOpen { .. } | McpError::TimedOut(_) | McpError::SessionExpired { .. }) => {}
            Some(_) | None => {
                if self.breaker.failures() > 0 {
                    self.history_version.fetch_add(1, Ordering::Release);
                }
                self.breaker.record_success();
                (self.latest_failure, self.last_error) = (None, None);
            }
        }
    }

    /// Whether no request is in flight and none has ended within `idle`.
    pub(crate) fn is_idle_for(&self, idle: Duration) -> bool {
        self.in_flight == 0 && self.last_used.is_none_or(|at| at.elapsed() >= idle)
    }
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    /// A request for a caller.
    CallerRequest,
    /// A background refresh of cached data, which does not keep a child process running.
    Refresh,
}

/// Guard of a request in flight. The connection is not stopped for idleness while it exists.
pub(crate) struct RequestGuard<'a> {
    status: &'a Mutex<ServerStatus>,
    /// Whether the end of the request starts the idle time.
    is_use: bool,
    ended: bool,
}

impl<'a> RequestGuard<'a> {
    /// The guard of a request that the status counts already.
    pub(crate) fn new(status: &'a Mutex<ServerStatus>, is_use: bool) -> Self {
        Self { status, is_use, ended: false }
    }

    fn lock_status(&self) -> MutexGuard<'a, ServerStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of a request that started at `began`, and ends the request.
    pub(crate) fn end(mut self, began: FailureMark, error: Option<&McpError>) {
        self.ended = true;
        let mut status = self.lock_status();
        status.record_outcome(began, error);
        self.release(&mut status);
    }

    fn release(&self, status: &mut ServerStatus) {
        status.in_flight = status.in_flight.saturating_sub(1);
        // The idle time starts at the end of a request, whenever it began. Without an idle timeout it is not needed.
        if self.is_use {
            status.last_used = Some(Instant::now());
        }
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.release(&mut self.lock_status());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_concurrent_failures_once() {
        let (mut status, lost) =
            (ServerStatus::default(), McpError::Lost { cause: "x".into(), stderr: Vec::new(), exit: None });
        let check = |status: &ServerStatus, failures: u32| assert_eq!(status.breaker.failures(), failures);
        let (one, other) = (status.failure_mark(), status.failure_mark());
        status.record_outcome(one, Some(&lost));
        status.record_outcome(other, Some(&lost));
        check(&status, 1);
        let later = status.failure_mark();
        status.record_outcome(later, Some(&lost));
        check(&status, 2);
        // After an answer in between, a failure counts again.
        status.record_outcome(later, None);
        check(&status, 0);
        status.record_outcome(other, Some(&lost));
        check(&status, 1);
    }

    /// A timeout does not show that the server works.
    #[test]
    fn timeout_neither_adds_a_failure_nor_clears_earlier_ones() {
        let lost = McpError::Lost { cause: "x".into(), stderr: Vec::new(), exit: None };
        let circuit_open_error = McpError::CircuitOpen { cause: "x".into(), stderr: Vec::new() };
        let expired = McpError::SessionExpired { effect: toolhub_core::Effect::None };
        let mut status = ServerStatus::default();
        for failures in 1..=3 {
            let failure_mark = status.failure_mark();
            status.record_outcome(failure_mark, Some(&lost));
            for neither in [&McpError::TimedOut(Duration::from_secs(1)), &circuit_open_error, &expired] {
                let failure_mark = status.failure_mark();
                status.record_outcome(failure_mark, Some(neither));
                assert_eq!(status.breaker.failures(), failures, "{neither:?}");
            }
            assert!(status.last_error.is_some());
        }
        // An error response shows that the server works.
        let failure_mark = status.failure_mark();
        status.record_outcome(
            failure_mark,
            Some(&McpError::Rpc { code: -1, message: String::new(), data: None }),
        );
        assert_eq!((status.breaker.failures(), status.last_error.is_some()), (0, false));
    }
}
