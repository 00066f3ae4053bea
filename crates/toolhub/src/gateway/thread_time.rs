//! The processor time of a thread: how long work takes, without the time for which other threads run.

use std::time::Duration;

/// The processor time of this thread.
#[cfg(unix)]
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// The time on the clock, where the processor time is not available.
#[cfg(not(unix))]
pub(super) fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}
