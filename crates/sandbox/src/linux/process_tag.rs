//! The mark that identifies all processes of a confinement: the value of `RLIMIT_LOCKS`, which children inherit and the
//! kernel does not use. It cannot be raised, and the seccomp filter forbids lowering it, so that a process keeps it
//! after `setsid`, a changed environment or a double fork.

use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::syscalls::{self, LimitNumber};

/// The resource limit used as the mark.
pub(super) const RESOURCE: LimitNumber = libc::RLIMIT_LOCKS as LimitNumber;
/// Maximum time spent on killing the remaining processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of marks of a program, after which they are reused.
const TAG_COUNT: u64 = 1 << 24;

/// The range of marks of all confinements of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagRange(u64);

impl TagRange {
    /// The random range of this program.
    pub(super) fn own() -> io::Result<Self> {
        static FIRST: OnceLock<u64> = OnceLock::new();
        let (_, hard) = syscalls::limit_of(0, RESOURCE)?;
        let upper_bound = hard.min(1 << 62);
        // The inherited hard limit is too low for marks.
        if upper_bound < 1 << 32 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self(*FIRST.get_or_init(|| fastrand::u64(upper_bound / 2..upper_bound - TAG_COUNT))))
    }

    /// Parses the `Display` form.
    pub(super) fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    fn matches(self, pid: i32) -> bool {
        limit_of(pid).and_then(|limit| limit.checked_sub(self.0)).is_some_and(|nth| nth < TAG_COUNT)
    }

    /// Kills all processes with a mark of this range, including those started meanwhile. Returns whether none is left.
    pub(super) fn kill_all(self) -> bool {
        kill_all(|pid| self.matches(pid))
    }
}

impl fmt::Display for TagRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The mark of one confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessTag(u64);

impl ProcessTag {
    /// Returns an unused mark.
    pub(super) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self(TagRange::own()?.0 + NEXT.fetch_add(1, Ordering::Relaxed) % TAG_COUNT))
    }

    /// Sets the mark on the caller.
    pub(super) fn apply(self) -> io::Result<()> {
        syscalls::set_limit(RESOURCE, self.0, self.0)
    }

    fn matches(self, pid: i32) -> bool {
        limit_of(pid) == Some(self.0)
    }

    /// The PIDs of all processes with this mark, including zombies.
    pub(super) fn pids(self) -> Vec<i32> {
        pids().filter(|pid| self.matches(*pid)).collect()
    }

    /// Kills all processes with this mark, including those started meanwhile. Returns whether none is left.
    pub(super) fn kill_all(self) -> bool {
        kill_all(|pid| self.matches(pid))
    }
}

fn limit_of(pid: i32) -> Option<u64> {
    syscalls::limit_of(pid, RESOURCE).ok().map(|(_, hard)| hard)
}

fn kill_all(is_target: impl Fn(i32) -> bool) -> bool {
    let started = Instant::now();
    loop {
        let mut alive = false;
        for pid in pids().filter(|pid| is_target(*pid)) {
            // The pidfd is opened before the last check, so that a reused PID is not killed.
            let Ok(process) = syscalls::open_process(pid) else { continue };
            if is_target(pid) && is_alive(pid) {
                alive = true;
                let _ = syscalls::kill(process.as_fd());
            }
        }
        if !alive {
            return true;
        }
        if started.elapsed() > KILL_TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn pids() -> impl Iterator<Item = i32> {
    let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether any thread is running: the main thread may have exited before the others.
fn is_alive(pid: i32) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.threads > 0)
}

/// The used fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    /// Running threads; 0 after the exit.
    pub(super) threads: u64,
    /// Ticks of CPU time, including children that were waited for.
    pub(super) ticks: u64,
}

impl Stat {
    /// The process name may contain any character, so the fields are read after the last `)`.
    pub(super) fn read(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<i64>().ok());
        let spent = (11..=14).filter_map(field).map(|ticks| ticks.max(0).unsigned_abs());
        let threads = if fields.first() == Some(&"Z") && field(17) == Some(1) { 0 } else { field(17)? };
        Some(Self { threads: threads.max(0).unsigned_abs(), ticks: spent.sum() })
    }
}
