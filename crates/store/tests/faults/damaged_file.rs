//! A file that is damaged is told, and left as it is.

use std::fs;

use toolhub_store::{OpenError, SqliteStore};

#[test]
fn a_damaged_database_is_told_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhub.db");
    drop(SqliteStore::open(folder.path()).unwrap());
    let whole = fs::read(&file).unwrap();
    let check = |name: &str, damaged: &[u8]| {
        fs::write(&file, damaged).unwrap();
        let error = SqliteStore::open(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains("toolhub.db"), "{name}: {error}");
        assert!(fs::read(&file).unwrap() == damaged, "{name}: the file was changed");
    };
    check("another kind of file", "an essay, which is not a database ".repeat(40).as_bytes());
    let mut header = whole.clone();
    header[..16].copy_from_slice(b"SQLite format 9\0");
    check("a damaged header", &header);
    let mut schema = whole;
    schema[100..140].fill(0xee);
    check("a damaged list of tables", &schema);
}
