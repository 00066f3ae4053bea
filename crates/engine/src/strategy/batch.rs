//! Candidates that run concurrently: collects finished ones, cancels the others, and tries the remaining candidates.

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;
use toolhub_core::outcome::{AttemptEnd, AttemptRecord};
use toolhub_core::{BoxFuture, EventKind, ToolError, ToolOutput};

use super::first::{self, NextCandidate};
use super::{CallResult, CandidateResult, RunningCall};
use crate::retry;
use crate::router::{Candidate, Route};

/// The running first batch of a route. Dropping it cancels the candidates that still run.
pub(super) struct Batch<'a> {
    run: RunningCall<'a>,
    route: &'a Route,
    started: Instant,
    running: FuturesUnordered<BoxFuture<'a, (usize, CandidateResult)>>,
    /// Results by position; `None` while the candidate runs.
    done: Vec<Option<CandidateResult>>,
}

impl<'a> Batch<'a> {
    pub(super) fn start(run: RunningCall<'a>, route: &'a Route) -> Self {
        let first = &route.candidates[..route.batch.min(route.candidates.len())];
        // One try each: the batch does not wait for retries of an unreachable server.
        let running =
            first.iter().enumerate().map(|(index, candidate)| -> BoxFuture<'a, (usize, CandidateResult)> {
                Box::pin(async move { (index, run.try_candidate(candidate, 1).await) })
            });
        let (running, done) = (running.collect(), first.iter().map(|_| None).collect());
        Self { run, route, started: Instant::now(), running, done }
    }

    /// Waits for the next candidate to finish, and collects all that have finished by then. Returns `false` if none
    /// is running.
    pub(super) async fn next(&mut self) -> bool {
        let Some((index, tried)) = self.running.next().await else { return false };
        self.done[index] = Some(tried);
        while let Some(Some((index, tried))) = self.running.next().now_or_never() {
            self.done[index] = Some(tried);
        }
        true
    }

    pub(super) fn any_success(&self) -> bool {
        self.done.iter().flatten().any(|tried| tried.result.is_ok())
    }

    /// Cancels the running candidates. Successes are in the order of the route, not of completion.
    pub(super) fn end(self) -> BatchResult<'a> {
        let Self { run, route, started, running, done } = self;
        drop(running);
        let mut ended =
            BatchResult { run, route, successes: Vec::new(), failures: Vec::new(), attempts: Vec::new() };
        for (candidate, tried) in route.candidates.iter().zip(done) {
            match tried {
                None => {
                    let (source, took) = (candidate.source().clone(), started.elapsed());
                    run.emit(EventKind::AttemptCancelled { source: source.clone(), took });
                    let tool = candidate.entry.tool.name().clone();
                    ended.attempts.push(AttemptRecord { source, tool, took, end: AttemptEnd::Cancelled });
                }
                Some(CandidateResult { result, attempts, .. }) => {
                    ended.attempts.extend(attempts);
                    match result {
                        Ok(output) => ended.successes.push((candidate, output)),
                        Err(error) => ended.failures.push((candidate, error)),
                    }
                }
            }
        }
        ended
    }
}

/// The results of a batch.
pub(super) struct BatchResult<'a> {
    run: RunningCall<'a>,
    route: &'a Route,
    pub(super) successes: Vec<(&'a Candidate, ToolOutput)>,
    failures: Vec<(&'a Candidate, ToolError)>,
    pub(super) attempts: Vec<AttemptRecord>,
}

impl BatchResult<'_> {
    /// After a batch without a success: tries the remaining candidates sequentially, then retries those of the batch
    /// whose error is retryable. The remaining candidates are skipped if a candidate of the batch may have taken
    /// effect.
    pub(super) async fn rest(self) -> CallResult {
        let is_unchanged =
            self.failures.iter().all(|(candidate, error)| first::had_no_effect(candidate, error));
        let count = if is_unchanged { self.route.candidates.len() } else { self.route.batch };
        let rest = self.route.candidates.iter().take(count).skip(self.route.batch);
        let (now, jitter) = (Instant::now(), fastrand::f64());
        let mut again: Vec<NextCandidate<'_>> = Vec::new();
        for (candidate, error) in &self.failures {
            let pause = retry::backoff(error, candidate.entry.tool.hints(), 1, jitter);
            if let Some(pause) = pause.filter(|pause| self.run.has_time_after(*pause, now)) {
                again.push(NextCandidate { candidate, not_before: Some(now + pause) });
            }
        }
        again.sort_by_key(|turn| turn.not_before);
        let order: Vec<NextCandidate<'_>> = rest.map(NextCandidate::first).chain(again).collect();
        if order.is_empty() || !self.run.has_time() {
            let error = self.failures.into_iter().next().map_or(ToolError::Internal, |(_, error)| error);
            return CallResult::failed(error, self.attempts);
        }
        first::run(self.run, order.into_iter(), self.attempts).await
    }
}
