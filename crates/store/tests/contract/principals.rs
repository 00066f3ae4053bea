//! The principal of a call: stored with every call, a filter of the history, and `local` for calls of older databases.

use std::time::{SystemTime, UNIX_EPOCH};

use toolhub_core::Authorization;
use toolhub_core::call_log::{CallQuery, CallStart, RecordId};
use toolhub_core::ports::HubStore;

use crate::database::{Database, find, start, success};

fn call_of(principal: &str) -> CallStart {
    let authorization = Authorization {
        principal: principal.into(),
        rule: (principal != "local").then(|| "rule 2".into()),
        approver: principal.starts_with("oidc").then(|| "key:ops".into()),
    };
    CallStart { authorization, ..start("t", "{}") }
}

const PRINCIPALS: [&str; 6] =
    ["local", "key:ci", "key:ci2", "key:c", "oidc:https://idp.example#安\u{1f}x", "O'Reilly %"];

async fn records_of(store: &dyn HubStore, principal: &str) -> Vec<RecordId> {
    let query = CallQuery { principal: Some(principal.to_owned()), ..CallQuery::default() };
    let mut found: Vec<_> =
        store.calls(query).await.unwrap().into_iter().map(|call| call.start.record).collect();
    found.reverse();
    found
}

/// All and only the calls of a principal are found, whether they are rows or in blocks, finished or running.
pub(crate) async fn filter_finds_all_and_only_calls_of_a_principal(database: Database) {
    let store = database.open().await;
    let mut calls: Vec<CallStart> = Vec::new();
    for group in [1, 5, 15, 16, 40, 90] {
        // Some groups lack the first principals, so that their blocks need not be scanned for these.
        let skipped = group % 4;
        for index in 0..group {
            let principals = &PRINCIPALS[skipped..];
            let call = call_of(principals[index % principals.len()]);
            store.record_finished(call.clone(), success(&call, "native", "1"));
            calls.push(call);
        }
        store.flush().await.unwrap();
    }
    for principal in PRINCIPALS {
        let (running, ended) = (call_of(principal), call_of(principal));
        store.begin(running.clone()).await.unwrap();
        store.begin(ended.clone()).await.unwrap();
        store.finish(success(&ended, "native", "1")).await.unwrap();
        calls.extend([running, ended]);
    }
    for store in [&store, &database.open().await] {
        for principal in PRINCIPALS {
            let expected: Vec<RecordId> = calls
                .iter()
                .filter(|call| &*call.authorization.principal == principal)
                .map(|call| call.record.clone())
                .collect();
            assert_eq!(records_of(&**store, principal).await, expected, "{principal}");
        }
        assert_eq!(records_of(&**store, "key").await, [], "a part of an id");
        for call in store.calls(CallQuery::default()).await.unwrap() {
            let recorded = calls.iter().find(|one| one.record == call.start.record).unwrap();
            assert_eq!(call.start.authorization, recorded.authorization);
        }
        store.flush().await.unwrap();
    }
}

/// More principals than a block's summary lists.
pub(crate) async fn filter_finds_one_of_very_many_principals(database: Database) {
    let store = database.open().await;
    let calls: Vec<CallStart> = (0..200).map(|number| call_of(&format!("key:{number}"))).collect();
    for call in &calls {
        store.record_finished(call.clone(), success(call, "native", "1"));
    }
    store.flush().await.unwrap();
    for number in [0, 63, 64, 199] {
        let expected = [calls[number].record.clone()];
        assert_eq!(records_of(&*store, &format!("key:{number}")).await, expected);
    }
}

/// One call in the block format from before principals were recorded: record `r1`, tool `t`.
const OLD_ENTRY: &[u8] =
    b"\x01\x02r1\x02c1\x01t\x05first\x00\x03hi\x01\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00";

fn old_block() -> Vec<u8> {
    let mut entries = u32::try_from(OLD_ENTRY.len()).unwrap().to_le_bytes().to_vec();
    entries.extend_from_slice(OLD_ENTRY);
    entries
}

/// The statements that create a database of the version before, with one call as a row and one in a block. Its
/// parameter is the block's content.
fn old_database(migrations: &str, steps: usize) -> (Vec<String>, String) {
    let folder = format!("{}/src/{migrations}/migrations", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    let mut statements: Vec<String> =
        files[..steps].iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    statements.push(format!(
        "INSERT INTO calls (record, call, tool, arguments, arguments_hash, strategy, candidates, may_change, began,
             status, owner, took, sources, attempts, places)
         VALUES ('r2', 'c2', 't', '{{}}', 1, 'first', '[]', 1, {now}, 'succeeded', 1, 5, '[]', '[]', '')"
    ));
    let block = format!(
        "INSERT INTO call_blocks (first, last, began_first, began_last, statuses, tools, calls, owner, bytes, entries)
         VALUES ('r1', 'r1', {now}, {now}, 2, NULL, 1, 1, {}, $1)",
        old_block().len()
    );
    (statements, block)
}

async fn check_old_calls(store: &dyn HubStore) {
    for record in ["r1", "r2"] {
        let call = find(store, &RecordId::new(record)).await.unwrap();
        assert_eq!(call.start.authorization, Authorization::default());
    }
    assert_eq!(records_of(store, "local").await, ["r1", "r2"].map(RecordId::new));
    assert_eq!(records_of(store, "key:ci").await, []);
    let call = call_of("key:ci");
    store.begin(call.clone()).await.unwrap();
    store.finish(success(&call, "native", "1")).await.unwrap();
    assert_eq!(records_of(store, "key:ci").await, [call.record]);
    assert_eq!(records_of(store, "local").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_calls_of_an_older_sqlite_database_as_local() {
    let database = Database::sqlite();
    {
        let connection = rusqlite::Connection::open(database.file().unwrap()).unwrap();
        let (statements, block) = old_database("sqlite", 8);
        for statement in statements {
            connection.execute_batch(&statement).unwrap();
        }
        connection.execute(&block, [old_block()]).unwrap();
        connection.pragma_update(None, "user_version", 8).unwrap();
    }
    check_old_calls(&*database.open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_calls_of_an_older_postgres_database_as_local() {
    let database = Database::postgres();
    let Database::Postgres(url) = &database else { unreachable!() };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(connection);
    let begin = "CREATE SCHEMA toolhub; SET search_path TO toolhub;
        CREATE TABLE migrations (version BIGINT PRIMARY KEY); INSERT INTO migrations VALUES (1), (2), (3), (4), (5)";
    client.batch_execute(begin).await.unwrap();
    let (statements, block) = old_database("postgres", 5);
    for statement in statements {
        client.batch_execute(&statement).await.unwrap();
    }
    client.execute(&block, &[&old_block()]).await.unwrap();
    drop(client);
    check_old_calls(&*database.open().await).await;
}
