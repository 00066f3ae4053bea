//! What stands in the journal and not yet in the database, and when it is its turn to be moved there.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolhub_core::lang::Text;
use toolhub_core::memory::{CallEnd, CallStart, RecordId};
use toolhub_core::ports::StoreError;

use crate::journal::Segment;
use crate::write::Note;

/// Calls that may stand in the journal alone; who comes later waits for room.
const ROOM: usize = 16_384;
/// How long calls are gathered: one that ends meanwhile is written once, whole.
const GATHER: Duration = Duration::from_millis(20);
/// So many that have ended are moved at once.
const MANY: usize = 1_024;
/// How long after a failure it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What ties an entry to the journal: its file, and its share of the room.
#[derive(Debug)]
pub(in crate::sqlite) struct Held {
    pub(super) segment: Arc<Segment>,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// A call that runs.
#[derive(Debug)]
struct Running {
    start: CallStart,
    since: Instant,
    /// Until the database has it.
    held: Option<Held>,
}

/// What is moved into the database in one transaction.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Batch {
    pub(in crate::sqlite) begun: Vec<(CallStart, Held)>,
    pub(in crate::sqlite) ended: Vec<(Note, Vec<Held>)>,
}

/// Whether the database has nothing yet of a call that ended: its beginning is held too.
pub(in crate::sqlite) fn is_new(held: &[Held]) -> bool {
    held.len() > 1
}

impl Batch {
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.ended.is_empty()
    }

    pub(in crate::sqlite) fn len(&self) -> usize {
        self.begun.len() + self.ended.len()
    }

    /// The same, each alone.
    pub(in crate::sqlite) fn singly(self) -> impl Iterator<Item = Self> {
        let begun = self.begun.into_iter().map(|one| Self { begun: vec![one], ended: Vec::new() });
        begun.chain(self.ended.into_iter().map(|one| Self { begun: Vec::new(), ended: vec![one] }))
    }
}

/// What the writer should do about the journal.
#[derive(Debug)]
pub(in crate::sqlite) enum Turn {
    Move(Batch),
    /// Nothing, until that moment.
    Wait(Option<Instant>),
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<RecordId, Running>,
    /// Those of them that the database may not have yet, oldest first.
    begun: VecDeque<RecordId>,
    ended: VecDeque<(Note, Vec<Held>)>,
    /// When the first of those that ended did.
    ended_since: Option<Instant>,
    /// Something was taken out and is not yet in the database.
    moving: bool,
    /// The last move failed: why, and when it is tried again.
    stuck: Option<(Text, Instant)>,
}

/// What waits to be moved.
#[derive(Debug)]
pub(in crate::sqlite) struct Waiting {
    state: Mutex<State>,
    pub(super) room: Arc<Semaphore>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { state: Mutex::default(), room: Arc::new(Semaphore::new(ROOM)) }
    }
}

impl Waiting {
    /// Why nothing can be moved at present: what is begun now might never be seen.
    pub(in crate::sqlite) fn stuck(&self) -> Option<StoreError> {
        self.state().stuck.as_ref().map(|(why, _)| StoreError(why.clone()))
    }

    /// Takes in a call that begins; whether it is the first in a while, so that the writer must be woken.
    pub(super) fn begin(&self, start: CallStart, held: Held) -> bool {
        let mut state = self.state();
        let first = state.begun.is_empty() && state.ended.is_empty();
        state.begun.push_back(start.record.clone());
        let running = Running { since: Instant::now(), held: Some(held), start };
        state.running.insert(running.start.record.clone(), running);
        first
    }

    /// Forgets a call that nobody will make.
    pub(super) fn withdraw(&self, record: &RecordId) {
        self.state().running.remove(record);
    }

    /// Whether that call runs as far as the journal knows.
    pub(super) fn runs(&self, record: &RecordId) -> bool {
        self.state().running.contains_key(record)
    }

    /// Takes in the end of a call, with where it stands in the journal, if it does; whether the writer must be woken.
    /// `None` where no such call runs.
    pub(super) fn end(&self, end: CallEnd, held: Option<Held>) -> Option<bool> {
        let mut state = self.state();
        let running = state.running.remove(&end.record)?;
        let first = state.ended.is_empty();
        let held = running.held.into_iter().chain(held).collect();
        state.ended.push_back((Note { start: running.start, end }, held));
        state.ended_since.get_or_insert_with(Instant::now);
        Some(first || state.ended.len() == MANY)
    }

    /// Whether the database has all there is.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        let state = self.state();
        !state.moving
            && state.ended.is_empty()
            && state.begun.iter().all(|record| !state.running.contains_key(record))
    }

    /// What the writer should do now.
    pub(in crate::sqlite) fn next(&self, now: Instant) -> Turn {
        let mut state = self.state();
        if let Some((_, again)) = &state.stuck
            && *again > now
        {
            return Turn::Wait(Some(*again));
        }
        while state.begun.front().is_some_and(|record| !state.running.contains_key(record)) {
            state.begun.pop_front();
        }
        let oldest = state.begun.front().and_then(|record| state.running.get(record)).map(|one| one.since);
        let due = oldest.into_iter().chain(state.ended_since).min().map(|since| since + GATHER);
        match due {
            None => Turn::Wait(None),
            Some(due) if due > now && state.ended.len() < MANY => Turn::Wait(Some(due)),
            Some(_) => Turn::Move(state.take(now.checked_sub(GATHER).unwrap_or(now))),
        }
    }

    /// All there is, up to a batch; whatever happened before.
    pub(in crate::sqlite) fn all(&self) -> Batch {
        self.state().take(Instant::now())
    }

    /// Says that a batch is in the database.
    pub(in crate::sqlite) fn moved(&self) {
        let mut state = self.state();
        (state.stuck, state.moving) = (None, false);
    }

    /// Takes back what could not be moved.
    pub(in crate::sqlite) fn put_back(&self, batch: Batch, why: Text) {
        let mut state = self.state();
        let again = Instant::now() + RETRY;
        (state.stuck, state.moving) = (Some((why, again)), false);
        for (start, held) in batch.begun.into_iter().rev() {
            // It may have ended meanwhile; then its end says all.
            let record = start.record.clone();
            if let Some(running) = state.running.get_mut(&record) {
                running.held = Some(held);
                state.begun.push_front(record);
            } else if let Some((_, holds)) =
                state.ended.iter_mut().find(|(note, _)| note.start.record == record)
            {
                holds.push(held);
            }
        }
        for ended in batch.ended.into_iter().rev() {
            state.ended.push_front(ended);
        }
        if !state.ended.is_empty() {
            state.ended_since.get_or_insert(again);
        }
    }

    /// The files of what could not be moved stay: nobody will try again here.
    pub(in crate::sqlite) fn leave(&self) {
        let state = self.state();
        let running = state.running.values().flat_map(|running| &running.held);
        let ended = state.ended.iter().flat_map(|(_, held)| held);
        running.chain(ended).for_each(|held| held.segment.leave());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock guards plain lists, which are whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes what ended, and what began before `before` and still runs.
    fn take(&mut self, before: Instant) -> Batch {
        let ended: Vec<_> = self.ended.drain(..self.ended.len().min(MANY)).collect();
        self.ended_since = if self.ended.is_empty() { None } else { self.ended_since };
        let mut begun = Vec::new();
        while begun.len() < MANY
            && let Some(record) = self.begun.front()
        {
            match self.running.get_mut(record) {
                Some(running) if running.since > before => break,
                Some(running) => {
                    begun.extend(mem::take(&mut running.held).map(|held| (running.start.clone(), held)));
                }
                None => {}
            }
            self.begun.pop_front();
        }
        let batch = Batch { begun, ended };
        self.moving |= !batch.is_empty();
        batch
    }
}
