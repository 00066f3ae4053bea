//! Unfinished calls as seen by other stores on the same database.

use std::time::{Duration, Instant};

use toolhub_core::call_log::{CallQuery, CallStatus, RecordId};
use toolhub_core::ports::HubStore;

use crate::database::{Database, find, start, success};

pub(crate) async fn call_is_running_while_its_owner_is_alive(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let (one, two) = (start("t", "{}"), start("t", "{}"));
    owner.begin(one.clone()).await.unwrap();
    other.begin(two.clone()).await.unwrap();
    // Writes are asynchronous: other stores see a call after a flush at the latest.
    for store in [&owner, &other] {
        store.flush().await.unwrap();
    }
    for store in [&owner, &other] {
        for call in [&one, &two] {
            assert_eq!(find(&**store, &call.record).await.unwrap().status, CallStatus::Running);
        }
    }
    drop(owner);
    becomes_unknown(&*other, &one.record).await;
    assert_eq!(find(&*other, &two.record).await.unwrap().status, CallStatus::Running);
    let unknown = CallQuery { status: Some(CallStatus::Unknown), ..CallQuery::default() };
    let found = other.calls(unknown).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start.record, one.record);
}

/// Waits until the call is `Unknown`. PostgreSQL releases the locks of a closed connection with a short delay.
async fn becomes_unknown(store: &dyn HubStore, record: &RecordId) {
    let started = Instant::now();
    while find(store, record).await.unwrap().status != CallStatus::Unknown {
        assert!(started.elapsed() < Duration::from_secs(10), "it still counts as running");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A store may finish a call that another store began: a known outcome replaces `Unknown`.
pub(crate) async fn orphaned_call_can_still_be_finished(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let call = start("t", "{}");
    owner.begin(call.clone()).await.unwrap();
    drop(owner);
    becomes_unknown(&*other, &call.record).await;
    other.finish(success(&call, "native", "1")).await.unwrap();
    assert_eq!(find(&*other, &call.record).await.unwrap().status, CallStatus::Succeeded);
}
