//! Retention periods that both databases use.

use std::time::Duration;

/// Retention of a server's list that is not refreshed.
pub(crate) const LIST_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
