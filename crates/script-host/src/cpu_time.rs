//! The CPU time of this process, for the limit of the script.

use std::time::Duration;

/// CPU time that all threads of this process have used.
#[cfg(unix)]
pub(crate) fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

/// Time since the first call: an upper bound of the CPU time of the only busy thread.
#[cfg(not(unix))]
pub(crate) fn used() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static STARTED: OnceLock<Instant> = OnceLock::new();
    STARTED.get_or_init(Instant::now).elapsed()
}
