//! Tool lists come back as they were kept, also after the program ended.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::{Duration, UNIX_EPOCH};

use toolhub_core::lang::Text;
use toolhub_core::ports::{CachedList, ToolListStore as _, ToolVersions as _};
use toolhub_core::{RawJson, ServerId};
use toolhub_store::{OpenError, SqliteStore};

const ODD: &str = r#"{"x":{"b":1,"a":1234567890123456789012345678901234567890}, "name":"奇"}"#;

fn list(tools: &[&str]) -> CachedList {
    CachedList {
        fingerprint: "f".to_owned(),
        era: "legacy".to_owned(),
        peer: "peer 1".to_owned(),
        listed_at: Some(UNIX_EPOCH + Duration::from_millis(4_000_000_000_123)),
        ttl: Some(Duration::from_secs(60)),
        tools: tools.iter().map(|text| RawJson::parse(*text).unwrap()).collect(),
        skipped: vec![Text::new("`bad`: no", "`bad`：不行")],
        failure: Some((UNIX_EPOCH + Duration::from_secs(5), Text::new("refused", "被拒绝"))),
    }
}

#[tokio::test]
async fn lists_survive_a_restart_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let server = ServerId::new("服务");
    {
        let store = SqliteStore::open(folder.path()).unwrap();
        store.save(&server, &list(&[r#"{"name":"old"}"#, ODD])).await.unwrap();
        store.save(&server, &list(&[ODD, r#"{"name":"second"}"#])).await.unwrap();
        store.save(&ServerId::new("gone"), &list(&[])).await.unwrap();
        store.forget(&ServerId::new("gone"), "f").await.unwrap();
    }
    let store = SqliteStore::open(folder.path()).unwrap();
    let kept = store.load().await.unwrap();
    assert_eq!(kept.len(), 1);
    let (id, found) = &kept[0];
    assert_eq!(*id, server);
    let expected = list(&[ODD, r#"{"name":"second"}"#]);
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

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

#[tokio::test]
async fn a_changed_definition_is_a_new_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let server = ServerId::new("s");
    let at = |hours: u64| Some(UNIX_EPOCH + Duration::from_secs(4_000_000_000 + hours * 3600));
    let listed = |text: &str, hours| CachedList { listed_at: at(hours), failure: None, ..list(&[text]) };
    store.save(&server, &listed(r#"{"name":"t","description":"old"}"#, 1)).await.unwrap();
    store.save(&server, &listed(r#"{"description":"old","name":"t"}"#, 2)).await.unwrap();
    store.save(&server, &listed(r#"{"name":"t","description":"new"}"#, 3)).await.unwrap();
    let history = store.history(&server, "t").await.unwrap();
    let seen: Vec<_> =
        history.iter().map(|one| (one.definition.get(), Some(one.first_seen), Some(one.last_seen))).collect();
    assert_eq!(
        seen,
        [
            (r#"{"name":"t","description":"new"}"#, at(3), at(3)),
            (r#"{"name":"t","description":"old"}"#, at(1), at(2)),
        ]
    );
}

/// A database of a program that knew one language only is taken over: what it has is said as it stands there.
#[tokio::test]
async fn lists_from_before_both_languages_are_still_read() {
    let folder = tempfile::tempdir().unwrap();
    {
        let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
        for step in ["0001_tool_lists.sql", "0002_tool_versions.sql"] {
            let file = format!("{}/src/migrations/{step}", env!("CARGO_MANIFEST_DIR"));
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
    assert_eq!(found.skipped, [Text::from("`bad`: no")]);
    assert_eq!(found.failure, Some((UNIX_EPOCH + Duration::from_secs(5), Text::from("refused"))));
    store.save(&ServerId::new("s"), &list(&[ODD])).await.unwrap();
    let (_, found) = store.load().await.unwrap().remove(0);
    assert_eq!(format!("{found:?}"), format!("{:?}", list(&[ODD])));
}
