//! The PostgreSQL store: one thread with its own runtime holds two connections, one that writes in groups and one
//! that reads. Waiting for the server does not depend on the configuration of the caller's runtime.

mod approvals;
mod audit;
mod audit_history;
mod blocks;
mod calls;
mod cluster;
mod conversations;
mod history;
mod housekeeping;
mod listener;
mod liveness;
mod migrate;
mod offers;
mod reader;
mod replay;
mod responses;
pub(crate) mod security;
mod session;
mod state;
mod statistics;
mod tls;
mod tool_lists;
mod transact;
mod url;
mod writer;

use std::borrow::Cow;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use toolhub_core::BoxFuture;
use toolhub_core::hex;
use toolhub_core::ports::{HubStore, StoreError};

use crate::audit::Auditor;
use crate::error::OpenError;
use crate::journal::JournalFolder;
use crate::options::{AuditOptions, StoreOptions};
use crate::owner::OwnerId;
use crate::query::SqlValue;
use crate::queue::{Queue, WriterWaker};
use crate::recorder::Recorder;
use crate::rows::Columns;
use crate::write::Write;
pub use cluster::PgCluster;
use reader::PendingQuery;
use replay::Journals;
use session::{Address, Session};
pub use url::PgUrl;

/// Capacity of the read queue.
const MAX_QUEUED_READS: usize = 256;
/// Timeout for opening the store.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// A store in a PostgreSQL database that several hubs may share.
#[derive(Debug)]
pub struct PgStore {
    queue: Arc<Queue>,
    reads: Option<mpsc::Sender<Arc<dyn PendingQuery>>>,
    thread: Option<JoinHandle<()>>,
    owner: OwnerId,
    location: String,
    /// `Some` if the calls of this store enter the audit log.
    auditor: Option<Arc<Auditor>>,
    /// How often the lock that shows the owner alive was lost and taken again.
    interruptions: Arc<AtomicU64>,
    /// The versions of the parts that replicas share.
    changes: listener::KnownVersions,
    /// Ends the listener when it is dropped.
    listening: Option<watch::Sender<()>>,
}

impl PgStore {
    /// Connects, and creates the tables if necessary. Times out after ten seconds. With `data`, calls that the
    /// database lacks are kept in journals in that folder.
    pub async fn connect(url: &PgUrl, options: StoreOptions, data: Option<&Path>) -> Result<Self, OpenError> {
        Self::connect_as(url, options, None, data).await
    }

    /// Connects with the audit log on.
    pub async fn connect_with_audit(
        url: &PgUrl,
        options: StoreOptions,
        audit: &AuditOptions,
        data: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let auditor = Auditor::open(audit)?;
        Self::connect_as(url, options, Some(Arc::new(auditor)), data).await
    }

    async fn connect_as(
        url: &PgUrl,
        options: StoreOptions,
        auditor: Option<Arc<Auditor>>,
        data: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let location = url.to_string();
        let failed = |cause: String| OpenError::Postgres { location: location.clone(), cause };
        let address = Address::new(url).map_err(failed)?;
        let owner = OwnerId::generate();
        let folder = data.map(|data| journal_folder(data, &location));
        let journals = folder.as_deref().map(|folder| Arc::new(JournalFolder::new(folder, owner)));
        let recorder = Recorder::new(options.detail, journals.as_ref(), auditor.is_some());
        let queue = Arc::new(Queue::new(WriterWaker::Task(Notify::new()), recorder));
        let (reads, requests) = mpsc::channel(MAX_QUEUED_READS);
        let retry_sender = reads.downgrade();
        let (opened, ready) = oneshot::channel();
        let (changes, (listening, listener_end)) = (watch::Sender::new(None), watch::channel(()));
        let known_versions = changes.clone();
        let interruptions = Arc::<AtomicU64>::default();
        let work = {
            let (queue, location, auditor) = (Arc::clone(&queue), location.clone(), auditor.clone());
            let interruptions = Arc::clone(&interruptions);
            async move {
                let session = match first_session(&address, &location).await {
                    Ok(session) => session,
                    Err(error) => {
                        let _ = opened.send(Err(error));
                        return;
                    }
                };
                if opened.send(Ok(())).is_err() {
                    return;
                }
                let journals = Journals { folder, owner };
                let parts = writer::WriterParts {
                    queue,
                    journals,
                    address: address.clone(),
                    retention: options.retention,
                    auditor,
                    interruptions,
                };
                let writer = writer::Writer::new(parts);
                let listening = listener::listen(address.clone(), known_versions, listener_end);
                let reader = reader::Reader::new(address, requests, retry_sender);
                tokio::join!(writer.run(session), reader.run(), listening);
            }
        };
        let thread = start_thread(work)?;
        let store = Self {
            queue,
            reads: Some(reads),
            thread: Some(thread),
            owner,
            location: location.clone(),
            auditor,
            interruptions,
            changes,
            listening: Some(listening),
        };
        match ready.await {
            Ok(opened) => opened.map(|()| store),
            Err(_) => Err(OpenError::Postgres { location, cause: "its thread has ended".to_owned() }),
        }
    }

    /// The location without the password.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Queues a write and waits for its result: whether it changed something.
    async fn write(&self, write: Write) -> Result<bool, StoreError> {
        Ok(self.queue.write(write).await? > 0)
    }

    /// Executes a query; retries it if the connection broke.
    async fn read<T, F, A>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(Arc<Session>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Error>> + Send + 'static,
    {
        reader::read(self.reads.as_ref(), ask).await
    }
}

/// The folder of the journals for the database at `location`.
fn journal_folder(data: &Path, location: &str) -> PathBuf {
    let digest = Sha256::digest(location.as_bytes());
    data.join(format!("postgres-{}", hex::encode(&digest[..8])))
}

/// Starts a thread with its own runtime.
fn start_thread(work: impl Future<Output = ()> + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
    let run = move || runtime.block_on(work);
    std::thread::Builder::new().name("store".to_owned()).spawn(run).map_err(OpenError::Thread)
}

async fn first_session(address: &Address, location: &str) -> Result<Session, OpenError> {
    let failed = |cause: String| OpenError::Postgres { location: location.to_owned(), cause };
    let opening = async {
        let session = address.connect().await.map_err(|cause| match address.failed_to_verify(&cause) {
            true => OpenError::Unverified { location: location.to_owned(), cause },
            false => failed(cause),
        })?;
        migrate::migrate(&session, location).await?;
        Ok(session)
    };
    timeout(OPEN_TIMEOUT, opening)
        .await
        .unwrap_or_else(|_| Err(failed(format!("not ready within {} s", OPEN_TIMEOUT.as_secs()))))
}

impl HubStore for PgStore {
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.queue.settle())
    }

    fn dropped_details(&self) -> u64 {
        self.queue.lost()
    }
}

impl Drop for PgStore {
    /// Finishes all queued writes, up to a timeout if the server is unreachable.
    fn drop(&mut self) {
        self.queue.close();
        drop(self.reads.take());
        drop(self.listening.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Replaces NUL, which PostgreSQL texts cannot contain, by `␀`.
fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "␀")) } else { Cow::Borrowed(text) }
}

/// Converts values to parameters of the driver.
fn parameters(values: Vec<SqlValue>) -> Vec<Box<dyn ToSql + Sync + Send>> {
    let boxed = |value| -> Box<dyn ToSql + Sync + Send> {
        match value {
            SqlValue::Text(text) => Box::new(replace_nul(&text).into_owned()),
            SqlValue::Int(number) => Box::new(number),
        }
    };
    values.into_iter().map(boxed).collect()
}

/// Executes a statement that is not prepared in advance.
async fn run_query(session: &Session, sql: &str, values: Vec<SqlValue>) -> Result<Vec<Row>, Error> {
    let values = parameters(values);
    let values: Vec<&(dyn ToSql + Sync)> =
        values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
    session.client.query(sql, &values).await
}

impl Columns for Row {
    type Error = Error;

    fn text(&self, column: usize) -> Result<String, Error> {
        self.try_get(column)
    }

    fn maybe_text(&self, column: usize) -> Result<Option<String>, Error> {
        self.try_get(column)
    }

    fn int(&self, column: usize) -> Result<i64, Error> {
        self.try_get(column)
    }

    fn maybe_int(&self, column: usize) -> Result<Option<i64>, Error> {
        self.try_get(column)
    }
}
