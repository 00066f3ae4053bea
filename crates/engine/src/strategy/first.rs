//! Sequential strategy: the next candidate is tried only if the previous one certainly had no effect.

use tokio::time::Instant;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{Effect, EventKind, ToolError};

use super::{CallResult, RunningCall};
use crate::retry::MAX_ATTEMPTS_PER_CANDIDATE;
use crate::router::Candidate;

/// A candidate in the order in which they are tried.
pub(crate) struct NextCandidate<'a> {
    pub(crate) candidate: &'a Candidate,
    /// The end of the pause after an earlier attempt.
    pub(crate) not_before: Option<Instant>,
}

impl<'a> NextCandidate<'a> {
    /// A candidate that was not tried yet.
    pub(crate) fn first(candidate: &'a Candidate) -> Self {
        Self { candidate, not_before: None }
    }
}

/// Tries the candidates in order. `attempts` holds earlier attempts.
pub(crate) async fn run<'a>(
    run: RunningCall<'_>,
    turns: impl ExactSizeIterator<Item = NextCandidate<'a>>,
    mut attempts: Vec<AttemptRecord>,
) -> CallResult {
    let count = turns.len();
    let mut last_error = ToolError::Internal;
    let mut ended = None;
    for (index, NextCandidate { candidate, not_before }) in turns.enumerate() {
        if index > 0 && !run.has_time() {
            break;
        }
        if let Some(at) = not_before {
            let now = Instant::now();
            let pause = at.saturating_duration_since(now);
            if !run.has_time_after(pause, now) {
                break;
            }
            run.emit(EventKind::Retrying { source: candidate.source().clone(), pause });
            Box::pin(tokio::time::sleep(pause)).await;
        }
        // With another candidate left, each is tried once, whatever its error.
        let tries = if index + 1 == count {
            MAX_ATTEMPTS_PER_CANDIDATE.saturating_sub(count_attempts(candidate, &attempts))
        } else {
            1
        };
        let tried = run.try_candidate(candidate, tries).await;
        ended = Some(tried.ended);
        if attempts.is_empty() {
            attempts = tried.attempts;
        } else {
            attempts.extend(tried.attempts);
        }
        match tried.result {
            Ok(output) => return CallResult { ended, ..CallResult::from(candidate, output, attempts) },
            Err(error) => {
                let may_go_on = had_no_effect(candidate, &error);
                last_error = error;
                if !may_go_on {
                    break;
                }
            }
        }
    }
    CallResult { ended, ..CallResult::failed(last_error, attempts) }
}

/// Whether a failed candidate certainly changed nothing, so that another one may be tried. A read-only tool never does.
pub(super) fn had_no_effect(candidate: &Candidate, error: &ToolError) -> bool {
    candidate.entry.tool.hints().read_only == Some(true) || error.effect() == Effect::None
}

/// Number of earlier attempts of a candidate.
fn count_attempts(candidate: &Candidate, attempts: &[AttemptRecord]) -> u32 {
    let same = |attempt: &&AttemptRecord| {
        attempt.source == *candidate.source() && attempt.tool == *candidate.entry.tool.name()
    };
    u32::try_from(attempts.iter().filter(same).count()).unwrap_or(u32::MAX)
}
