//! The file of SQLite's: what is not ours to touch is left alone.

use toolhub_store::{OpenError, SqliteStore};

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolhub.db"), "not a database, but some text that is long enough")
        .unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
}
