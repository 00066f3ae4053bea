//! The embedded database: one thread owns the connection and does one job after another.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;
use toolhub_core::ports::StoreError;

use crate::migrate::migrate;

/// Jobs that may wait.
const QUEUE: usize = 256;
/// How long another process may hold the database.
const BUSY: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be made.
    #[error("the folder `{}` could not be made", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It was written by a newer program.
    #[error(
        "the database has version {found}, this toolhub knows {known}: use a newer toolhub, or another `--home`"
    )]
    Newer {
        /// Its version.
        found: usize,
        /// The newest this program knows.
        known: usize,
    },
    /// SQLite complained.
    #[error("the database could not be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Its thread could not be started.
    #[error("the database's thread could not be started")]
    Thread(#[source] std::io::Error),
}

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    jobs: Option<SyncSender<Job>>,
    worker: Option<JoinHandle<()>>,
    file: PathBuf,
}

impl SqliteStore {
    /// Opens `toolhub.db` in `folder`, making both where they are not there.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })?;
        let file = folder.join("toolhub.db");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&file, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection)?;
        let (jobs, queue) = sync_channel::<Job>(QUEUE);
        let work = move || {
            for job in queue {
                job(&mut connection);
            }
        };
        let worker =
            std::thread::Builder::new().name("store".to_owned()).spawn(work).map_err(OpenError::Thread)?;
        Ok(Self { jobs: Some(jobs), worker: Some(worker), file })
    }

    /// The database's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Does a job on the database's thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError("its thread has ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let _ = reply.send(job(connection));
        });
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.try_send(job).map_err(|_| StoreError("too many jobs are waiting".to_owned()))?;
        answer.await.map_err(|_| gone())?.map_err(|error| StoreError(error.to_string()))
    }
}

impl Drop for SqliteStore {
    /// Finishes what is queued, so that nothing that was asked for is lost.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
