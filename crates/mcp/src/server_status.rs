//! How a server stands: what is known of its connection and its past, and how that is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use toolhub_core::ServerId;
use toolhub_core::lang::{Lang, Say as _, Text};

use crate::breaker::{Advice, Breaker, Moment};
use crate::connection::Connection;
use crate::era::Era;
use crate::error::McpError;
use crate::singleflight::ListingFlight;

/// How a server stands.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// Not connected: nobody needed it yet, or it went away.
    Idle,
    /// Connected.
    Connected {
        /// The era it speaks.
        era: Era,
        /// The version of MCP.
        version: String,
        /// What it calls itself.
        peer: String,
    },
    /// The last try failed.
    Failed(Text),
    /// It failed too often, and is left alone for a while.
    LeftAlone {
        /// Why it failed last.
        cause: Text,
        /// How much longer.
        left: Duration,
        /// How often in a row it failed.
        failures: u32,
    },
}

/// How a server fared, as it is remembered between runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureHistory {
    /// The era it spoke.
    pub era: Option<Era>,
    /// How often in a row it could not be connected or broke off.
    pub failures: u32,
    /// When it last did, and why.
    pub last_failure: Option<(SystemTime, Text)>,
}

/// An attempt to connect that is under way.
pub(crate) struct Attempt {
    pub(crate) waiting: Shared<BoxFuture<'static, Result<Arc<Connection>, McpError>>>,
    pub(crate) abort: AbortHandle,
}

/// A connection, and what runs for it until it is dropped.
pub(crate) struct Live {
    pub(crate) connection: Arc<Connection>,
    pub(crate) _helpers: DropGuard,
}

/// All that changes about a server.
#[derive(Default)]
pub(crate) struct ServerStatus {
    pub(crate) live: Option<Live>,
    /// Cleared by the attempt itself when it ends.
    pub(crate) connecting: Option<Attempt>,
    /// The last listing that was begun.
    pub(crate) listing: Option<ListingFlight>,
    pub(crate) era: Option<Era>,
    pub(crate) breaker: Breaker,
    pub(crate) last_error: Option<McpError>,
    pub(crate) in_flight: usize,
    /// When somebody was last done with it.
    pub(crate) last_used: Option<Instant>,
    /// How often it failed in this run.
    failed: u64,
    /// Which of those was the last since it answered.
    unanswered: Option<u64>,
    /// How often what is remembered of its failures changed, for whoever wants to know that in passing.
    pub(crate) turns: Arc<AtomicU64>,
}

/// A moment in the life of a server: how often it had failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

impl ServerStatus {
    /// A server that was not connected in this run yet.
    pub(crate) fn after(past: FailureHistory) -> Self {
        let FailureHistory { era, failures, last_failure } = past;
        let (breaker, last_error) = match last_failure.filter(|_| failures > 0) {
            Some((at, cause)) => {
                (Breaker::restore(failures, at, Moment::now()), Some(McpError::connect(cause)))
            }
            None => (Breaker::default(), None),
        };
        Self { era, breaker, last_error, ..Self::default() }
    }

    /// What is worth remembering.
    pub(crate) fn past(&self) -> FailureHistory {
        let cause = self.last_error.as_ref().map(McpError::text);
        let last_failure = self.breaker.failed_at().zip(cause);
        FailureHistory { era: self.era, failures: self.breaker.failures(), last_failure }
    }

    /// The connection, if it still works.
    pub(crate) fn open(&self) -> Option<&Arc<Connection>> {
        self.live.as_ref().map(|live| &live.connection).filter(|connection| connection.is_open())
    }

    /// What to tell whoever asks.
    pub(crate) fn told(&self) -> ServerState {
        match (self.open(), &self.last_error, self.breaker.advice(Instant::now())) {
            (_, Some(error), Advice::LeaveAlone(left)) => {
                ServerState::LeftAlone { cause: error.text(), left, failures: self.breaker.failures() }
            }
            (Some(connection), ..) => {
                let greeting = connection.greeting.clone();
                ServerState::Connected { era: greeting.era, version: greeting.version, peer: greeting.peer }
            }
            (None, Some(error), _) => ServerState::Failed(error.text()),
            (None, None, _) => ServerState::Idle,
        }
    }

    /// Why it is not tried now.
    pub(crate) fn left_alone(&self, server: &ServerId, left: Duration) -> McpError {
        let last = |lang| self.last_error.as_ref().map(|error| error.say(lang)).unwrap_or_default();
        let (last, last_zh) = (last(Lang::En), last(Lang::Zh));
        let (failures, seconds) = (self.breaker.failures(), left.as_secs() + 1);
        let cause = Text::new(
            format!(
                "it failed {failures} times in a row and is left alone for {seconds} s more \
                 (`toolhub servers test {server}` tries it at once); last: {last}"
            ),
            format!(
                "它连续失败 {failures} 次，再过 {seconds} 秒才会重试\
                 （`toolhub servers test {server}` 立即重试）；最近一次：{last_zh}"
            ),
        );
        let stderr = self.last_error.as_ref().map(|error| error.stderr().to_vec()).unwrap_or_default();
        McpError::LeftAlone { cause, stderr }
    }

    /// This moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.failed)
    }

    /// Notes that it could not be connected, or did not serve a request that began then. Of those that were under way
    /// together when it broke off, the first counts.
    pub(crate) fn fail(&mut self, Mark(began): Mark, error: &McpError) {
        if self.unanswered.is_none_or(|last| last <= began) {
            self.failed += 1;
            self.unanswered = Some(self.failed);
            self.breaker.fail(Moment::now());
        }
        self.wants(error);
    }

    /// It could not be used for that reason.
    pub(crate) fn wants(&mut self, error: &McpError) {
        self.last_error = Some(error.clone());
        self.turns.fetch_add(1, Ordering::Release);
    }

    /// Notes how a request over a connection ended: a server that breaks off counts as failing, one that answers,
    /// whatever it answers, does not.
    pub(crate) fn note(&mut self, began: Mark, error: Option<&McpError>) {
        match error {
            Some(error @ (McpError::Lost { .. } | McpError::Connect { .. })) => self.fail(began, error),
            Some(McpError::LeftAlone { .. } | McpError::TimedOut(_) | McpError::SessionExpired { .. }) => {}
            Some(_) | None => {
                if self.breaker.failures() > 0 {
                    self.turns.fetch_add(1, Ordering::Release);
                }
                self.breaker.succeed();
                (self.unanswered, self.last_error) = (None, None);
            }
        }
    }

    /// Whether nothing is under way and nobody asked for anything in that time.
    pub(crate) fn unused_for(&self, idle: Duration) -> bool {
        self.in_flight == 0 && self.last_used.is_none_or(|at| at.elapsed() >= idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_fail_together_the_first_counts() {
        let (mut status, lost) =
            (ServerStatus::default(), McpError::Lost { cause: "x".into(), stderr: Vec::new(), exit: None });
        let check = |status: &ServerStatus, failures: u32| assert_eq!(status.breaker.failures(), failures);
        let (one, other) = (status.mark(), status.mark());
        status.note(one, Some(&lost));
        status.note(other, Some(&lost));
        check(&status, 1);
        let later = status.mark();
        status.note(later, Some(&lost));
        check(&status, 2);
        // What it answers meanwhile makes a failure a new one.
        status.note(later, None);
        check(&status, 0);
        status.note(other, Some(&lost));
        check(&status, 1);
    }

    /// A server that gives no answer has not shown that it works.
    #[test]
    fn timeout_neither_adds_a_failure_nor_clears_earlier_ones() {
        let lost = McpError::Lost { cause: "x".into(), stderr: Vec::new(), exit: None };
        let left_alone = McpError::LeftAlone { cause: "x".into(), stderr: Vec::new() };
        let expired = McpError::SessionExpired { effect: toolhub_core::Effect::None };
        let mut status = ServerStatus::default();
        for failures in 1..=3 {
            let mark = status.mark();
            status.note(mark, Some(&lost));
            for neither in [&McpError::TimedOut(Duration::from_secs(1)), &left_alone, &expired] {
                let mark = status.mark();
                status.note(mark, Some(neither));
                assert_eq!(status.breaker.failures(), failures, "{neither:?}");
            }
            assert!(status.last_error.is_some());
        }
        // An error that the server answered with shows that it works.
        let mark = status.mark();
        status.note(mark, Some(&McpError::Rpc { code: -1, message: String::new(), data: None }));
        assert_eq!((status.breaker.failures(), status.last_error.is_some()), (0, false));
    }
}
