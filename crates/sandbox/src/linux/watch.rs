//! Watches limits that the kernel does not enforce for all processes of a confinement together, and kills them when one
//! is exceeded.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use super::fork_notify::{Heard, Hearing};
use super::group::MemoryEvents;
use super::mark::Mark;
use super::usage::{self, Usage};
use crate::policy::Limits;
use crate::stop::Stop;

/// Interval of the check for new processes if there are no notifications; reads one small file.
const TICK: Duration = Duration::from_millis(10);
/// Interval of a full check.
const FULL: Duration = Duration::from_millis(100);
/// Interval of a full check after the first `NEW` of a run.
const FULL_OF_OLD: Duration = Duration::from_millis(400);
/// How long a process counts as new.
const NEW: Duration = Duration::from_secs(5);

/// Number of repeated counts when memory exceeds the limit, and the pause between them: pages that a new process begins
/// to share during a count are counted more than once.
const CONFIRMATIONS: u32 = 3;
const CONFIRMATION_PAUSE: Duration = Duration::from_millis(10);

/// The watched confinement.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) mark: Mark,
    pub(super) limits: Limits,
    /// The folder that is writable without a grant.
    pub(super) folder: PathBuf,
    /// The count of OOM kills of the cgroup.
    pub(super) group: Option<MemoryEvents>,
    /// Processes of Bubblewrap, which do not count for the limit.
    pub(super) spare: u64,
    pub(super) births: Hearing,
}

impl Subject {
    fn most_tasks(&self) -> u64 {
        self.limits.processes.saturating_add(self.spare)
    }
}

/// A thread that watches one confinement.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<Mutex<Option<Stop>>>,
    /// Dropped to end the watch.
    bell: Option<UnixStream>,
}

impl Watch {
    /// Starts the thread. Failure is an error, since nothing would be watched without it.
    pub(super) fn start(subject: Subject) -> io::Result<Self> {
        let stop = Arc::new(Mutex::new(None));
        let (bell, rung) = UnixStream::pair()?;
        let its = Arc::clone(&stop);
        let builder = Builder::new().name("sandbox-watch".to_owned()).stack_size(256 << 10);
        // The thread is detached: it ends soon after `bell` is dropped, and no other thread waits for it.
        builder.spawn(move || {
            if let Some(found) = Watcher::new(subject).watch(&rung) {
                // Stored before killing, so that the reason is available when the exit is observed.
                *its.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.stop);
                found.mark.end_all();
            }
        })?;
        Ok(Self { stop, bell: Some(bell) })
    }

    /// Why the watcher killed the processes, if it did.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the watch.
    pub(super) fn end(&mut self) {
        self.bell = None;
    }
}

/// An exceeded limit, and the mark of the processes to kill. Keeps the listener open, so that suspended clones cannot
/// continue.
struct Found {
    stop: Stop,
    mark: Mark,
    _births: Hearing,
}

struct Watcher {
    subject: Subject,
    begun: Instant,
    looked: Option<Look>,
    /// Upper bound of the running tasks: those of the last check, and all allowed since.
    tasks: u64,
}

impl Watcher {
    fn new(subject: Subject) -> Self {
        Self { subject, begun: Instant::now(), looked: None, tasks: 0 }
    }

    fn watch(mut self, bell: &UnixStream) -> Option<Found> {
        loop {
            if self.is_time_to_look()
                && let Some(stop) = self.look()
            {
                return Some(self.found(stop));
            }
            let tick = if self.subject.births.is_open() { FULL } else { TICK };
            match self.subject.births.wait(bell, tick) {
                Heard::Nothing => {}
                Heard::End => return None,
                Heard::Question(question) => {
                    if let Some(stop) = self.judge_birth() {
                        self.subject.births.refuse(question);
                        return Some(self.found(stop));
                    }
                    self.subject.births.allow(question);
                }
            }
        }
    }

    fn found(self, stop: Stop) -> Found {
        Found { stop, mark: self.subject.mark, _births: self.subject.births }
    }

    /// Runs a full check. Returns the exceeded limit, if any.
    fn look(&mut self) -> Option<Stop> {
        let mut look = Look::take(&self.subject);
        for _ in 0..CONFIRMATIONS {
            if look.out_of_memory || !matches!(look.judge(&self.subject), Some(Stop::Memory(_))) {
                break;
            }
            thread::sleep(CONFIRMATION_PAUSE);
            look = Look::take(&self.subject);
        }
        self.tasks = look.usage.tasks;
        let stop = look.judge(&self.subject);
        self.looked = Some(look);
        stop
    }

    /// Decides about one more task. A full check, which discounts exited tasks, runs only if the limit seems reached.
    fn judge_birth(&mut self) -> Option<Stop> {
        let most = self.subject.most_tasks();
        if self.tasks >= most
            && let Some(stop) = self.look()
        {
            return Some(stop);
        }
        if self.tasks >= most {
            return Some(Stop::Processes(self.subject.limits.processes));
        }
        self.tasks += 1;
        None
    }

    fn is_time_to_look(&self) -> bool {
        let Some(look) = &self.looked else {
            // Most programs exit before the first check.
            return self.begun.elapsed() >= if self.subject.births.is_open() { FULL } else { TICK };
        };
        let full = if self.begun.elapsed() < NEW { FULL } else { FULL_OF_OLD };
        look.at.elapsed() >= full || (!self.subject.births.is_open() && look.may_have_grown(&self.subject))
    }
}

/// The result of a full check.
struct Look {
    at: Instant,
    newest: Option<u64>,
    usage: Usage,
    disk: u64,
    /// Whether the kernel has killed a process for exceeding the memory limit.
    out_of_memory: bool,
}

impl Look {
    fn take(subject: &Subject) -> Self {
        // Read first, so that tasks created during the check count as new.
        let newest = usage::newest_task();
        let pids = subject.mark.bearers();
        Self {
            at: Instant::now(),
            newest,
            usage: Usage::of(&pids, subject.limits.memory, &subject.folder),
            disk: usage::disk(&subject.folder, &pids, subject.limits.disk),
            out_of_memory: subject.group.as_ref().is_some_and(MemoryEvents::has_killed),
        }
    }

    /// Whether the number of processes may exceed the limit by now.
    fn may_have_grown(&self, subject: &Subject) -> bool {
        let grown = match (self.newest, usage::newest_task()) {
            // PIDs wrap around.
            (Some(then), Some(now)) => now.checked_sub(then).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        self.usage.tasks.saturating_add(grown) > subject.most_tasks()
    }

    fn judge(&self, subject: &Subject) -> Option<Stop> {
        let limits = &subject.limits;
        if self.usage.tasks > subject.most_tasks() {
            Some(Stop::Processes(limits.processes))
        } else if self.out_of_memory || self.usage.memory > limits.memory {
            Some(Stop::Memory(limits.memory))
        } else if self.disk > limits.disk {
            Some(Stop::Disk(limits.disk))
        } else if self.usage.cpu > limits.cpu {
            Some(Stop::Cpu(limits.cpu))
        } else {
            None
        }
    }
}
