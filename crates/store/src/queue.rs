//! What waits to be written, and when it is its turn: what somebody waits for at once, all that is there in one
//! group; what nobody waits for at leisure. How it is written is each database's own way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use toolhub_core::BoxFuture;
use toolhub_core::memory::{CallEnd, CallStart};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;

use crate::recorder::{Recorded, Recorder};
use crate::write::Write;

/// Writes that may wait; who comes later waits for room.
const WRITES: usize = 1_024;
/// Writes that are done in one group.
const GROUP: usize = 256;
/// How long finished calls are gathered before they are written.
const GATHER: Duration = Duration::from_millis(50);
/// How long after a failure finished calls are written again.
const RETRY: Duration = Duration::from_secs(1);

/// A write with somebody who waits for it.
#[derive(Debug)]
pub(crate) struct Urgent {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<Result<bool, StoreError>>,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    pub(crate) since: Instant,
    _room: OwnedSemaphorePermit,
}

/// What is written in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) urgent: Vec<Urgent>,
    pub(crate) recorded: Recorded,
}

/// What the writer should do.
#[derive(Debug)]
pub(crate) enum Next {
    /// Write this.
    Write(Group),
    /// Wait for the bell, or until that moment.
    Wait(Option<Instant>),
    /// The store is closed and everything is written.
    End,
}

#[derive(Debug, Default)]
struct State {
    urgent: VecDeque<Urgent>,
    /// When finished calls are written; `None` while there are none.
    due: Option<Instant>,
    /// Finished calls were taken out and are not yet written.
    writing: bool,
    closed: bool,
}

/// How the writer is woken.
#[derive(Debug)]
pub(crate) enum Bell {
    /// A thread that parks.
    Thread(OnceLock<Thread>),
    /// A task that waits.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    Task(Notify),
}

impl Bell {
    fn ring(&self) {
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

/// What waits to be written.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    room: Arc<Semaphore>,
    recorder: Recorder,
    pub(crate) bell: Bell,
}

/// The writer is gone.
pub(crate) fn closed() -> StoreError {
    StoreError("it is closed".into())
}

impl Queue {
    pub(crate) fn new(bell: Bell, recorder: Recorder) -> Self {
        Self { state: Mutex::default(), room: Arc::new(Semaphore::new(WRITES)), recorder, bell }
    }

    /// Hands over a write and waits until it is done. The writer answers in time, or says why it cannot.
    pub(crate) async fn write(&self, write: Write) -> Result<bool, StoreError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| closed())?;
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state();
            if state.closed {
                return Err(closed());
            }
            state.urgent.push_back(Urgent { write, reply, since: Instant::now(), _room: room });
        }
        self.bell.ring();
        answer.await.map_err(|_| closed())?
    }

    /// Records a finished call. It survives the end of the process from now on, if the store has a journal.
    pub(crate) fn record(&self, start: &CallStart, end: &CallEnd) {
        self.gather_if(self.recorder.add(start, end));
    }

    /// Whether the details of a call that changed nothing and succeeded are stored.
    pub(crate) fn wants_details(&self) -> bool {
        self.recorder.wants_details()
    }

    /// Waits while the database is behind by too much; `None` if it is not.
    pub(crate) fn wait_for_room(&self) -> Option<BoxFuture<'_, ()>> {
        self.recorder.wait_for_room()
    }

    /// Counts a call whose details are left out.
    pub(crate) fn count(&self, attempts: &[AttemptRecord], at: SystemTime) {
        self.gather_if(self.recorder.count(attempts, at));
    }

    /// Counts a call whose details the database does not take.
    pub(crate) fn count_lost(&self, start: &CallStart, end: &CallEnd) {
        self.gather_if(self.recorder.count_lost(start, end));
    }

    /// Wakes the writer for gathered calls, if `first`: it may be asleep without a deadline.
    fn gather_if(&self, first: bool) {
        if !first {
            return;
        }
        let mut state = self.state();
        // An earlier moment is kept: it may be that of a retry.
        if state.due.is_none() {
            state.due = Some(Instant::now() + GATHER);
            drop(state);
            self.bell.ring();
        }
    }

    /// Waits until the calls that were recorded are written, where there are any.
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

    /// Wakes the writer: there is something to do that does not stand here.
    pub(crate) fn wake(&self) {
        self.bell.ring();
    }

    /// How many calls' details were left out.
    pub(crate) fn lost(&self) -> u64 {
        self.recorder.left_out()
    }

    /// No more is taken in; what is there is still written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.recorder.close();
        self.room.close();
        self.bell.ring();
    }

    /// Whether no more is taken in.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// What the writer should do now.
    pub(crate) fn next(&self, now: Instant) -> Next {
        let all = {
            let mut state = self.state();
            let settle = state.urgent.iter().take(GROUP).any(|one| matches!(one.write, Write::Settle));
            let all = settle || state.closed;
            if !all && state.due.is_none_or(|due| due > now) {
                return match state.urgent.is_empty() {
                    true => Next::Wait(state.due),
                    false => Next::Write(Group { urgent: state.take(), ..Group::default() }),
                };
            }
            // Before the workers are sealed: a call that is added to a sealed worker makes it due again.
            (state.due, state.writing) = (None, true);
            all
        };
        self.recorder.seal();
        let recorded = self.recorder.take(all);
        let mut state = self.state();
        if self.recorder.has_sealed() {
            state.due.get_or_insert(now);
        }
        state.writing = !recorded.is_empty();
        let group = Group { urgent: state.take(), recorded };
        match group.urgent.is_empty() && group.recorded.is_empty() {
            false => Next::Write(group),
            true if state.closed => Next::End,
            true => Next::Wait(state.due),
        }
    }

    /// The database has what was recorded.
    pub(crate) fn written(&self, recorded: &Recorded) {
        self.recorder.written(recorded);
        self.state().writing = false;
    }

    /// Takes back what the database did not take now, to be written later. A store that is being closed tries no more:
    /// the next store replays the journals.
    pub(crate) fn put_back(&self, recorded: Recorded) {
        let mut state = self.state();
        state.writing = false;
        if state.closed {
            self.recorder.leave(recorded);
        } else {
            state.due = Some(Instant::now() + RETRY);
            self.recorder.put_back(recorded);
        }
    }

    /// Takes back what the database will never take: its details are lost, but it will be counted.
    pub(crate) fn only_count(&self, recorded: Recorded) {
        self.recorder.only_count(recorded);
        let mut state = self.state();
        state.writing = false;
        if !state.closed {
            state.due = Some(Instant::now() + RETRY);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock guards plain lists, which are whole between any two statements.
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn take(&mut self) -> Vec<Urgent> {
        let count = self.urgent.len().min(GROUP);
        self.urgent.drain(..count).collect()
    }
}

impl Group {
    /// Takes out the beginnings that nobody waits for any more: those calls were not made.
    pub(crate) fn drop_abandoned(&mut self) {
        self.urgent.retain(|one| !(matches!(one.write, Write::Begin(_)) && one.reply.is_closed()));
    }

    /// Whether somebody in it counts on all that was handed over before being in the database.
    pub(crate) fn looks_back(&self) -> bool {
        self.urgent
            .iter()
            .any(|one| matches!(one.write, Write::Settle | Write::MoveIntents | Write::Finish(_)))
    }
}

#[cfg(test)]
mod tests;
