//! The journal: that a call which may change something begins, and what came of it, is appended to a file at once, and
//! moved into the database in large groups later. Whoever waits, waits for the append alone.

mod line;
mod replay;
mod segment;
mod waiting;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use toolhub_core::memory::{CallEnd, CallStart, RecordId};
use toolhub_core::ports::StoreError;

pub(super) use replay::replay;
pub(super) use waiting::{Batch, Turn, Waiting, is_new};

use self::segment::Tail;
use self::waiting::Held;
use super::SqliteStore;
use super::owner::Life;
use crate::queue::{Queue, closed};

/// How long a call may wait for room in the journal.
const PATIENCE: Duration = Duration::from_secs(5);

type Reply = oneshot::Sender<Result<(), StoreError>>;

/// Something to append.
enum Job {
    Begin(CallStart, Reply, OwnedSemaphorePermit),
    /// Somebody waits for it, or nobody.
    End(CallEnd, Option<Reply>),
    /// Nothing: is answered once all that was handed over before is appended.
    Settle(Reply),
}

#[derive(Default)]
struct Jobs {
    lines: Vec<u8>,
    jobs: Vec<Job>,
    closed: bool,
}

/// What is shared with the thread that appends.
struct Shared {
    jobs: Mutex<Jobs>,
    bell: Condvar,
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // A poisoned lock guards plain lists, which are whole between any two statements.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A journal that is written by a thread of its own.
pub(super) struct Journal {
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<Life>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Starts the journal of a store, whose writer is woken when there is something to move.
    pub(super) fn start(store: &SqliteStore) -> io::Result<Self> {
        let shared = Arc::new(Shared { jobs: Mutex::default(), bell: Condvar::new() });
        let waiting = Arc::clone(&store.waiting);
        let work = Appending {
            shared: Arc::clone(&shared),
            waiting: Arc::clone(&waiting),
            queue: Arc::clone(&store.queue),
            tail: Tail::new(&store.folder, store.owner, store.options.durability),
            life: Life::new(&store.folder, store.owner),
        };
        let thread = super::spawn("store-journal", move || work.run())?;
        Ok(Self { shared, waiting, thread: Some(thread) })
    }

    /// Writes that a call begins, and waits until that outlives the program.
    pub(super) async fn begin(&self, start: CallStart) -> Result<(), StoreError> {
        let room = Arc::clone(&self.waiting.room).acquire_owned();
        let room = tokio::time::timeout(PATIENCE, room)
            .await
            .map_err(|_| StoreError("too many calls wait to be written".to_owned()))?
            .map_err(|_| closed())?;
        let line = line::begun(&start);
        let (reply, answer) = oneshot::channel();
        self.hand_over(&line, Job::Begin(start, reply, room))?;
        answer.await.map_err(|_| closed())?
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
        let mut jobs = self.shared.jobs();
        if jobs.closed {
            return Err(closed());
        }
        jobs.lines.extend_from_slice(line);
        jobs.jobs.push(job);
        let first = jobs.jobs.len() == 1;
        drop(jobs);
        if first {
            self.shared.bell.notify_one();
        }
        Ok(())
    }

    /// Takes no more in and waits until all is appended. What is given back shows that this store lives.
    pub(super) fn close(&mut self) -> Option<Life> {
        self.shared.jobs().closed = true;
        self.shared.bell.notify_one();
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// The work of the thread that appends.
struct Appending {
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    queue: Arc<Queue>,
    tail: Tail,
    life: Life,
}

impl Appending {
    fn run(mut self) -> Life {
        let (mut lines, mut jobs) = (Vec::new(), Vec::new());
        loop {
            {
                let mut state = self.shared.jobs();
                while state.jobs.is_empty() {
                    if state.closed {
                        return self.life;
                    }
                    state = self.shared.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::swap(&mut state.lines, &mut lines);
                std::mem::swap(&mut state.jobs, &mut jobs);
            }
            self.append(&lines, &mut jobs);
            lines.clear();
            // One long result must not hold its memory for ever.
            lines.shrink_to(1 << 20);
        }
    }

    fn append(&mut self, lines: &[u8], jobs: &mut Vec<Job>) {
        let segment = match self.life.show().and_then(|()| self.tail.append(lines)) {
            Ok(segment) => segment,
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

fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => super::DISK_FULL.to_owned(),
        _ => format!("the journal could not be written: {error}"),
    }
}
