//! Retention periods, and the steps of a cleanup, that both databases use.

use std::time::Duration;

/// Retention of a server's list that is not refreshed.
pub(crate) const LIST_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Number of versions kept per tool.
pub(crate) const MAX_TOOL_VERSIONS: i64 = 20;
/// Pause between two steps of a cleanup.
pub(crate) const STEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of rows per step, so that other writes are delayed only briefly.
pub(crate) const MAX_STEP_ROWS: i64 = 200;
/// Maximum number of blocks per step.
pub(crate) const MAX_STEP_BLOCKS: i64 = 10;
