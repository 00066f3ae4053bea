//! The principal of a call: stored with every call, a filter of the history, and `local` for calls of older databases.

use toolhub_core::Authorization;
use toolhub_core::call_log::{CallQuery, CallStart, RecordId};
use toolhub_core::ports::HubStore;

use crate::database::{Database, find, start, success};
use crate::older_database::OlderDatabase;

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

/// A database from before principals were recorded. The block has one call: record `r1`, tool `t`.
const OLDER: OlderDatabase = OlderDatabase {
    sqlite_steps: 8,
    postgres_steps: 5,
    entry:
        b"\x01\x02r1\x02c1\x01t\x05first\x00\x03hi\x01\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00",
};

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

pub(crate) async fn reads_calls_of_an_older_database_as_local(database: Database) {
    OLDER.create_in(&database).await;
    check_old_calls(&*database.open().await).await;
}
