//! Many at once.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolhub_core::memory::{CallQuery, Status};

use crate::database::{Database, start, success};

pub(crate) async fn a_hundred_tasks(database: Database) {
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
                    store.note(call, end);
                }
            }
        });
    }
    tasks.join_all().await;
    let calls = store.calls(CallQuery::default()).await.unwrap();
    assert_eq!(calls.len(), 500);
    assert!(calls.iter().all(|call| call.status == Status::Succeeded && call.took.is_some()));
    let total: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().successes).sum();
    assert_eq!(total, 500);
}

pub(crate) async fn two_stores(database: Database) {
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
    for store in stores {
        assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 200);
        assert_eq!(store.statistics().await.unwrap()[0].tally().successes, 200);
    }
}

/// A store that goes writes what it was handed.
pub(crate) async fn closed_store_keeps_all(database: Database) {
    let store = database.open().await;
    for _ in 0..100 {
        let call = start("t", "{}");
        store.note(call.clone(), success(&call, "native", "1"));
    }
    drop(store);
    assert_eq!(database.open().await.calls(CallQuery::default()).await.unwrap().len(), 100);
}
