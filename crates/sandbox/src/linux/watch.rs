//! Watches limits that the kernel does not enforce for all processes of a confinement together, and kills them when one
//! is exceeded.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use super::cgroup::MemoryEvents;
use super::fork_notify::{ForkEvent, ForkListener};
use super::process_tag::ProcessTag;
use super::usage::{self, Usage};
use crate::policy::SandboxLimits;
use crate::stop_reason::StopReason;

/// Interval of the check for new processes if there are no notifications; reads one small file.
const FORK_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of a full check.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of a full check after the first `NEW` of a run.
const LATE_SAMPLE_INTERVAL: Duration = Duration::from_millis(400);
/// How long a process counts as new.
const EARLY_PHASE: Duration = Duration::from_secs(5);

/// Number of repeated counts when memory exceeds the limit, and the pause between them: pages that a new process begins
/// to share during a count are counted more than once.
const CONFIRMATIONS: u32 = 3;
const CONFIRMATION_PAUSE: Duration = Duration::from_millis(10);

/// The watched confinement.
#[derive(Debug)]
pub(super) struct WatchedProcess {
    pub(super) process_tag: ProcessTag,
    pub(super) limits: SandboxLimits,
    /// The folder that is writable without a grant.
    pub(super) folder: PathBuf,
    /// The count of OOM kills of the cgroup.
    pub(super) cgroup: Option<MemoryEvents>,
    /// Processes of Bubblewrap, which do not count for the limit.
    pub(super) spare: u64,
    pub(super) forks: ForkListener,
}

impl WatchedProcess {
    fn max_tasks(&self) -> u64 {
        self.limits.processes.saturating_add(self.spare)
    }
}

/// A thread that watches one confinement.
#[derive(Debug)]
pub(super) struct Watch {
    stop_reason: Arc<Mutex<Option<StopReason>>>,
    /// Dropped to end the watch.
    stop_socket: Option<UnixStream>,
}

impl Watch {
    /// Starts the thread. Failure is an error, since nothing would be watched without it.
    pub(super) fn start(subject: WatchedProcess) -> io::Result<Self> {
        let stop_reason = Arc::new(Mutex::new(None));
        let (stop_socket, stop_peer) = UnixStream::pair()?;
        let thread_reason = Arc::clone(&stop_reason);
        let builder = Builder::new().name("sandbox-watch".to_owned()).stack_size(256 << 10);
        // The thread is detached: it ends soon after `stop_socket` is dropped, and no other thread waits for it.
        builder.spawn(move || {
            if let Some(violation) = Watcher::new(subject).watch(&stop_peer) {
                // Stored before killing, so that the reason is available when the exit is observed.
                *thread_reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(violation.stop_reason);
                violation.process_tag.kill_all();
            }
        })?;
        Ok(Self { stop_reason, stop_socket: Some(stop_socket) })
    }

    /// Why the watcher killed the processes, if it did.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the watch.
    pub(super) fn end(&mut self) {
        self.stop_socket = None;
    }
}

/// An exceeded limit, and the mark of the processes to kill. Keeps the listener open, so that suspended clones cannot
/// continue.
struct Violation {
    stop_reason: StopReason,
    process_tag: ProcessTag,
    _forks: ForkListener,
}

struct Watcher {
    subject: WatchedProcess,
    started: Instant,
    last_sample: Option<UsageSample>,
    /// Upper bound of the running tasks: those of the last check, and all allowed since.
    tasks: u64,
}

impl Watcher {
    fn new(subject: WatchedProcess) -> Self {
        Self { subject, started: Instant::now(), last_sample: None, tasks: 0 }
    }

    fn watch(mut self, stop_socket: &UnixStream) -> Option<Violation> {
        loop {
            if self.is_sample_due()
                && let Some(stop_reason) = self.sample()
            {
                return Some(self.violation(stop_reason));
            }
            let tick = if self.subject.forks.is_open() { SAMPLE_INTERVAL } else { FORK_CHECK_INTERVAL };
            match self.subject.forks.wait(stop_socket, tick) {
                ForkEvent::Nothing => {}
                ForkEvent::End => return None,
                ForkEvent::Notification(notification) => {
                    if let Some(stop_reason) = self.judge_fork() {
                        self.subject.forks.refuse(notification);
                        return Some(self.violation(stop_reason));
                    }
                    self.subject.forks.allow(notification);
                }
            }
        }
    }

    fn violation(self, stop_reason: StopReason) -> Violation {
        Violation { stop_reason, process_tag: self.subject.process_tag, _forks: self.subject.forks }
    }

    /// Runs a full check. Returns the exceeded limit, if any.
    fn sample(&mut self) -> Option<StopReason> {
        let mut sample = UsageSample::take(&self.subject);
        for _ in 0..CONFIRMATIONS {
            if sample.out_of_memory || !matches!(sample.judge(&self.subject), Some(StopReason::Memory(_))) {
                break;
            }
            thread::sleep(CONFIRMATION_PAUSE);
            sample = UsageSample::take(&self.subject);
        }
        self.tasks = sample.usage.tasks;
        let stop_reason = sample.judge(&self.subject);
        self.last_sample = Some(sample);
        stop_reason
    }

    /// Decides about one more task. A full check, which discounts exited tasks, runs only if the limit seems reached.
    fn judge_fork(&mut self) -> Option<StopReason> {
        let max_tasks = self.subject.max_tasks();
        if self.tasks >= max_tasks
            && let Some(stop_reason) = self.sample()
        {
            return Some(stop_reason);
        }
        if self.tasks >= max_tasks {
            return Some(StopReason::Processes(self.subject.limits.processes));
        }
        self.tasks += 1;
        None
    }

    fn is_sample_due(&self) -> bool {
        let Some(sample) = &self.last_sample else {
            // Most programs exit before the first check.
            return self.started.elapsed()
                >= if self.subject.forks.is_open() { SAMPLE_INTERVAL } else { FORK_CHECK_INTERVAL };
        };
        let full = if self.started.elapsed() < EARLY_PHASE { SAMPLE_INTERVAL } else { LATE_SAMPLE_INTERVAL };
        sample.at.elapsed() >= full || (!self.subject.forks.is_open() && sample.may_have_grown(&self.subject))
    }
}

/// The result of a full check.
struct UsageSample {
    at: Instant,
    newest: Option<u64>,
    usage: Usage,
    disk: u64,
    /// Whether the kernel has killed a process for exceeding the memory limit.
    out_of_memory: bool,
}

impl UsageSample {
    fn take(subject: &WatchedProcess) -> Self {
        // Read first, so that tasks created during the check count as new.
        let newest = usage::newest_task();
        let pids = subject.process_tag.pids();
        Self {
            at: Instant::now(),
            newest,
            usage: Usage::of(&pids, subject.limits.memory, &subject.folder),
            disk: usage::disk(&subject.folder, &pids, subject.limits.disk),
            out_of_memory: subject.cgroup.as_ref().is_some_and(MemoryEvents::has_killed),
        }
    }

    /// Whether the number of processes may exceed the limit by now.
    fn may_have_grown(&self, subject: &WatchedProcess) -> bool {
        let grown = match (self.newest, usage::newest_task()) {
            // PIDs wrap around.
            (Some(then), Some(now)) => now.checked_sub(then).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        self.usage.tasks.saturating_add(grown) > subject.max_tasks()
    }

    fn judge(&self, subject: &WatchedProcess) -> Option<StopReason> {
        let limits = &subject.limits;
        if self.usage.tasks > subject.max_tasks() {
            Some(StopReason::Processes(limits.processes))
        } else if self.out_of_memory || self.usage.memory > limits.memory {
            Some(StopReason::Memory(limits.memory))
        } else if self.disk > limits.disk {
            Some(StopReason::Disk(limits.disk))
        } else if self.usage.cpu > limits.cpu {
            Some(StopReason::Cpu(limits.cpu))
        } else {
            None
        }
    }
}
