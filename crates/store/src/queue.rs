//! The write queue and its schedule: writes with a waiting caller are executed at once, all available ones in one
//! group; finished calls are gathered first. Each database implements the writing itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::{CallEnd, CallStart};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;

use crate::recorder::{RecordedCalls, Recorder};
use crate::responses::ResponseWrite;
use crate::write::{Write, WriteAnswer};

/// Capacity of the queue; further writes wait for room.
const MAX_QUEUED_WRITES: usize = 1_024;
/// Maximum number of writes in one group.
const MAX_GROUP_WRITES: usize = 256;
/// How long finished calls are gathered before they are written.
const GATHER_INTERVAL: Duration = Duration::from_millis(50);
/// Pause before finished calls are written again after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A write whose caller waits for it.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<WriteAnswer>,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    pub(crate) since: Instant,
    _capacity: OwnedSemaphorePermit,
}

/// The content of one transaction.
#[derive(Debug, Default)]
pub(crate) struct WriteGroup {
    pub(crate) pending: Vec<PendingWrite>,
    pub(crate) recorded: RecordedCalls,
}

/// The next action of the writer.
#[derive(Debug)]
pub(crate) enum WriterAction {
    /// Write this group.
    Write(WriteGroup),
    /// Wait for a wake-up, or until this time.
    Wait(Option<Instant>),
    /// The store is closed and everything is written.
    End,
}

#[derive(Debug, Default)]
struct QueueState {
    pending: VecDeque<PendingWrite>,
    /// When finished calls are to be written; `None` if there are none.
    due: Option<Instant>,
    /// Finished calls were taken and are not yet written.
    writing: bool,
    closed: bool,
}

/// Wakes the writer.
#[derive(Debug)]
pub(crate) enum WriterWaker {
    /// A parked thread.
    Thread(OnceLock<Thread>),
    /// A waiting task.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    Task(Notify),
}

impl WriterWaker {
    fn wake(&self) {
        match self {
            Self::Thread(thread) => {
                if let Some(thread) = thread.get() {
                    thread.unpark();
                }
            }
            Self::Task(notify) => notify.notify_one(),
        }
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    capacity: Arc<Semaphore>,
    recorder: Recorder,
    pub(crate) waker: WriterWaker,
}

/// The error of a closed store.
pub(crate) fn closed_error() -> StoreError {
    StoreError("it is closed".into())
}

impl Queue {
    pub(crate) fn new(waker: WriterWaker, recorder: Recorder) -> Self {
        Self {
            state: Mutex::default(),
            capacity: Arc::new(Semaphore::new(MAX_QUEUED_WRITES)),
            recorder,
            waker,
        }
    }

    /// Queues a write and waits for its result. The writer replies within its timeout.
    pub(crate) async fn write(&self, write: Write) -> WriteAnswer {
        let capacity = Arc::clone(&self.capacity).acquire_owned().await.map_err(|_| closed_error())?;
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state();
            if state.closed {
                return Err(closed_error());
            }
            state.pending.push_back(PendingWrite {
                write,
                reply,
                since: Instant::now(),
                _capacity: capacity,
            });
        }
        self.waker.wake();
        answer.await.map_err(|_| closed_error())?
    }

    /// Records a finished call. If the store has a journal, the call survives the end of the process from now on.
    pub(crate) fn record(&self, start: &CallStart, end: &CallEnd) {
        self.gather_if(self.recorder.add(start, end));
    }

    /// Whether to store the details of a successful call that changes nothing.
    pub(crate) fn should_store_details(&self) -> bool {
        self.recorder.should_store_details()
    }

    /// Waits while too many bytes wait for the database; `None` if that is not the case.
    pub(crate) fn wait_for_capacity(&self) -> Option<BoxFuture<'_, ()>> {
        self.recorder.wait_for_capacity()
    }

    /// Counts a call without storing its details.
    pub(crate) fn count(&self, attempts: &[AttemptRecord], at: SystemTime) {
        self.gather_if(self.recorder.count(attempts, at));
    }

    /// Counts a call whose details the database rejects.
    pub(crate) fn count_lost(&self, start: &CallStart, end: &CallEnd) {
        self.gather_if(self.recorder.count_lost(start, end));
    }

    /// Schedules the writing of gathered calls if `first`: the writer may be asleep without a deadline.
    fn gather_if(&self, first: bool) {
        if !first {
            return;
        }
        let mut state = self.state();
        // Keeps an earlier deadline: it may be that of a retry.
        if state.due.is_none() {
            state.due = Some(Instant::now() + GATHER_INTERVAL);
            drop(state);
            self.waker.wake();
        }
    }

    /// Waits until all recorded calls are written, if there are any.
    pub(crate) async fn settle(&self) -> Result<(), StoreError> {
        let nothing = {
            let state = self.state();
            state.due.is_none() && !state.writing
        };
        if nothing {
            return Ok(());
        }
        self.write(Write::Settle).await.map(drop)
    }

    /// Wakes the writer for work outside of this queue.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Number of calls without details.
    pub(crate) fn lost(&self) -> u64 {
        self.recorder.dropped()
    }

    /// Rejects new writes; queued ones are still written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.recorder.close();
        self.capacity.close();
        self.waker.wake();
    }

    /// Whether new writes are rejected.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The next action of the writer.
    pub(crate) fn next(&self, now: Instant) -> WriterAction {
        let takes_all = {
            let mut state = self.state();
            let settle = state
                .pending
                .iter()
                .take(MAX_GROUP_WRITES)
                .any(|pending_write| matches!(pending_write.write, Write::Settle));
            let takes_all = settle || state.closed;
            if !takes_all && state.due.is_none_or(|due| due > now) {
                return match state.pending.is_empty() {
                    true => WriterAction::Wait(state.due),
                    false => {
                        WriterAction::Write(WriteGroup { pending: state.take(), ..WriteGroup::default() })
                    }
                };
            }
            // Before the buffers are sealed: a call that is added to a sealed buffer sets `due` again.
            (state.due, state.writing) = (None, true);
            takes_all
        };
        self.recorder.seal();
        let recorded = self.recorder.take(takes_all);
        let mut state = self.state();
        if self.recorder.has_sealed() {
            state.due.get_or_insert(now);
        }
        state.writing = !recorded.is_empty();
        let group = WriteGroup { pending: state.take(), recorded };
        match group.pending.is_empty() && group.recorded.is_empty() {
            false => WriterAction::Write(group),
            true if state.closed => WriterAction::End,
            true => WriterAction::Wait(state.due),
        }
    }

    /// Confirms that recorded calls are in the database.
    pub(crate) fn written(&self, recorded: &RecordedCalls) {
        self.recorder.written(recorded);
        self.state().writing = false;
    }

    /// Returns recorded calls that could not be written now, to be written later. A closing store does not retry: the
    /// next store replays the journals.
    pub(crate) fn put_back(&self, recorded: RecordedCalls) {
        let mut state = self.state();
        state.writing = false;
        if state.closed {
            self.recorder.keep_for_replay(recorded);
        } else {
            state.due = Some(Instant::now() + RETRY_INTERVAL);
            self.recorder.put_back(recorded);
        }
    }

    /// Returns recorded calls that the database rejects permanently: their details are lost, but they are counted.
    pub(crate) fn drop_details(&self, recorded: RecordedCalls) {
        self.recorder.drop_details(recorded);
        let mut state = self.state();
        state.writing = false;
        if !state.closed {
            state.due = Some(Instant::now() + RETRY_INTERVAL);
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    // The lists are consistent between any two statements, so that a poisoned lock is still usable.
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl QueueState {
    fn take(&mut self) -> Vec<PendingWrite> {
        let count = self.pending.len().min(MAX_GROUP_WRITES);
        self.pending.drain(..count).collect()
    }
}

impl WriteGroup {
    /// Removes start entries whose caller has gone: those calls were not made. Likewise approvals are not taken then.
    pub(crate) fn drop_abandoned(&mut self) {
        self.pending.retain(|pending_write| {
            let write = &pending_write.write;
            let is_void =
                matches!(write, Write::Begin(_) | Write::Responses(ResponseWrite::ClaimApproval(_)));
            !(is_void && pending_write.reply.is_closed())
        });
    }

    /// Whether a write in the group requires that all previous writes are in the database.
    pub(crate) fn requires_previous_writes(&self) -> bool {
        self.pending.iter().any(|pending_write| {
            matches!(pending_write.write, Write::Settle | Write::MoveIntents | Write::Finish(_))
        })
    }
}

#[cfg(test)]
mod tests;
