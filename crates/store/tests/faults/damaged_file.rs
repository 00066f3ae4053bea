//! A database file that is damaged, or locked by another process.

use std::fs;
use std::time::{Duration, Instant};

use toolhub_core::approval::{Approval, Approvals as _};
use toolhub_core::{RawJson, Source, ToolName};

use toolhub_store::{OpenError, SqliteStore};

#[test]
fn damaged_database_is_reported_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhub.db");
    drop(SqliteStore::open(folder.path()).unwrap());
    let intact = fs::read(&file).unwrap();
    let check = |name: &str, damaged: &[u8]| {
        fs::write(&file, damaged).unwrap();
        let error = SqliteStore::open(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains("toolhub.db"), "{name}: {error}");
        assert!(fs::read(&file).unwrap() == damaged, "{name}: the file was changed");
    };
    check("another kind of file", "an essay, which is not a database ".repeat(40).as_bytes());
    let mut header = intact.clone();
    header[..16].copy_from_slice(b"SQLite format 9\0");
    check("a damaged header", &header);
    let mut schema = intact;
    schema[100..140].fill(0xee);
    check("a damaged list of tables", &schema);
}

/// While another process holds the write lock, all waiting writers fail after one shared timeout, not one timeout each.
#[tokio::test]
async fn waiting_writers_fail_after_one_busy_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let approve = |tool: &str| {
        let (source, tool) = (Source::Native, ToolName::new(tool));
        let (version, definition) = (String::new(), RawJson::null());
        store.approve(Approval { source, tool, version, definition, at: std::time::SystemTime::now() })
    };
    approve("first").await.unwrap();
    let other = rusqlite::Connection::open(store.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let all = tokio::join!(approve("a"), approve("b"), approve("c"), approve("d"));
    for answer in [all.0, all.1, all.2, all.3] {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("another program holds the database"), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(14), "{:?}", started.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    approve("again").await.unwrap();
    assert_eq!(store.approvals().await.unwrap().len(), 2);
}
