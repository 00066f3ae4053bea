//! Sequential strategy: the next candidate is tried only if the previous one certainly had no effect.

use std::borrow::Borrow;

use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{Effect, ToolError};

use super::{CallResult, Run};
use crate::retry::MAX_TRIES;
use crate::router::Candidate;

/// Tries the candidates in order. `attempts` holds earlier attempts.
pub(crate) async fn run<C: Borrow<Candidate>>(
    run: Run<'_>,
    candidates: &[C],
    mut attempts: Vec<AttemptRecord>,
) -> CallResult {
    let mut last_error = ToolError::Internal;
    let mut ended = None;
    for (index, candidate) in candidates.iter().enumerate() {
        let candidate = candidate.borrow();
        if index > 0 && !run.has_time() {
            break;
        }
        // With another candidate left, an unreachable server is not retried.
        let tries = if index + 1 == candidates.len() {
            MAX_TRIES.saturating_sub(count_attempts(candidate, &attempts))
        } else {
            1
        };
        let tried = run.candidate(candidate, tries).await;
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
