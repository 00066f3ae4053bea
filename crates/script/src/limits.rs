//! The limits of one script run, as configured; every run may lower them and none may raise them.

use std::time::Duration;

/// The limits of one script run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// CPU time of the host process.
    pub cpu: Duration,
    /// Time from the start of the script to its end, including the time that tools take.
    pub wall: Duration,
    /// Bytes that the script's values may take.
    pub memory: u64,
    /// Number of tool calls.
    pub calls: u32,
    /// Number of tool calls that run at the same time; further ones wait.
    pub concurrent_calls: usize,
    /// Bytes of the result and the log together.
    pub output: usize,
    /// Bytes of the arguments of one call, as JSON.
    pub arguments: usize,
    /// Bytes of the answer to one call, as JSON. Larger answers are errors inside the script.
    pub answer: usize,
    /// Bytes of the script and of its input, each.
    pub code: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(30),
            wall: Duration::from_secs(600),
            memory: 64 << 20,
            calls: 100,
            concurrent_calls: 8,
            output: 256 << 10,
            arguments: 1 << 20,
            answer: 8 << 20,
            code: 1 << 20,
        }
    }
}

impl ScriptLimits {
    /// The smaller value of each limit.
    #[must_use]
    pub fn at_most(&self, other: &Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            wall: self.wall.min(other.wall),
            memory: self.memory.min(other.memory),
            calls: self.calls.min(other.calls),
            concurrent_calls: self.concurrent_calls.min(other.concurrent_calls).max(1),
            output: self.output.min(other.output),
            arguments: self.arguments.min(other.arguments),
            answer: self.answer.min(other.answer),
            code: self.code.min(other.code),
        }
    }

    /// Bytes of the log. The rest of the output is kept for the result; further lines of the log are dropped and counted.
    pub fn log(&self) -> usize {
        self.output / 2
    }

    /// Bytes of the arguments of calls that wait or run at the same time. Beyond it, no further call of the script is read.
    pub(crate) fn held_arguments(&self) -> usize {
        self.arguments.saturating_mul(self.concurrent_calls)
    }

    /// The longest line that a host may send. JSON escapes take up to six bytes for one.
    pub(crate) fn host_line(&self) -> usize {
        self.arguments.max(self.output.saturating_mul(6)).saturating_add(4 << 10)
    }
}

/// Sleeps that may be pending at the same time.
pub const MAX_PENDING_SLEEPS: usize = 256;
/// Sleeps of one run.
pub const MAX_SLEEPS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lowers_limits_and_never_raises_them() {
        let configured = ScriptLimits::default();
        let requested = ScriptLimits {
            wall: Duration::from_secs(5),
            cpu: Duration::from_secs(90),
            concurrent_calls: 0,
            ..configured
        };
        let limits = requested.at_most(&configured);
        assert_eq!((limits.wall, limits.cpu), (Duration::from_secs(5), configured.cpu));
        assert_eq!(limits.concurrent_calls, 1);
    }
}
