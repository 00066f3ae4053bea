//! Times and durations in whole milliseconds, as ids, messages and files contain them, and the length of a day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A day without leap seconds.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Milliseconds from 1970 to `time`; 0 for an earlier time.
pub fn unix_millis(time: SystemTime) -> u64 {
    duration_millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A duration in milliseconds, rounded down; `u64::MAX` for a longer one.
pub fn duration_millis(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1000).saturating_add(u64::from(duration.subsec_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_down_and_saturates() {
        for (duration, millis) in [
            (Duration::ZERO, 0),
            (Duration::from_micros(1_999), 1),
            (Duration::from_millis(61_234), 61_234),
            (Duration::from_secs(u64::MAX / 1000), u64::MAX / 1000 * 1000),
            (Duration::MAX, u64::MAX),
        ] {
            assert_eq!(duration_millis(duration), millis, "{duration:?}");
        }
    }

    #[test]
    fn counts_from_1970() {
        assert_eq!(unix_millis(UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)), 1_700_000_000_123);
        assert_eq!(unix_millis(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
