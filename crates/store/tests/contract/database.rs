//! A separate SQLite or PostgreSQL database for each test, and sample calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use toolhub_core::call_log::{
    AttemptStatus, CallEnd, CallQuery, CallRecord, CallStart, CallStatus, RecordId, StoredAttempt,
};
use toolhub_core::ports::HubStore;
use toolhub_core::{CallId, RawJson, Source, ToolName};
use toolhub_store::{AuditOptions, AuditedStore, StoreLocation, StoreOptions, open, open_with_audit};
use toolhub_testkit::postgres::PostgresServer;

/// An empty database. An SQLite database is deleted when this is dropped.
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres(String),
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(crate) fn postgres() -> Self {
        Self::Postgres(PostgresServer::shared().new_database())
    }

    /// The path of an SQLite database file.
    pub(crate) fn file(&self) -> Option<std::path::PathBuf> {
        match self {
            Self::Sqlite(folder) => Some(folder.path().join("toolhub.db")),
            Self::Postgres(_) => None,
        }
    }

    pub(crate) async fn open(&self) -> Arc<dyn HubStore> {
        self.open_with(StoreOptions::default()).await
    }

    pub(crate) async fn open_with(&self, options: StoreOptions) -> Arc<dyn HubStore> {
        open(&self.location(), options, None).await.unwrap()
    }

    pub(crate) async fn open_with_audit(&self, options: StoreOptions, audit: &AuditOptions) -> AuditedStore {
        open_with_audit(&self.location(), options, audit, None).await.unwrap()
    }

    fn location(&self) -> StoreLocation {
        match self {
            Self::Sqlite(folder) => StoreLocation::Folder(folder.path().to_owned()),
            Self::Postgres(url) => StoreLocation::Postgres(url.parse().unwrap()),
        }
    }

    /// Another empty database of the same kind.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres(),
        }
    }

    /// Executes statements as another program would. `overlay_byte(bytes, place)` replaces a byte of a column,
    /// `last_hash_of(length)` is the beginning of some hash.
    pub(crate) async fn tamper(&self, sql: &str) {
        match self {
            Self::Sqlite(_) => {
                let sql = sql
                    .replace(
                        "overlay_byte(entries, 40)",
                        "CAST(substr(entries, 1, 40) || X'ff' || substr(entries, 42) AS BLOB)",
                    )
                    .replace(
                        "last_hash_of(16)",
                        "(SELECT substr(last_hash, 1, 16) FROM audit_batches LIMIT 1)",
                    );
                let connection = rusqlite::Connection::open(self.file().unwrap()).unwrap();
                connection.execute_batch(&sql).unwrap();
            }
            Self::Postgres(url) => {
                let sql = sql.replace("overlay_byte(entries, 40)", "set_byte(entries, 40, 255)").replace(
                    "last_hash_of(16)",
                    "(SELECT substr(last_hash, 1, 16) FROM audit_batches LIMIT 1)",
                );
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                let mut driver = tokio::task::JoinSet::new();
                driver.spawn(connection);
                client.batch_execute(&format!("SET search_path TO toolhub; {sql}")).await.unwrap();
            }
        }
    }
}

/// A time `hours` after midnight UTC 20 days ago: recent enough that retention does not delete it.
pub(crate) fn hour(hours: u64) -> SystemTime {
    const DAY: u64 = 86_400;
    static TODAY: LazyLock<u64> =
        LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / DAY);
    UNIX_EPOCH + Duration::from_secs((*TODAY - 20) * DAY + hours * 3600)
}

/// The start of a call of `tool`, each one microsecond later than the previous one.
pub(crate) fn start(tool: &str, arguments: &str) -> CallStart {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    CallStart {
        record: RecordId::generate(),
        call: CallId::generate(),
        tool: ToolName::new(tool),
        arguments: RawJson::parse(arguments).unwrap(),
        conversation: None,
        request: None,
        strategy: "first".to_owned(),
        candidates: vec![Source::from_name("excel"), Source::Native],
        may_change: true,
        at: hour(0) + Duration::from_micros(COUNT.fetch_add(1, Ordering::Relaxed)),
        authorization: toolhub_core::Authorization::default(),
        parent: None,
    }
}

/// The end of a call that succeeded with one attempt.
pub(crate) fn success(start: &CallStart, source: &str, output: &str) -> CallEnd {
    CallEnd {
        record: start.record.clone(),
        status: CallStatus::Succeeded,
        took: Duration::from_micros(1_234_567),
        error: None,
        sources: vec![Source::from_name(source)],
        attempts: vec![attempt(source, start.tool.as_str(), AttemptStatus::Succeeded)],
        output: Some(RawJson::parse(output).unwrap()),
    }
}

/// An attempt that took 3 ms.
pub(crate) fn attempt(source: &str, tool: &str, status: AttemptStatus) -> StoredAttempt {
    let took = Duration::from_millis(3);
    StoredAttempt { source: Source::from_name(source), tool: ToolName::new(tool), status, took, error: None }
}

/// The stored record of one call.
pub(crate) async fn find(store: &dyn HubStore, record: &RecordId) -> Option<CallRecord> {
    let all = store.calls(CallQuery::default()).await.unwrap();
    all.into_iter().find(|call| call.start.record == *record)
}
