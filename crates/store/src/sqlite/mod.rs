//! The SQLite store: one thread reads, and another, started with the first write, writes in groups.

mod approvals;
mod audit;
mod audit_history;
mod blocks;
mod calls;
mod conversations;
mod counters;
mod history;
mod housekeeping;
mod journal;
mod migrate;
mod offers;
mod responses;
mod state;
mod statistics;
mod sums;
mod tool_lists;
mod versions;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use tokio::sync::oneshot;
use toolhub_core::BoxFuture;
use toolhub_core::call_log::{CallEnd, CallStart};
use toolhub_core::lang::LocalizedText;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::{HubStore, StoreError};

use crate::audit::Auditor;
use crate::error::OpenError;
use crate::folded_text::folded_contains;
use crate::journal::JournalFolder;
use crate::options::{AuditOptions, Durability, StoreOptions};
use crate::owner::{CallOrigin, OwnerId};
use crate::private_file::{self, PrivateError};
use crate::queue::{Queue, WriterWaker};
use crate::recorder::Recorder;
use crate::rows::Columns;
use crate::write::{Write, WriteAnswer};

/// Capacity of the read queue.
const MAX_QUEUED_READS: usize = 256;
/// Busy timeout: how long another process may hold the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the write-ahead log at which it is checkpointed, in pages of 4 KiB.
const CHECKPOINT_PAGES: i64 = 4_000;
/// Size to which the write-ahead log is truncated after a checkpoint.
const LOG_BYTES: i64 = 64 << 20;
/// Capacity of the prepared statement cache.
const STATEMENTS: usize = 64;
/// Page cache of the read connection, in KiB.
const READ_KIB: i64 = 256;

type ReadJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    reads: Option<SyncSender<ReadJob>>,
    reader: Option<JoinHandle<()>>,
    /// Started by the first write: read-only processes need no second connection.
    writer: Mutex<Option<JoinHandle<()>>>,
    queue: Arc<Queue>,
    /// Started by the first call that may change state.
    journal: OnceLock<journal::Journal>,
    /// Journal entries that the database lacks.
    waiting: Arc<journal::PendingEntries>,
    /// The liveness lock, held until the database contains everything.
    journals: Arc<JournalFolder>,
    owner: OwnerId,
    folder: PathBuf,
    file: PathBuf,
    options: StoreOptions,
    /// `Some` if the calls of this store enter the audit log.
    auditor: Option<Arc<Auditor>>,
}

impl SqliteStore {
    /// Opens `toolhub.db` in `folder`; creates both if necessary.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_with(folder, StoreOptions::default())
    }

    /// Opens the store with `options`.
    pub fn open_with(folder: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        Self::open_as(folder, options, None)
    }

    /// Opens the store with the audit log on.
    pub fn open_with_audit(
        folder: &Path,
        options: StoreOptions,
        audit: &AuditOptions,
    ) -> Result<Self, OpenError> {
        Self::open_as(folder, options, Some(audit))
    }

    fn open_as(
        folder: &Path,
        options: StoreOptions,
        audit: Option<&AuditOptions>,
    ) -> Result<Self, OpenError> {
        // The returned notes are dropped: the hub calls `prepare` first and reports them.
        private_file::prepare(folder).map_err(|error| match error {
            PrivateError::Io { source, .. } => OpenError::Folder { folder: folder.to_owned(), source },
            other => OpenError::Private(other),
        })?;
        let auditor = audit.map(Auditor::open).transpose()?.map(Arc::new);
        let file = folder.join("toolhub.db");
        let mut connection = connect(&file)
            .and_then(|mut connection| migrate::migrate(&mut connection).map(|()| connection))
            .map_err(|error| damaged(error, &file))?;
        let owner = OwnerId::generate();
        // Entries that cannot be moved now are left for the next store.
        let _ = journal::replay(&mut connection, folder, owner, &options.retention);
        // Most data is read once, so that the page cache of the operating system is sufficient.
        let _ = connection.pragma_update(None, "cache_size", -READ_KIB);
        let (reads, queue) = sync_channel::<ReadJob>(MAX_QUEUED_READS);
        let work = move || {
            for read in queue {
                read(&mut connection);
            }
        };
        let reader = spawn("store-reader", work).map_err(OpenError::Thread)?;
        let journals = Arc::new(JournalFolder::new(folder, owner));
        let recorder = Recorder::new(options.detail, Some(&journals), auditor.is_some());
        Ok(Self {
            reads: Some(reads),
            reader: Some(reader),
            writer: Mutex::default(),
            queue: Arc::new(Queue::new(WriterWaker::Thread(OnceLock::new()), recorder)),
            journal: OnceLock::new(),
            waiting: Arc::default(),
            journals,
            owner,
            folder: folder.to_owned(),
            file,
            options,
            auditor,
        })
    }

    /// The path of the database.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The origin of the calls of this store.
    fn origin(&self) -> CallOrigin {
        CallOrigin { owner: self.owner, audit: self.auditor.is_some() }
    }

    /// Executes a read on the reader thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let thread_ended = || StoreError("its thread has ended".into());
        let (reply, answer) = oneshot::channel();
        let read: ReadJob = Box::new(move |connection| {
            let _ = reply.send(read(connection));
        });
        let reads = self.reads.as_ref().ok_or_else(thread_ended)?;
        reads.try_send(read).map_err(|_| StoreError("too many reads are waiting".into()))?;
        answer.await.map_err(|_| thread_ended())?.map_err(|error| store_error(&error))
    }

    /// Queues a write and waits for its result: whether it changed something.
    pub(crate) async fn write(&self, write: Write) -> Result<bool, StoreError> {
        Ok(self.write_counted(write).await? > 0)
    }

    /// Queues a write and waits for the number of rows that it changed.
    pub(crate) async fn write_counted(&self, write: Write) -> WriteAnswer {
        self.start_writer()?;
        self.queue.write(write).await
    }

    /// Records a finished call.
    pub(crate) fn record(&self, start: &CallStart, end: &CallEnd) {
        // Without a writer nothing is written; the next store replays the journal.
        let _ = self.start_writer();
        self.queue.record(start, end);
    }

    /// Counts a call; written later.
    fn count_later(&self, attempts: &[AttemptRecord], at: SystemTime) {
        let _ = self.start_writer();
        self.queue.count(attempts, at);
    }

    /// Waits until everything queued is in the database.
    pub(crate) async fn settle(&self) -> Result<(), StoreError> {
        if let Some(journal) = self.journal.get() {
            // Errors of appending are returned to the callers that queued the entries.
            let _ = journal.settle().await;
        }
        if self.waiting.is_empty() {
            return self.queue.settle().await;
        }
        self.write(Write::Settle).await?;
        self.waiting.move_error().map_or(Ok(()), Err)
    }

    fn journal(&self) -> Result<&journal::Journal, StoreError> {
        if let Some(journal) = self.journal.get() {
            return Ok(journal);
        }
        self.start_writer()?;
        // If two threads get here at the same time, one journal is unused and ends.
        let started = journal::Journal::start(self).map_err(|error| {
            StoreError(format!("the journal's thread could not be started: {error}").into())
        })?;
        Ok(self.journal.get_or_init(|| started))
    }

    fn start_writer(&self) -> Result<(), StoreError> {
        let WriterWaker::Thread(waker) = &self.queue.waker else { return Ok(()) };
        if waker.get().is_some() {
            return Ok(());
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            let work = writer::Writer::new(self);
            let thread = spawn("store-writer", move || work.run()).map_err(|error| {
                StoreError(format!("the writer's thread could not be started: {error}").into())
            })?;
            let _ = waker.set(thread.thread().clone());
            *writer = Some(thread);
        }
        Ok(())
    }
}

impl HubStore for SqliteStore {
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.settle())
    }

    fn dropped_details(&self) -> u64 {
        self.queue.lost()
    }
}

impl Drop for SqliteStore {
    /// Finishes all queued writes.
    fn drop(&mut self) {
        if let Some(journal) = self.journal.get_mut() {
            journal.close();
        }
        self.queue.close();
        drop(self.reads.take());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in [writer.take(), self.reader.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Sets the durability of the next transactions.
fn set_durability(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Program => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)
}

/// Opens the file and configures the connection.
fn connect(file: &Path) -> Result<Connection, OpenError> {
    toolhub_core::open_databases::add(file);
    // SQLite creates its `-wal` and `-shm` files with the mode of the database.
    private_file::ensure_file(file).map_err(|source| PrivateError::Io { path: file.to_owned(), source })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Checkpoints are less frequent than by default: pages that every group changes are then copied once for many
    // groups.
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    set_durability(&connection, Durability::Program)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("folded_contains", 2, flags, |context| {
        // The second value is the same for all rows: SQLite keeps what was made of it.
        let lowercase = context.get_or_create_aux(1, |value| value.as_str().map(str::to_lowercase))?;
        Ok(folded_contains(context.get_raw(0).as_str()?, &lowercase))
    })?;
    Ok(connection)
}

/// Distinguishes a corrupt file from one that could not be opened.
fn damaged(error: OpenError, file: &Path) -> OpenError {
    match error {
        OpenError::Sqlite(source)
            if matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ) =>
        {
            OpenError::Damaged { file: file.to_owned(), source }
        }
        error => error,
    }
}

/// The message for a full disk.
fn disk_full() -> LocalizedText {
    LocalizedText::new(
        "the disk is full: free some space, and it will work again",
        "磁盘已满：请释放空间，之后即可恢复",
    )
}

/// The error of SQLite, with the next step if one is known.
fn store_error(error: &rusqlite::Error) -> StoreError {
    StoreError(match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => disk_full(),
        Some(ErrorCode::DatabaseBusy) => {
            LocalizedText::new("another program holds the database", "数据库正被其他程序占用")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            LocalizedText::new(format!("the database is damaged: {error}"), format!("数据库已损坏：{error}"))
        }
        _ => error.to_string().into(),
    })
}

impl Columns for Row<'_> {
    type Error = rusqlite::Error;

    fn text(&self, column: usize) -> rusqlite::Result<String> {
        self.get(column)
    }

    fn maybe_text(&self, column: usize) -> rusqlite::Result<Option<String>> {
        self.get(column)
    }

    fn int(&self, column: usize) -> rusqlite::Result<i64> {
        self.get(column)
    }

    fn maybe_int(&self, column: usize) -> rusqlite::Result<Option<i64>> {
        self.get(column)
    }
}
