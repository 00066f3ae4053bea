//! The journal: that a call which may change something begins, and what came of it, is appended to a file at once, and
//! moved into the database in large groups later. Whoever waits, waits for the append alone; and where an append need not
//! outlive a power cut, it is quicker done by the caller than handed to a thread.

mod line;
mod replay;
#[cfg(test)]
mod tests;
mod waiting;

use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use toolhub_core::lang::Text;
use toolhub_core::memory::{CallEnd, CallStart, RecordId};
use toolhub_core::ports::StoreError;

pub(super) use replay::replay;
pub(super) use waiting::{Batch, Turn, Waiting, is_new};

use self::waiting::Held;
use super::SqliteStore;
use crate::journal::{Kind, Tail};
use crate::options::Durability;
use crate::queue::{Queue, closed};

/// How long a call may wait for room in the journal.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many groups a caller appends for others that come meanwhile.
const ROUNDS: usize = 3;

type Reply = oneshot::Sender<Result<(), StoreError>>;

/// Something to append.
enum Job {
    Begin(CallStart, Reply, OwnedSemaphorePermit),
    /// Somebody waits for it, or nobody.
    End(CallEnd, Option<Reply>),
    /// Nothing: is answered once all that was handed over before is appended.
    Settle(Reply),
}

/// What is appended at once.
#[derive(Default)]
struct Work {
    lines: Vec<u8>,
    jobs: Vec<Job>,
}

struct State {
    work: Work,
    /// Whoever takes it appends; it is not there while somebody does.
    appender: Option<Appender>,
    closed: bool,
}

/// What is shared with the thread that appends.
struct Shared {
    state: Mutex<State>,
    bell: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock guards plain lists, which are whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of the thread that appends, until the journal is closed and all is appended.
    fn append_on(&self) {
        let mut spare = Work::default();
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
                    state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            appender.append(&mut spare);
            self.state().appender = Some(appender);
        }
    }

    /// Appends what is there and what comes meanwhile, for a caller that has `appender`; the thread does the rest.
    fn append_now(&self, mut appender: Appender, mut work: Work) {
        for _ in 0..ROUNDS {
            appender.append(&mut work);
            let mut state = self.state();
            if state.work.jobs.is_empty() {
                // Its memory is used again.
                state.work = work;
                state.appender = Some(appender);
                if state.closed {
                    self.bell.notify_one();
                }
                return;
            }
            std::mem::swap(&mut state.work, &mut work);
        }
        appender.append(&mut work);
        self.state().appender = Some(appender);
        self.bell.notify_one();
    }
}

/// A journal that is written by a thread of its own.
pub(super) struct Journal {
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    /// Whether callers append what they hand over.
    inline: bool,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Starts the journal of a store, whose writer is woken when there is something to move.
    pub(super) fn start(store: &SqliteStore) -> io::Result<Self> {
        let waiting = Arc::clone(&store.waiting);
        let appender = Appender {
            waiting: Arc::clone(&waiting),
            queue: Arc::clone(&store.queue),
            tail: Tail::new(Arc::clone(&store.journals), Kind::Intents, store.options.durability),
        };
        let state = State { work: Work::default(), appender: Some(appender), closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), bell: Condvar::new() });
        let appending = Arc::clone(&shared);
        let thread = super::spawn("store-journal", move || appending.append_on())?;
        let inline = matches!(store.options.durability, Durability::Program);
        Ok(Self { shared, waiting, inline, thread: Some(thread) })
    }

    /// Writes that a call begins, and waits until that outlives the program.
    pub(super) async fn begin(&self, start: CallStart) -> Result<(), StoreError> {
        let room = Arc::clone(&self.waiting.room).acquire_owned();
        let room = tokio::time::timeout(PATIENCE, room)
            .await
            .map_err(|_| StoreError("too many calls wait to be written".into()))?
            .map_err(|_| closed())?;
        let line = line::begun(&start);
        let (reply, answer) = oneshot::channel();
        let mut unclaimed = Unclaimed { waiting: &self.waiting, record: Some(start.record.clone()), answer };
        self.hand_over(&line, Job::Begin(start, reply, room))?;
        let answer = (&mut unclaimed.answer).await;
        unclaimed.record = None;
        answer.map_err(|_| closed())?
    }

    /// Writes what came of a call that was begun here, and waits until that outlives the program; gives it back where
    /// no such call runs.
    pub(super) async fn finish(&self, end: CallEnd) -> Result<Result<(), StoreError>, Box<CallEnd>> {
        if !self.waiting.runs(&end.record) {
            return Err(Box::new(end));
        }
        let line = line::ended(&end);
        let (reply, answer) = oneshot::channel();
        Ok(match self.hand_over(&line, Job::End(end, Some(reply))) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(closed())),
            Err(error) => Err(error),
        })
    }

    /// Writes what came of a call that was begun here, and lets nobody wait; gives it back where no such call runs.
    pub(super) fn note(&self, end: CallEnd) -> Result<(), Box<CallEnd>> {
        if !self.waiting.runs(&end.record) {
            return Err(Box::new(end));
        }
        let line = line::ended(&end);
        // Where the journal is closed, nobody knows what became of the call, and so it is told.
        let _ = self.hand_over(&line, Job::End(end, None));
        Ok(())
    }

    /// Waits until all that was handed over is appended.
    pub(super) async fn settle(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(&[], Job::Settle(reply))?;
        answer.await.map_err(|_| closed())?
    }

    /// Forgets a call whose end the database has.
    pub(super) fn forget(&self, record: &RecordId) {
        self.waiting.withdraw(record);
    }

    fn hand_over(&self, line: &[u8], job: Job) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        if state.closed {
            return Err(closed());
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
        // Who appends now looks for more when that is done.
        let ring = state.work.jobs.len() == 1 && state.appender.is_some();
        drop(state);
        if ring {
            self.shared.bell.notify_one();
        }
        Ok(())
    }

    /// Takes no more in and waits until all is appended.
    pub(super) fn close(&mut self) {
        self.shared.state().closed = true;
        self.shared.bell.notify_one();
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

/// A beginning whose answer its caller has not received. Withdraws it if the caller stops waiting: the call is not made
/// then. An answer that could not be sent any more is withdrawn by the appender.
struct Unclaimed<'a> {
    waiting: &'a Waiting,
    /// `None` once the answer is received.
    record: Option<RecordId>,
    answer: oneshot::Receiver<Result<(), StoreError>>,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        // From here on the appender cannot send: whatever it sent before is in `waiting`.
        self.answer.close();
        if let Some(record) = &self.record {
            self.waiting.withdraw(record);
        }
    }
}

/// Appends, and says so to whoever waits.
struct Appender {
    waiting: Arc<Waiting>,
    queue: Arc<Queue>,
    tail: Tail,
}

impl Appender {
    /// Appends all of it, and leaves it empty.
    fn append(&mut self, work: &mut Work) {
        self.append_lines(&work.lines, &mut work.jobs);
        work.lines.clear();
        // One long result must not hold its memory for ever.
        work.lines.shrink_to(1 << 20);
    }

    fn append_lines(&mut self, lines: &[u8], jobs: &mut Vec<Job>) {
        if self.tail.is_long() {
            self.tail.rotate();
        }
        let segment = match self.tail.append(&mut [IoSlice::new(lines)]) {
            Ok(range) => range.segment,
            Err(error) => {
                let why = told(&error);
                for job in jobs.drain(..) {
                    let reply = match job {
                        Job::Begin(_, reply, _) | Job::Settle(reply) => Some(reply),
                        Job::End(end, reply) => {
                            // The database may take it yet.
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
                Job::Begin(start, reply, room) => {
                    let record = start.record.clone();
                    wake |= self.waiting.begin(start, Held { segment, _room: Some(room) });
                    if reply.send(Ok(())).is_err() {
                        // Whoever wanted to make the call is gone: it will not be made.
                        self.waiting.withdraw(&record);
                    }
                }
                Job::Settle(reply) => drop(reply.send(Ok(()))),
                Job::End(end, reply) => {
                    wake |= self.waiting.end(end, Some(Held { segment, _room: None })).unwrap_or_default();
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

fn told(error: &io::Error) -> Text {
    match error.kind() {
        io::ErrorKind::StorageFull => super::disk_full(),
        _ => Text::new(
            format!("the journal could not be written: {error}"),
            format!("无法写入日志文件：{error}"),
        ),
    }
}
