//! The intent journal: the start and the end of a call that may change state are appended to a file immediately, and
//! moved into the database later in large groups. Callers wait only for the append. If an append needs no fsync, the
//! caller performs it, which is faster than handing it to a thread.

mod line;
mod pending_entries;
mod replay;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use toolhub_core::call_log::{CallEnd, CallStart, RecordId};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;

pub(super) use pending_entries::{Batch, MoveStep, PendingEntries, is_new};
pub(super) use replay::replay;

use self::pending_entries::EntryResources;
use super::SqliteStore;
use crate::journal::{JournalKind, Tail};
use crate::options::Durability;
use crate::queue::{Queue, closed_error};

/// Maximum time that a call waits for room in the journal.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of groups that a caller appends on behalf of others.
const MAX_APPEND_ROUNDS: usize = 3;

type AppendReply = oneshot::Sender<Result<(), StoreError>>;

/// An entry to append.
enum AppendJob {
    Begin(CallStart, AppendReply, OwnedSemaphorePermit),
    /// With the channel of the waiting caller, if any.
    End(CallEnd, Option<AppendReply>),
    /// No entry: is answered once all previous entries are appended.
    Settle(AppendReply),
}

/// Entries that are appended together.
#[derive(Default)]
struct AppendBatch {
    lines: Vec<u8>,
    jobs: Vec<AppendJob>,
}

struct JournalState {
    work: AppendBatch,
    /// Must be taken to append; `None` while another thread is appending.
    appender: Option<Appender>,
    closed: bool,
}

/// State shared with the appender thread.
struct JournalShared {
    state: Mutex<JournalState>,
    wakeup: Condvar,
}

impl JournalShared {
    fn state(&self) -> MutexGuard<'_, JournalState> {
        // The lists are consistent between any two statements, so that a poisoned lock is still usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of the appender thread: runs until the journal is closed and everything is appended.
    fn append_on(&self) {
        let mut spare = AppendBatch::default();
        loop {
            let mut appender = {
                let mut state = self.state();
                loop {
                    if state.closed && state.work.jobs.is_empty() && state.appender.is_some() {
                        return drop(state.appender.take());
                    }
                    if !state.work.jobs.is_empty()
                        && let Some(appender) = state.appender.take()
                    {
                        std::mem::swap(&mut state.work, &mut spare);
                        break appender;
                    }
                    state = self.wakeup.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            appender.append(&mut spare);
            self.state().appender = Some(appender);
        }
    }

    /// Appends the entries and those that arrive meanwhile, on the caller's thread; the appender thread does the
    /// rest.
    fn append_now(&self, mut appender: Appender, mut work: AppendBatch) {
        for _ in 0..MAX_APPEND_ROUNDS {
            appender.append(&mut work);
            let mut state = self.state();
            if state.work.jobs.is_empty() {
                // Reuses its memory.
                state.work = work;
                state.appender = Some(appender);
                if state.closed {
                    self.wakeup.notify_one();
                }
                return;
            }
            std::mem::swap(&mut state.work, &mut work);
        }
        appender.append(&mut work);
        self.state().appender = Some(appender);
        self.wakeup.notify_one();
    }
}

/// An intent journal with its appender thread.
pub(super) struct Journal {
    shared: Arc<JournalShared>,
    waiting: Arc<PendingEntries>,
    /// Whether callers append their own entries.
    inline: bool,
    /// Whether the calls belong in the audit log.
    audit: bool,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Starts the journal of a store. The store's writer is woken when there are entries to move.
    pub(super) fn start(store: &SqliteStore) -> io::Result<Self> {
        let waiting = Arc::clone(&store.waiting);
        let appender = Appender {
            waiting: Arc::clone(&waiting),
            queue: Arc::clone(&store.queue),
            tail: Tail::new(Arc::clone(&store.journals), JournalKind::Intents, store.options.durability),
        };
        let state = JournalState { work: AppendBatch::default(), appender: Some(appender), closed: false };
        let shared = Arc::new(JournalShared { state: Mutex::new(state), wakeup: Condvar::new() });
        let appending = Arc::clone(&shared);
        let thread = super::spawn("store-journal", move || appending.append_on())?;
        let inline = matches!(store.options.durability, Durability::Program);
        let audit = store.origin().audit;
        Ok(Self { shared, waiting, inline, audit, thread: Some(thread) })
    }

    /// Appends the start of a call, and waits until it survives the end of the process.
    pub(super) async fn begin(&self, start: CallStart) -> Result<(), StoreError> {
        let capacity = Arc::clone(&self.waiting.capacity).acquire_owned();
        let capacity = tokio::time::timeout(CAPACITY_TIMEOUT, capacity)
            .await
            .map_err(|_| StoreError("too many calls wait to be written".into()))?
            .map_err(|_| closed_error())?;
        let line = line::begun(&start, self.audit);
        let (reply, answer) = oneshot::channel();
        let mut unclaimed = Unclaimed { waiting: &self.waiting, record: Some(start.record.clone()), answer };
        self.hand_over(&line, AppendJob::Begin(start, reply, capacity))?;
        let answer = (&mut unclaimed.answer).await;
        unclaimed.record = None;
        answer.map_err(|_| closed_error())?
    }

    /// Appends the end of a call that was started here, and waits until it survives the end of the process. Returns
    /// `Err(end)` if no such call is running.
    pub(super) async fn finish(&self, end: CallEnd) -> Result<Result<(), StoreError>, Box<CallEnd>> {
        if !self.waiting.runs(&end.record) {
            return Err(Box::new(end));
        }
        let line = line::ended(&end);
        let (reply, answer) = oneshot::channel();
        Ok(match self.hand_over(&line, AppendJob::End(end, Some(reply))) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(closed_error())),
            Err(error) => Err(error),
        })
    }

    /// Appends the end of a call that was started here, without waiting. Returns `Err(end)` if no such call is
    /// running.
    pub(super) fn append_end(&self, end: CallEnd) -> Result<(), Box<CallEnd>> {
        if !self.waiting.runs(&end.record) {
            return Err(Box::new(end));
        }
        let line = line::ended(&end);
        // If the journal is closed, the call remains without an end and is reported as `unknown`.
        let _ = self.hand_over(&line, AppendJob::End(end, None));
        Ok(())
    }

    /// Waits until all queued entries are appended.
    pub(super) async fn settle(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(&[], AppendJob::Settle(reply))?;
        answer.await.map_err(|_| closed_error())?
    }

    /// Removes a call whose end is in the database.
    pub(super) fn forget(&self, record: &RecordId) {
        self.waiting.withdraw(record);
    }

    fn hand_over(&self, line: &[u8], job: AppendJob) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        if state.closed {
            return Err(closed_error());
        }
        state.work.lines.extend_from_slice(line);
        state.work.jobs.push(job);
        if self.inline
            && let Some(appender) = state.appender.take()
        {
            let work = std::mem::take(&mut state.work);
            drop(state);
            self.shared.append_now(appender, work);
            return Ok(());
        }
        // A thread that is appending checks for more entries when it is done.
        let ring = state.work.jobs.len() == 1 && state.appender.is_some();
        drop(state);
        if ring {
            self.shared.wakeup.notify_one();
        }
        Ok(())
    }

    /// Rejects new entries and waits until all queued ones are appended.
    pub(super) fn close(&mut self) {
        self.shared.state().closed = true;
        self.shared.wakeup.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

/// A start entry whose reply the caller has not received. Withdraws it if the caller stops waiting, because the call
/// is then not made. If the reply cannot be sent, the appender withdraws the entry.
struct Unclaimed<'a> {
    waiting: &'a PendingEntries,
    /// `None` once the reply is received.
    record: Option<RecordId>,
    answer: oneshot::Receiver<Result<(), StoreError>>,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        // From here on the appender cannot send: an entry that it confirmed before is in `waiting`.
        self.answer.close();
        if let Some(record) = &self.record {
            self.waiting.withdraw(record);
        }
    }
}

/// Appends entries, and replies to waiting callers.
struct Appender {
    waiting: Arc<PendingEntries>,
    queue: Arc<Queue>,
    tail: Tail,
}

impl Appender {
    /// Appends all entries, and clears `work`.
    fn append(&mut self, work: &mut AppendBatch) {
        self.append_lines(&work.lines, &mut work.jobs);
        work.lines.clear();
        // Releases the memory of a single long result.
        work.lines.shrink_to(1 << 20);
    }

    fn append_lines(&mut self, lines: &[u8], jobs: &mut Vec<AppendJob>) {
        if self.tail.is_long() {
            self.tail.rotate();
        }
        let segment = match self.tail.append(&mut [IoSlice::new(lines)]) {
            Ok(range) => range.segment,
            Err(error) => {
                let why = append_error(&error);
                for job in jobs.drain(..) {
                    let reply = match job {
                        AppendJob::Begin(_, reply, _) | AppendJob::Settle(reply) => Some(reply),
                        AppendJob::End(end, reply) => {
                            // The database may still accept it.
                            let _ = self.waiting.end(end, None);
                            reply
                        }
                    };
                    let _ = reply.map(|reply| reply.send(Err(StoreError(why.clone()))));
                }
                return self.queue.wake();
            }
        };
        let mut wake = false;
        for job in jobs.drain(..) {
            let segment = Arc::clone(&segment);
            match job {
                AppendJob::Begin(start, reply, capacity) => {
                    let record = start.record.clone();
                    wake |= self.waiting.begin(start, EntryResources { segment, _capacity: Some(capacity) });
                    if reply.send(Ok(())).is_err() {
                        // The caller has gone, so that the call will not be made.
                        self.waiting.withdraw(&record);
                    }
                }
                AppendJob::Settle(reply) => drop(reply.send(Ok(()))),
                AppendJob::End(end, reply) => {
                    wake |= self
                        .waiting
                        .end(end, Some(EntryResources { segment, _capacity: None }))
                        .unwrap_or_default();
                    if let Some(reply) = reply {
                        let _ = reply.send(Ok(()));
                    }
                }
            }
        }
        if wake {
            self.queue.wake();
        }
    }
}

fn append_error(error: &io::Error) -> LocalizedText {
    match error.kind() {
        io::ErrorKind::StorageFull => super::disk_full(),
        _ => LocalizedText::new(
            format!("the journal could not be written: {error}"),
            format!("无法写入日志文件：{error}"),
        ),
    }
}
