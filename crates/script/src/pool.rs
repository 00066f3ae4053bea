//! Script hosts that are started before they are needed. Each runs one script and is never used again.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::failure;
use crate::host_process::{HostConfig, HostProcess, StartError};
use crate::limits::ScriptLimits;
use crate::report::ScriptFailure;

/// Pause before a host is replaced: most scripts are short, and starting a process beside one slows it down.
const REFILL_DELAY: Duration = Duration::from_millis(20);

/// Hosts that wait for a script.
#[derive(Debug)]
pub(crate) struct HostPool {
    config: HostConfig,
    limits: ScriptLimits,
    size: usize,
    state: Mutex<PoolState>,
    /// The runtime that owns the processes: a run may end before the next one begins.
    runtime: Handle,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<HostProcess>,
    starting: usize,
    is_closed: bool,
}

impl HostPool {
    /// Must be called within the runtime that outlives all runs.
    pub(crate) fn new(config: HostConfig, limits: ScriptLimits, size: usize) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { config, limits, size, state, runtime: Handle::current(), tasks: TaskTracker::new() })
    }

    /// Gives a script to a host that waits, or to a new one. Starts the replacement in the background.
    /// `first` is the message with the script, as one line.
    pub(crate) async fn begin(self: &Arc<Self>, first: &[u8]) -> Result<HostProcess, Box<ScriptFailure>> {
        loop {
            let idle = self.lock().idle.pop();
            self.refill();
            let is_new = idle.is_none();
            let mut host = match idle {
                Some(host) => host,
                None => self.start().await.map_err(|error| failure::not_started(&error))?,
            };
            host.send_lines(first);
            match host.started().await? {
                true => return Ok(host),
                false if is_new => return Err(failure::exited(&host.exit().await.end(), &self.limits)),
                // The system killed it while it waited, and it has run nothing.
                false => self.discard(host),
            }
        }
    }

    /// Starts hosts until the pool is full.
    pub(crate) fn refill(self: &Arc<Self>) {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed || state.idle.len() + state.starting >= self.size {
                    return;
                }
                state.starting += 1;
            }
            let pool = Arc::downgrade(self);
            self.tasks.spawn_on(fill(pool), &self.runtime);
        }
    }

    /// Ends a host that has run a script. Finding the processes that are left of it takes some milliseconds, for which
    /// the run does not wait.
    pub(crate) fn discard(&self, host: HostProcess) {
        self.tasks.spawn_blocking_on(move || drop(host), &self.runtime);
    }

    /// Starts a host and waits until it is ready.
    async fn start(&self) -> Result<HostProcess, StartError> {
        let (config, limits) = (self.config.clone(), self.limits);
        let start = move || HostProcess::start(&config, &limits);
        let started = self.tasks.spawn_blocking_on(start, &self.runtime).await;
        let stopped = |error| StartError::Spawn {
            program: self.config.program.clone(),
            source: std::io::Error::other(error),
        };
        let mut host = started.map_err(stopped)??;
        host.ready(&self.config).await?;
        Ok(host)
    }

    /// Fills the pool and waits until it is full.
    pub(crate) async fn warm_up(&self) -> Result<(), StartError> {
        loop {
            {
                let state = self.lock();
                if state.is_closed || state.idle.len() >= self.size {
                    return Ok(());
                }
            }
            let host = self.start().await?;
            self.keep(host);
        }
    }

    /// Ends all hosts that wait, and waits for those that start.
    pub(crate) async fn close(&self) {
        let idle = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.idle)
        };
        drop(idle);
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn keep(&self, host: HostProcess) {
        let mut state = self.lock();
        if !state.is_closed && state.idle.len() < self.size {
            state.idle.push(host);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one host to the pool. A failure is reported by the run that needs a host.
async fn fill(pool: Weak<HostPool>) {
    tokio::time::sleep(REFILL_DELAY).await;
    let Some(pool) = pool.upgrade() else { return };
    let host = pool.start().await;
    pool.lock().starting -= 1;
    if let Ok(host) = host {
        pool.keep(host);
    }
}
