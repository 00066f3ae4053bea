//! Journal entries that the database lacks, and the schedule for moving them.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolhub_core::call_log::{CallEnd, CallStart, RecordId};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;

use crate::journal::Segment;
use crate::write::FinishedCall;

/// Maximum number of calls that are only in the journal; further calls wait for room.
const MAX_JOURNALED_CALLS: usize = 16_384;
/// How long calls are gathered: a call that ends meanwhile is written once, as a whole.
const GATHER_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of calls in one batch.
const MAX_BATCH_CALLS: usize = 1_024;
/// Pause after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Resources of an entry: its journal file, and its semaphore permit.
#[derive(Debug)]
pub(in crate::sqlite) struct EntryResources {
    pub(super) segment: Arc<Segment>,
    pub(super) _capacity: Option<OwnedSemaphorePermit>,
}

/// A running call.
#[derive(Debug)]
struct RunningCall {
    start: CallStart,
    since: Instant,
    /// `Some` until the database contains the start.
    held: Option<EntryResources>,
}

/// Entries that are moved into the database in one transaction.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Batch {
    pub(in crate::sqlite) begun: Vec<(CallStart, EntryResources)>,
    pub(in crate::sqlite) ended: Vec<(FinishedCall, Vec<EntryResources>)>,
}

/// Whether the database has no entry of an ended call yet: its start is held too.
pub(in crate::sqlite) fn is_new(held: &[EntryResources]) -> bool {
    held.len() > 1
}

impl Batch {
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.ended.is_empty()
    }

    pub(in crate::sqlite) fn len(&self) -> usize {
        self.begun.len() + self.ended.len()
    }

    /// Splits the batch into single entries.
    pub(in crate::sqlite) fn into_single_entries(self) -> impl Iterator<Item = Self> {
        let begun = self.begun.into_iter().map(|entry| Self { begun: vec![entry], ended: Vec::new() });
        begun.chain(self.ended.into_iter().map(|entry| Self { begun: Vec::new(), ended: vec![entry] }))
    }
}

/// The next action of the writer for the journal.
#[derive(Debug)]
pub(in crate::sqlite) enum MoveStep {
    Move(Batch),
    /// Nothing to do until this time.
    Wait(Option<Instant>),
}

#[derive(Debug, Default)]
struct PendingEntriesState {
    running: HashMap<RecordId, RunningCall>,
    /// Running calls that the database may lack, oldest first.
    begun: VecDeque<RecordId>,
    ended: VecDeque<(FinishedCall, Vec<EntryResources>)>,
    /// When the first of `ended` ended.
    ended_since: Option<Instant>,
    /// A batch was taken and is not yet in the database.
    moving: bool,
    /// The last move failed: the reason, and the time of the next attempt.
    move_error: Option<(LocalizedText, Instant)>,
}

/// Entries to be moved.
#[derive(Debug)]
pub(in crate::sqlite) struct PendingEntries {
    state: Mutex<PendingEntriesState>,
    pub(super) capacity: Arc<Semaphore>,
}

impl Default for PendingEntries {
    fn default() -> Self {
        Self { state: Mutex::default(), capacity: Arc::new(Semaphore::new(MAX_JOURNALED_CALLS)) }
    }
}

impl PendingEntries {
    /// The reason why entries currently cannot be moved; new starts might then never reach the database.
    pub(in crate::sqlite) fn move_error(&self) -> Option<StoreError> {
        self.state().move_error.as_ref().map(|(why, _)| StoreError(why.clone()))
    }

    /// Adds a started call. Returns whether it is the first entry, so that the writer must be woken.
    pub(super) fn begin(&self, start: CallStart, held: EntryResources) -> bool {
        let mut state = self.state();
        let first = state.begun.is_empty() && state.ended.is_empty();
        state.begun.push_back(start.record.clone());
        let running = RunningCall { since: Instant::now(), held: Some(held), start };
        state.running.insert(running.start.record.clone(), running);
        first
    }

    /// Removes a call that will not be made.
    pub(super) fn withdraw(&self, record: &RecordId) {
        self.state().running.remove(record);
    }

    /// Whether the journal has this call as running.
    pub(super) fn runs(&self, record: &RecordId) -> bool {
        self.state().running.contains_key(record)
    }

    /// Adds the end of a call, with its journal file if it was appended. Returns whether the writer must be woken;
    /// `None` if no such call is running.
    pub(super) fn end(&self, end: CallEnd, held: Option<EntryResources>) -> Option<bool> {
        let mut state = self.state();
        let running = state.running.remove(&end.record)?;
        let first = state.ended.is_empty();
        let held = running.held.into_iter().chain(held).collect();
        state.ended.push_back((FinishedCall { start: running.start, end }, held));
        state.ended_since.get_or_insert_with(Instant::now);
        Some(first || state.ended.len() == MAX_BATCH_CALLS)
    }

    /// Whether the database contains all entries.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        let state = self.state();
        !state.moving
            && state.ended.is_empty()
            && state.begun.iter().all(|record| !state.running.contains_key(record))
    }

    /// The next action of the writer.
    pub(in crate::sqlite) fn next(&self, now: Instant) -> MoveStep {
        let mut state = self.state();
        if let Some((_, again)) = &state.move_error
            && *again > now
        {
            return MoveStep::Wait(Some(*again));
        }
        while state.begun.front().is_some_and(|record| !state.running.contains_key(record)) {
            state.begun.pop_front();
        }
        let oldest =
            state.begun.front().and_then(|record| state.running.get(record)).map(|entry| entry.since);
        let due = oldest.into_iter().chain(state.ended_since).min().map(|since| since + GATHER_INTERVAL);
        match due {
            None => MoveStep::Wait(None),
            Some(due) if due > now && state.ended.len() < MAX_BATCH_CALLS => MoveStep::Wait(Some(due)),
            Some(_) => MoveStep::Move(state.take(now.checked_sub(GATHER_INTERVAL).unwrap_or(now))),
        }
    }

    /// The next batch, regardless of gathering time and failures.
    pub(in crate::sqlite) fn all(&self) -> Batch {
        self.state().take(Instant::now())
    }

    /// Confirms that a batch is in the database.
    pub(in crate::sqlite) fn moved(&self) {
        let mut state = self.state();
        (state.move_error, state.moving) = (None, false);
    }

    /// Returns a batch that could not be moved.
    pub(in crate::sqlite) fn put_back(&self, batch: Batch, why: LocalizedText) {
        let mut state = self.state();
        let again = Instant::now() + RETRY_INTERVAL;
        (state.move_error, state.moving) = (Some((why, again)), false);
        for (start, held) in batch.begun.into_iter().rev() {
            // If the call has ended meanwhile, its end entry contains everything.
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

    /// Keeps the journal files of entries that could not be moved, for the next store.
    pub(in crate::sqlite) fn keep_for_replay(&self) {
        let state = self.state();
        let running = state.running.values().flat_map(|running| &running.held);
        let ended = state.ended.iter().flat_map(|(_, held)| held);
        running.chain(ended).for_each(|held| held.segment.keep_for_replay());
    }

    fn state(&self) -> MutexGuard<'_, PendingEntriesState> {
        // The lists are consistent between any two statements, so that a poisoned lock is still usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingEntriesState {
    /// Takes ended calls, and running calls that started before `before`.
    fn take(&mut self, before: Instant) -> Batch {
        let ended: Vec<_> = self.ended.drain(..self.ended.len().min(MAX_BATCH_CALLS)).collect();
        self.ended_since = if self.ended.is_empty() { None } else { self.ended_since };
        let mut begun = Vec::new();
        while begun.len() < MAX_BATCH_CALLS
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
