//! The SQLite database file: unsupported files are left unchanged, old schemas are migrated, and locks are held while it is open.

use std::time::{Duration, UNIX_EPOCH};

use toolhub_core::conversation::{ConversationTurn, Conversations as _, TurnRole};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::ToolListStore as _;
use toolhub_core::statistics::{Day, StatisticsSummary, SummaryQuery};
use toolhub_store::{OpenError, SqliteStore};

use crate::database::{Database, hour, start, success};

#[tokio::test]
async fn rejects_database_of_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
}

#[test]
fn rejects_file_that_is_not_a_database() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolhub.db"), "not a database, but some text that is long enough")
        .unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
}

/// Migrates a database with schema version 2, which stored texts in one language: they are returned unchanged.
#[tokio::test]
async fn reads_tool_lists_of_the_older_format() {
    let folder = tempfile::tempdir().unwrap();
    {
        let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
        for step in ["0001_tool_lists.sql", "0002_tool_versions.sql"] {
            let file = format!("{}/src/sqlite/migrations/{step}", env!("CARGO_MANIFEST_DIR"));
            connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
        }
        connection.pragma_update(None, "user_version", 2).unwrap();
        connection
            .execute_batch(
                "INSERT INTO tool_lists VALUES
                 ('s', 'f', 'legacy', 'peer 1', 4000000000000, NULL, '[\"`bad`: no\"]', 5000, 'refused');
                 INSERT INTO listed_tools VALUES ('s', 'f', 0, '{\"name\":\"t\"}')",
            )
            .unwrap();
    }
    let store = SqliteStore::open(folder.path()).unwrap();
    let (_, found) = store.load().await.unwrap().remove(0);
    assert_eq!(found.tools.len(), 1);
    assert_eq!(found.skipped, [LocalizedText::from("`bad`: no")]);
    assert_eq!(found.failure, Some((UNIX_EPOCH + Duration::from_secs(5), LocalizedText::from("refused"))));
    assert_eq!((found.failures, found.late_at), (0, None));
}

/// Other processes must see that the database is in use. Otherwise they delete the write-ahead log when they close the
/// database, as the `sqlite3` shell does, and later writes of this process go to a deleted file. The locks are easily lost:
/// POSIX releases all locks of a process on a file when the process closes any descriptor of that file.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn database_stays_locked_while_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&store.file().metadata().unwrap());
    let is_locked = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("POSIX") && line.contains(&format!(":{inode} ")))
    };
    assert!(is_locked(), "by the connection that reads");
    // The first write opens the write connection.
    let turn = ConversationTurn {
        conversation: "c".to_owned(),
        role: TurnRole::User,
        text: "t".to_owned(),
        at: UNIX_EPOCH,
    };
    store.append_turn(turn).await.unwrap();
    assert!(is_locked(), "by both connections");
    let second = SqliteStore::open(folder.path()).unwrap();
    assert!(is_locked(), "by two stores");
    drop(second);
    assert!(is_locked(), "by the first one");
    drop(store);
    assert!(!is_locked());
}

/// Migrates a database without sums over the statistics: they are made from the stored ones.
#[tokio::test(flavor = "multi_thread")]
async fn sums_statistics_of_an_older_database() {
    let database = Database::sqlite();
    let store = database.open().await;
    for (index, tool) in ["a", "b", "b", "c", "b"].into_iter().enumerate() {
        let mut call = start(tool, "{}");
        call.at = hour(20 * index as u64);
        store.record_finished(call.clone(), success(&call, "excel", "1"));
    }
    store.flush().await.unwrap();
    drop(store);
    let older = "DROP INDEX calls_by_parent; ALTER TABLE calls DROP COLUMN parent;
        ALTER TABLE call_blocks DROP COLUMN parents;
        DROP TABLE shared_state; DROP TABLE shared_counts; DROP TABLE changes;
        DROP TABLE responses; DROP TABLE response_approvals; DROP TABLE day_totals; DROP TABLE latency_totals; ALTER TABLE last_uses DROP COLUMN uses;
        PRAGMA user_version = 11";
    database.tamper(older).await;
    let store = database.open().await;
    let query = SummaryQuery { since: Day::of(hour(24)), tools: 2 };
    let found = store.statistics_summary(query).await.unwrap();
    let expected = StatisticsSummary::of(store.statistics().await.unwrap(), query);
    assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
    assert_eq!(found.most_used[0].tool.as_str(), "b");
}
