//! Watches what the kernel does not hold for all processes of a confinement together, and ends them when it is too much.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::mark::Mark;
use super::usage::{self, Usage};
use crate::policy::Limits;
use crate::stop::Stop;

/// How often is looked whether there are new processes: a look at one small file.
const TICK: Duration = Duration::from_millis(10);
/// The same once a process is old and has shown what it is like.
const SLOW_TICK: Duration = Duration::from_millis(50);
/// How long a process counts as new.
const NEW: Duration = Duration::from_secs(5);
/// How often everything is looked at, whether there seems to be a reason or not.
const FULL: Duration = Duration::from_millis(100);

/// What the watcher and the confinement share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct State {
    over: bool,
    stop: Option<Stop>,
}

/// What is watched.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) mark: Mark,
    pub(super) limits: Limits,
    pub(super) folder: PathBuf,
}

/// A thread that watches one confinement.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Without a thread nothing would be watched, so that not to get one is an error.
    pub(super) fn start(subject: Subject) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let builder = Builder::new().name("sandbox-watch".to_owned()).stack_size(256 << 10);
        let thread = builder.spawn(move || run(&subject, &its))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Why the watcher ended the processes, if it did.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.shared.lock().stop.clone()
    }

    /// Ends the watch.
    pub(super) fn end(&mut self) {
        self.shared.lock().over = true;
        self.shared.change.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(subject: &Subject, shared: &Shared) {
    let begun = Instant::now();
    let mut looked: Option<Look> = None;
    loop {
        if looked.as_ref().is_none_or(|look| look.is_old(subject)) {
            let look = Look::take(subject);
            if let Some(stop) = look.judge(subject) {
                // Said before it is done: whoever sees the end can ask why.
                shared.lock().stop = Some(stop);
                subject.mark.end_all();
                return;
            }
            looked = Some(look);
        }
        let tick = if begun.elapsed() < NEW { TICK } else { SLOW_TICK };
        let state = shared.lock();
        if state.over {
            return;
        }
        let waited = shared.change.wait_timeout(state, tick);
        if waited.unwrap_or_else(PoisonError::into_inner).0.over {
            return;
        }
    }
}

/// What was seen of all processes.
struct Look {
    at: Instant,
    newest: Option<u64>,
    usage: Usage,
    disk: u64,
}

impl Look {
    fn take(subject: &Subject) -> Self {
        // Before the others are looked at: what comes meanwhile counts as new.
        let newest = usage::newest_task();
        let pids = subject.mark.bearers();
        Self {
            at: Instant::now(),
            newest,
            usage: Usage::of(&pids),
            disk: usage::disk(&subject.folder, &pids, subject.limits.disk),
        }
    }

    /// Whether there may be too many processes by now, or it is time to look again.
    fn is_old(&self, subject: &Subject) -> bool {
        let grown = match (self.newest, usage::newest_task()) {
            // Numbers begin anew at some point.
            (Some(then), Some(now)) => now.checked_sub(then).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        self.at.elapsed() >= FULL || self.usage.tasks.saturating_add(grown) > subject.limits.processes
    }

    fn judge(&self, subject: &Subject) -> Option<Stop> {
        let limits = &subject.limits;
        if self.usage.tasks > limits.processes {
            Some(Stop::Processes(limits.processes))
        } else if self.usage.memory > limits.memory {
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
