//! Decides whether and when a request is retried. Deterministic except for the jitter.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Maximum number of attempts.
pub(crate) const MAX_REQUEST_TRIES: u32 = 3;
/// Delay before the second attempt; it doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// Maximum delay, even if the endpoint requests a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Whether a retry may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// No.
    Never,
    /// Yes.
    Backoff,
    /// After the delay requested by the endpoint.
    After(Duration),
}

/// The delay before the next attempt, if any, after `tries` attempts with `left` time remaining.
pub(crate) fn backoff(retry_advice: RetryAdvice, tries: u32, left: Duration) -> Option<Duration> {
    if tries >= MAX_REQUEST_TRIES {
        return None;
    }
    let wait = match retry_advice {
        RetryAdvice::Never => return None,
        // Jitter of up to 50 % prevents simultaneous retries of many clients.
        RetryAdvice::Backoff => {
            INITIAL_BACKOFF.mul_f64(2_f64.powi(tries.cast_signed() - 1) * (1.0 + fastrand::f64() / 2.0))
        }
        RetryAdvice::After(wait) => wait + INITIAL_BACKOFF.mul_f64(fastrand::f64() / 2.0),
    };
    // No retry if the delay exceeds the limit or the remaining time.
    (wait <= MAX_BACKOFF && wait < left).then_some(wait)
}

/// The delay requested by the response headers.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let span = |text: &str, unit: f64| {
        let number: f64 = text.parse().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| span(text, 0.001)) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    span(text, 1.0).or_else(|| until(text))
}

/// The time until a date; zero if it is in the past.
fn until(date: &str) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    let left = date.timestamp().duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(left).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_exponentially_until_retries_end() {
        let long = Duration::from_secs(100);
        let check = |retry_advice: RetryAdvice, tries: u32, left: Duration, expect: Option<(u64, u64)>| {
            let backoff = backoff(retry_advice, tries, left).map(|backoff| backoff.as_millis());
            let fits = |(low, high): (u64, u64)| {
                backoff.is_some_and(|backoff| (low.into()..=high.into()).contains(&backoff))
            };
            assert!(expect.map_or(backoff.is_none(), fits), "{retry_advice:?} {tries} {left:?}: {backoff:?}");
        };
        check(RetryAdvice::Backoff, 1, long, Some((500, 750)));
        check(RetryAdvice::Backoff, 2, long, Some((1000, 1500)));
        check(RetryAdvice::Backoff, 3, long, None);
        check(RetryAdvice::Never, 1, long, None);
        check(RetryAdvice::Backoff, 1, Duration::from_millis(400), None);
        check(RetryAdvice::After(Duration::from_secs(2)), 1, long, Some((2000, 2250)));
        check(RetryAdvice::After(Duration::from_secs(3600)), 1, Duration::MAX, None);
    }

    #[test]
    fn parses_retry_after_headers() {
        let check = |name: &'static str, text: &str, expect: Option<Duration>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, text.parse().unwrap());
            assert_eq!(retry_after(&headers), expect, "{name}: {text}");
        };
        check("retry-after", "3", Some(Duration::from_secs(3)));
        check("retry-after", "0.25", Some(Duration::from_millis(250)));
        check("retry-after-ms", "40", Some(Duration::from_millis(40)));
        check("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(Duration::ZERO));
        check("retry-after", "soon", None);
        check("retry-after", "-1", None);
        check("retry-after", "1e300", None);
        let mut headers = HeaderMap::new();
        let soon = jiff::Timestamp::now() + jiff::Span::new().seconds(90);
        headers.insert(
            "retry-after",
            jiff::fmt::rfc2822::to_string(&soon.to_zoned(jiff::tz::TimeZone::UTC)).unwrap().parse().unwrap(),
        );
        let wait = retry_after(&headers).unwrap();
        assert!((88..=90).contains(&wait.as_secs()), "{wait:?}");
    }
}
