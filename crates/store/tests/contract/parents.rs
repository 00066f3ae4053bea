//! The parent of a call: stored with nested calls, a filter of the history, and absent in calls of older databases.

use toolhub_core::CallId;
use toolhub_core::call_log::{CallQuery, CallStart, RecordId};
use toolhub_core::ports::HubStore;

use crate::database::{Database, find, start, success};
use crate::older_database::OlderDatabase;

fn call_of(parent: Option<&str>) -> CallStart {
    CallStart { parent: parent.map(CallId::new), ..start("t", "{}") }
}

const PARENTS: [Option<&str>; 6] =
    [None, Some("call_1"), Some("call_12"), Some("call_"), Some("安\u{1f}x"), Some("O'Reilly %")];

async fn records_of(store: &dyn HubStore, query: CallQuery) -> Vec<RecordId> {
    let mut found: Vec<_> =
        store.calls(query).await.unwrap().into_iter().map(|call| call.start.record).collect();
    found.reverse();
    found
}

fn nested(parent: &str) -> CallQuery {
    CallQuery { parent: Some(parent.to_owned()), ..CallQuery::default() }
}

/// All and only the calls that a call made are found, whether they are rows or in blocks, finished or running.
pub(crate) async fn filter_finds_all_and_only_calls_of_a_parent(database: Database) {
    let store = database.open().await;
    let mut calls: Vec<CallStart> = Vec::new();
    for group in [1, 5, 15, 16, 40, 90] {
        // Some groups lack the first parents, so that their blocks need not be scanned for these.
        let skipped = group % 4;
        for index in 0..group {
            let parents = &PARENTS[skipped..];
            let call = call_of(parents[index % parents.len()]);
            store.record_finished(call.clone(), success(&call, "native", "1"));
            calls.push(call);
        }
        store.flush().await.unwrap();
    }
    for parent in PARENTS {
        let (running, ended) = (call_of(parent), call_of(parent));
        store.begin(running.clone()).await.unwrap();
        store.begin(ended.clone()).await.unwrap();
        store.finish(success(&ended, "native", "1")).await.unwrap();
        calls.extend([running, ended]);
    }
    for store in [&store, &database.open().await] {
        for parent in PARENTS.into_iter().flatten() {
            let of_parent = |call: &&CallStart| call.parent.as_ref().is_some_and(|id| id.as_str() == parent);
            let expected: Vec<RecordId> =
                calls.iter().filter(of_parent).map(|call| call.record.clone()).collect();
            assert_eq!(records_of(&**store, nested(parent)).await, expected, "{parent}");
            // Bounds of the records apply as well.
            let (from, before) = (&expected[1], &expected[expected.len() - 1]);
            let bounded =
                CallQuery { from: Some(from.clone()), before: Some(before.clone()), ..nested(parent) };
            assert_eq!(records_of(&**store, bounded).await, expected[1..expected.len() - 1], "{parent}");
        }
        assert_eq!(records_of(&**store, nested("call")).await, [], "a part of an id");
        assert_eq!(records_of(&**store, nested("")).await, [], "no id");
        for call in store.calls(CallQuery::default()).await.unwrap() {
            let recorded = calls.iter().find(|one| one.record == call.start.record).unwrap();
            assert_eq!(call.start.parent, recorded.parent);
        }
        store.flush().await.unwrap();
    }
}

/// More parents than a block's summary lists.
pub(crate) async fn filter_finds_one_of_very_many_parents(database: Database) {
    let store = database.open().await;
    let calls: Vec<CallStart> = (0..200).map(|number| call_of(Some(&format!("call_{number}")))).collect();
    for call in &calls {
        store.record_finished(call.clone(), success(call, "native", "1"));
    }
    store.flush().await.unwrap();
    for number in [0, 63, 64, 199] {
        let expected = [calls[number].record.clone()];
        assert_eq!(records_of(&*store, nested(&format!("call_{number}"))).await, expected);
    }
}

/// A call is found by the id that its caller gave it, whether it is a row or in a block.
pub(crate) async fn filter_finds_call_by_its_id(database: Database) {
    let store = database.open().await;
    let calls: Vec<CallStart> = (0..40).map(|_| call_of(None)).collect();
    for call in &calls {
        store.record_finished(call.clone(), success(call, "native", "1"));
    }
    store.flush().await.unwrap();
    let row = call_of(None);
    store.begin(row.clone()).await.unwrap();
    for call in [&calls[0], &calls[39], &row] {
        let query = CallQuery { call: Some(call.call.to_string()), ..CallQuery::default() };
        assert_eq!(records_of(&*store, query.clone()).await, std::slice::from_ref(&call.record));
        let before = CallQuery { before: Some(call.record.clone()), ..query };
        assert_eq!(records_of(&*store, before).await, []);
    }
}

/// A database from before parents were recorded.
const OLDER: OlderDatabase = OlderDatabase {
    sqlite_steps: 12,
    postgres_steps: 8,
    entry: b"\x02\x02r1\x02c1\x01t\x05first\x00\x03hi\x05local\x00\x00\x01\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00",
};

pub(crate) async fn calls_of_an_older_database_have_no_parent(database: Database) {
    OLDER.create_in(&database).await;
    let store = database.open().await;
    for record in ["r1", "r2"] {
        assert_eq!(find(&*store, &RecordId::new(record)).await.unwrap().start.parent, None);
    }
    for parent in ["", "c1", "c2"] {
        assert_eq!(records_of(&*store, nested(parent)).await, [], "{parent}");
    }
    let call = call_of(Some("c2"));
    store.begin(call.clone()).await.unwrap();
    store.finish(success(&call, "native", "1")).await.unwrap();
    assert_eq!(records_of(&*store, nested("c2")).await, [call.record]);
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 3);
}
