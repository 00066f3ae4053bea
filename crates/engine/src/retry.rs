//! Decides whether a failed attempt is retried, and after which pause. Pure. Retries only if the call cannot take
//! effect twice.

use std::time::Duration;

use toolhub_core::{Effect, Hints, ToolError};

/// Maximum number of attempts with one candidate, including the first.
pub(crate) const MAX_ATTEMPTS_PER_CANDIDATE: u32 = 3;
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);

/// The pause before the next try, or `None` if there must not be one. `jitter` from 0 to 1 spreads the pauses.
pub(crate) fn backoff(error: &ToolError, hints: Hints, tries: u32, jitter: f64) -> Option<Duration> {
    if tries >= MAX_ATTEMPTS_PER_CANDIDATE || !may_retry(error, hints) {
        return None;
    }
    let grown = INITIAL_BACKOFF * 2_u32.pow(tries.saturating_sub(1));
    let spread = grown.mul_f64(0.75 + jitter / 2.0);
    let requested = match error {
        ToolError::HttpStatus { retry_after, .. } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    Some(spread.max(requested))
}

fn may_retry(error: &ToolError, hints: Hints) -> bool {
    match error {
        ToolError::ConnectionFailed { permanent: true, .. } => false,
        ToolError::ConnectionFailed { effect: Effect::None, .. } => true,
        // Connection lost during the call: retried only if repeating does no harm.
        ToolError::ConnectionFailed { .. } => hints.may_repeat(),
        // With `Effect::None` the call had not been sent. Once it is sent, no status proves that it did not run, so
        // that `Retry-After` is honoured only for read-only and idempotent tools.
        ToolError::HttpStatus { status: 408 | 425 | 429 | 500 | 502..=504, effect, .. } => {
            *effect == Effect::None || hints.may_repeat()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::ServerId;

    fn lost(effect: Effect, permanent: bool) -> ToolError {
        let (server, cause) = (ServerId::new("s"), "".into());
        ToolError::ConnectionFailed { server, cause, stderr: Vec::new(), effect, permanent }
    }

    fn status(status: u16, retry_after: Option<u64>, effect: Effect) -> ToolError {
        let retry_after = retry_after.map(Duration::from_secs);
        ToolError::HttpStatus { server: ServerId::new("s"), status, body: String::new(), retry_after, effect }
    }

    #[test]
    fn retries_only_calls_that_cannot_take_effect_twice() {
        let plain = Hints::default();
        let repeatable = Hints { idempotent: Some(true), ..plain };
        let check = |error: ToolError, hints: Hints, tries: u32, expect: Option<u64>| {
            let found = backoff(&error, hints, tries, 0.5).map(|pause| pause.as_secs());
            assert_eq!(found, expect, "{error:?} {hints:?} after {tries}");
        };
        check(lost(Effect::None, false), plain, 1, Some(1));
        check(lost(Effect::None, false), plain, 2, Some(2));
        check(lost(Effect::None, false), plain, 3, None);
        check(lost(Effect::None, true), plain, 1, None);
        check(lost(Effect::Unknown, false), plain, 1, None);
        check(lost(Effect::Unknown, false), repeatable, 1, Some(1));
        for code in [408, 429, 500, 502, 503, 504] {
            check(status(code, Some(7), Effect::Unknown), plain, 1, None);
            check(status(code, Some(7), Effect::Unknown), repeatable, 1, Some(7));
            check(status(code, Some(7), Effect::None), plain, 1, Some(7));
        }
        check(status(503, None, Effect::Unknown), repeatable, 1, Some(1));
        check(status(404, None, Effect::Unknown), repeatable, 1, None);
        check(ToolError::failed("no"), repeatable, 1, None);
        check(ToolError::TimedOut { after: Duration::ZERO, effect: Effect::Unknown }, repeatable, 1, None);
    }
}
