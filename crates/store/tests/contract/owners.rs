//! Calls without an end, seen by others.

use toolhub_core::memory::{CallQuery, Status};

use crate::database::{Database, find, start, success};

pub(crate) async fn running_while_the_owner_lives(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let (one, two) = (start("t", "{}"), start("t", "{}"));
    owner.begin(one.clone()).await.unwrap();
    other.begin(two.clone()).await.unwrap();
    for store in [&owner, &other] {
        for call in [&one, &two] {
            assert_eq!(find(&**store, &call.record).await.unwrap().status, Status::Running);
        }
    }
    drop(owner);
    assert_eq!(find(&*other, &one.record).await.unwrap().status, Status::Unknown);
    assert_eq!(find(&*other, &two.record).await.unwrap().status, Status::Running);
    let unknown = CallQuery { status: Some(Status::Unknown), ..CallQuery::default() };
    let found = other.calls(unknown).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start.record, one.record);
}

/// Somebody else may hand in the end: what is known counts more than who knew it.
pub(crate) async fn finished_after_all(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let call = start("t", "{}");
    owner.begin(call.clone()).await.unwrap();
    drop(owner);
    assert_eq!(find(&*other, &call.record).await.unwrap().status, Status::Unknown);
    other.finish(success(&call, "native", "1")).await.unwrap();
    assert_eq!(find(&*other, &call.record).await.unwrap().status, Status::Succeeded);
}
