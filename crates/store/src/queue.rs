//! What waits to be written, and when it is its turn: what somebody waits for at once, all that is there in one
//! group; what nobody waits for at leisure. How it is written is each database's own way.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use toolhub_core::lane::PerLane;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;

use crate::counted::Counted;
use crate::write::{Note, Write};

/// Writes that may wait; who comes later waits for room.
const WRITES: usize = 1_024;
/// Writes that are done in one group.
const GROUP: usize = 256;
/// Notes that may wait; what comes later is counted, and its details are left out.
const NOTES: usize = 1_024;
/// What the notes that wait may hold in memory.
const NOTE_BYTES: usize = 16 << 20;
/// Notes that are written in one group while nobody waits for it.
const NOTES_AT_LEISURE: usize = 128;
/// Notes that are written along with what somebody waits for.
const NOTES_ALONG: usize = 32;
/// How long notes are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);
/// After a group of notes, so many times as long as it took belongs to others: under a flood of calls the processor
/// is theirs, and the details of some are left out.
const REST: u32 = 9;
/// The same while details are being left out anyway: what is kept then is a sample, and a smaller one is as good.
const REST_IN_A_FLOOD: u32 = 29;

/// A write with somebody who waits for it.
#[derive(Debug)]
pub(crate) struct Urgent {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<Result<bool, StoreError>>,
    pub(crate) since: Instant,
    _room: OwnedSemaphorePermit,
}

/// What is written in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) urgent: Vec<Urgent>,
    pub(crate) notes: Vec<Note>,
    /// Calls whose details were left out.
    pub(crate) counted: Counted,
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
    notes: VecDeque<Note>,
    note_bytes: usize,
    counted: Counted,
    /// When notes may be written; `None` while there are none.
    due: Option<Instant>,
    /// Until then the processor is left to others.
    rest: Option<Instant>,
    /// Details were left out before the last group was taken.
    flooded: bool,
    /// Notes were taken and are not yet written.
    writing: bool,
    closed: bool,
}

/// How the writer is woken.
#[derive(Debug)]
pub(crate) enum Bell {
    /// A thread that parks.
    Thread(OnceLock<Thread>),
    /// A task that waits.
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

/// Calls of one lane whose details were left out before anything was made ready.
#[derive(Debug, Default)]
struct Passed {
    calls: u64,
    counted: Counted,
}

/// What waits to be written.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    room: Arc<Semaphore>,
    /// No more notes fit; whoever sees this need not make one ready.
    full: AtomicBool,
    /// Not yet with the rest.
    passed: PerLane<Mutex<Passed>>,
    lost: AtomicU64,
    pub(crate) bell: Bell,
}

/// The writer is gone.
pub(crate) fn closed() -> StoreError {
    StoreError("it is closed".to_owned())
}

impl Queue {
    pub(crate) fn new(bell: Bell) -> Self {
        let room = Arc::new(Semaphore::new(WRITES));
        let (full, lost) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { state: Mutex::default(), room, full, passed: PerLane::default(), lost, bell }
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

    /// Hands over a call that nobody waits for.
    pub(crate) fn note(&self, note: Note) {
        let bytes = note.bytes();
        let note = note.apart();
        let mut state = self.state();
        let first = state.due.is_none();
        if state.notes.len() < NOTES && state.note_bytes + bytes <= NOTE_BYTES && !state.closed {
            state.note_bytes += bytes;
            state.notes.push_back(note);
            if state.notes.len() == NOTES {
                self.full.store(true, Ordering::Relaxed);
            }
        } else {
            state.counted.count(&note.end.attempts, note.start.at);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        if first {
            self.begin_gathering(state);
        }
    }

    /// Whether one more note would be kept, as far as can be told in passing.
    pub(crate) fn has_room(&self) -> bool {
        !self.full.load(Ordering::Relaxed)
    }

    /// Counts a call whose details are left out.
    pub(crate) fn count(&self, attempts: &[AttemptRecord], at: SystemTime) {
        let first = {
            let mut passed = lock(self.passed.here());
            let first = passed.calls == 0;
            passed.calls += 1;
            passed.counted.count_tried(attempts, at);
            first
        };
        // Whoever writes takes all that was counted so; only the first has to see to it that somebody will.
        if first {
            let state = self.state();
            if state.due.is_none() {
                self.begin_gathering(state);
            }
        }
    }

    /// Takes over what was counted in passing.
    fn gather_passed(&self, state: &mut State) {
        for passed in self.passed.all() {
            let Passed { calls, counted } = std::mem::take(&mut *lock(passed));
            self.lost.fetch_add(calls, Ordering::Relaxed);
            state.counted.add(counted);
        }
    }

    fn begin_gathering(&self, mut state: MutexGuard<'_, State>) {
        state.due = Some(Instant::now() + GATHER);
        drop(state);
        self.bell.ring();
    }

    /// Waits until the notes that were handed over are written, where there are any.
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
        let passed: u64 = self.passed.all().map(|passed| lock(passed).calls).sum();
        self.lost.load(Ordering::Relaxed) + passed
    }

    /// No more is taken in; what is there is still written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.room.close();
        self.bell.ring();
    }

    /// Whether no more is taken in.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// What the writer should do now.
    pub(crate) fn next(&self, now: Instant) -> Next {
        let mut state = self.state();
        let settle = state.urgent.iter().take(GROUP).any(|one| matches!(one.write, Write::Settle));
        let due = state.due.map(|due| due.max(state.rest.unwrap_or(due)));
        let is_due = due.is_some_and(|due| due <= now);
        let notes = match (state.urgent.is_empty(), settle || state.closed) {
            (_, true) => usize::MAX,
            (false, false) if is_due => NOTES_ALONG,
            (true, false) if is_due => NOTES_AT_LEISURE,
            _ => 0,
        };
        if state.urgent.is_empty() && notes == 0 {
            return Next::Wait(due);
        }
        if state.urgent.is_empty() && state.due.is_none() {
            return Next::End;
        }
        if notes > 0 {
            self.gather_passed(&mut state);
        }
        let group = state.take(notes);
        self.full.store(state.notes.len() >= NOTES, Ordering::Relaxed);
        Next::Write(group)
    }

    /// Says that a group with notes was written, and for how long the processor was used for it.
    pub(crate) fn wrote_notes(&self, now: Instant, took: Duration) {
        let mut state = self.state();
        state.writing = false;
        state.rest = Some(now + took * if state.flooded { REST_IN_A_FLOOD } else { REST });
    }

    /// Takes calls back in that could not be written: their details are lost, but they will be counted.
    pub(crate) fn only_count(&self, notes: &[Note], counted: Counted) {
        let mut state = self.state();
        state.writing = false;
        for note in notes {
            state.counted.count(&note.end.attempts, note.start.at);
        }
        state.counted.add(counted);
        self.lost.fetch_add(notes.len() as u64, Ordering::Relaxed);
        // Not at once: what failed now would fail again. A store that is being closed tries no more.
        state.due = if state.closed { None } else { Some(Instant::now() + RETRY) };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock guards plain lists, which are whole between any two statements.
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long after a failure statistics are written again.
const RETRY: Duration = Duration::from_secs(1);

impl State {
    fn take(&mut self, notes: usize) -> Group {
        let urgent = self.urgent.drain(..self.urgent.len().min(GROUP)).collect();
        if notes == 0 {
            return Group { urgent, ..Group::default() };
        }
        let notes: Vec<Note> = self.notes.drain(..self.notes.len().min(notes)).collect();
        self.note_bytes -= notes.iter().map(Note::bytes).sum::<usize>();
        if self.notes.is_empty() {
            self.due = None;
        }
        let group = Group { urgent, notes, counted: std::mem::take(&mut self.counted) };
        self.flooded = !group.counted.is_empty();
        self.writing = group.has_notes();
        group
    }
}

impl Group {
    /// Takes out the beginnings that nobody waits for any more: those calls were not made.
    pub(crate) fn drop_abandoned(&mut self) {
        self.urgent.retain(|one| !(matches!(one.write, Write::Begin(_)) && one.reply.is_closed()));
    }

    /// Whether somebody in it counts on all that was handed over before being in the database.
    pub(crate) fn looks_back(&self) -> bool {
        self.urgent.iter().any(|one| matches!(one.write, Write::Settle | Write::Finish(_)))
    }

    /// Whether there is anything that nobody waits for.
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.is_empty() || !self.counted.is_empty()
    }
}

#[cfg(test)]
mod tests;
