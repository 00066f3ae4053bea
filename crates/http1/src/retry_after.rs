//! `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The pause that a value asks for; zero for a date in the past. `None` if it is neither a number nor a date.
pub fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seconds_and_dates() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let later = Timestamp::now() + Duration::from_secs(90);
        let later = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&later).unwrap();
        let pause = retry_after(&later).unwrap();
        assert!((88..=90).contains(&pause.as_secs()), "{later} {pause:?}");
        for value in ["", "soon", "-1", "1.5", "7 s"] {
            assert_eq!(retry_after(value), None, "{value}");
        }
    }
}
