//! Concurrent writers: many tasks, a full queue, two stores on one database.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolhub_core::RawJson;
use toolhub_core::call_log::{CallEnd, CallQuery, CallStart, CallStatus, RecordId};

use crate::database::{Database, start, success};

pub(crate) async fn records_calls_of_a_hundred_tasks(database: Database) {
    let store = database.open().await;
    let mut tasks = JoinSet::new();
    for task in 0..100 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for round in 0..5 {
                let call = start(&format!("t{}", task % 7), &format!("[{task},{round}]"));
                let end = success(&call, "native", "[1]");
                if round % 2 == 0 {
                    store.begin(call).await.unwrap();
                    store.finish(end).await.unwrap();
                } else {
                    store.record_finished(call, end);
                }
            }
        });
    }
    tasks.join_all().await;
    let calls = store.calls(CallQuery::default()).await.unwrap();
    assert_eq!(calls.len(), 500);
    assert!(calls.iter().all(|call| call.status == CallStatus::Succeeded && call.took.is_some()));
    let total: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().successes).sum();
    assert_eq!(total, 500);
}

/// Calls recorded faster than the database can write them are all kept with their outputs: backpressure delays the callers.
pub(crate) async fn records_flood_of_calls(database: Database) {
    const CALLS: usize = 30_000;
    let store = database.open().await;
    let call = start("t", "{}");
    let end = success(&call, "native", "1");
    for _ in 0..CALLS {
        let record = RecordId::generate();
        let (call, end) =
            (CallStart { record: record.clone(), ..call.clone() }, CallEnd { record, ..end.clone() });
        store.record_finished(call, end);
    }
    let stored_calls = store.calls(CallQuery::default()).await.unwrap();
    assert_eq!((stored_calls.len(), store.dropped_details()), (CALLS, 0));
    let ids: std::collections::HashSet<_> = stored_calls.iter().map(|call| &call.start.record).collect();
    assert_eq!(ids.len(), CALLS);
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), CALLS as u64);
    let newest = store.calls(CallQuery { limit: Some(10), ..CallQuery::default() }).await.unwrap();
    let expect: Vec<_> = stored_calls[..10].iter().map(|call| &call.start.record).collect();
    assert_eq!(newest.iter().map(|call| &call.start.record).collect::<Vec<_>>(), expect);

    // The queue is also bounded in bytes, which large outputs exhaust.
    let large = RawJson::of(&"x".repeat(1 << 20));
    let mut records = Vec::new();
    for _ in 0..80 {
        if let Some(capacity) = store.wait_for_capacity() {
            capacity.await;
        }
        let call = start("large", "{}");
        records.push(call.record.clone());
        let end = CallEnd { output: Some(large.clone()), ..success(&call, "native", "1") };
        store.record_finished(call, end);
    }
    store.flush().await.unwrap();
    assert_eq!(store.dropped_details(), 0);
    for record in records {
        assert_eq!(
            store.output(&record).await.unwrap().map(|output| output.get().len()),
            Some((1 << 20) + 2)
        );
    }
}

pub(crate) async fn two_stores_share_a_database(database: Database) {
    let stores = [database.open().await, database.open().await];
    let mut tasks = JoinSet::new();
    for task in 0..20 {
        let store = Arc::clone(&stores[task % 2]);
        tasks.spawn(async move {
            for _ in 0..10 {
                let call = start("t", "{}");
                store.begin(call.clone()).await.unwrap();
                store.finish(success(&call, "native", "1")).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    // Writes are asynchronous: other stores see them after a flush at the latest.
    for store in &stores {
        store.flush().await.unwrap();
    }
    for store in stores {
        assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 200);
        assert_eq!(store.statistics().await.unwrap()[0].tally().successes, 200);
    }
}

/// Dropping a store writes all queued calls.
pub(crate) async fn closed_store_keeps_all(database: Database) {
    let store = database.open().await;
    for _ in 0..100 {
        let call = start("t", "{}");
        store.record_finished(call.clone(), success(&call, "native", "1"));
    }
    drop(store);
    assert_eq!(database.open().await.calls(CallQuery::default()).await.unwrap().len(), 100);
}
