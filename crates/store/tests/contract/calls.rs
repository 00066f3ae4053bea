//! Recorded calls are read back unchanged.

use std::time::Duration;

use toolhub_core::Source;
use toolhub_core::call_log::{AttemptStatus, CallEnd, CallQuery, CallStatus, RecordId, StoredAttempt};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use crate::database::{Database, attempt, find, start, success};

pub(crate) async fn stores_begun_and_finished_call(database: Database) {
    let store = database.open().await;
    let mut call_start = start("write_sheet", r#"{"b":1, "a":[1.50]}"#);
    call_start.conversation = Some("c 1".to_owned());
    call_start.request = Some("写一个表".to_owned());
    store.begin(call_start.clone()).await.unwrap();
    let found = find(&*store, &call_start.record).await.unwrap();
    assert_eq!(found.status, CallStatus::Running);
    assert_eq!(found.took, None);
    assert_eq!(format!("{:?}", found.start), format!("{call_start:?}"));

    let error = ("timed_out".to_owned(), LocalizedText::new("it took too long", "太久了"));
    let tried =
        StoredAttempt { error: Some(error.clone()), ..attempt("excel", "write", AttemptStatus::Failed) };
    let end = CallEnd {
        status: CallStatus::Unknown,
        error: Some(error),
        sources: Vec::new(),
        attempts: vec![tried, attempt("native", "write_sheet", AttemptStatus::Cancelled)],
        output: None,
        ..success(&call_start, "native", "null")
    };
    store.finish(end.clone()).await.unwrap();
    for store in [store, database.open().await] {
        let found = find(&*store, &call_start.record).await.unwrap();
        assert_eq!(found.status, CallStatus::Unknown);
        assert_eq!(found.took, Some(Duration::from_micros(1_234_567)));
        assert_eq!(format!("{:?}", found.start), format!("{call_start:?}"));
        assert_eq!(found.error.as_ref().unwrap().1.localize(Lang::Zh), "太久了");
        assert_eq!(found.error, end.error);
        assert_eq!(format!("{:?}", found.attempts), format!("{:?}", end.attempts));
        assert!(found.sources.is_empty());
        assert!(store.output(&call_start.record).await.unwrap().is_none());
    }
}

/// The end of a call that is dropped before it finishes is recorded with `note`; only the first recorded end counts.
pub(crate) async fn record_finished_completes_begun_call(database: Database) {
    let store = database.open().await;
    let call_start = start("send_mail", "{}");
    store.begin(call_start.clone()).await.unwrap();
    let end = CallEnd { status: CallStatus::Unknown, ..success(&call_start, "mail", "[]") };
    store.record_finished(call_start.clone(), end.clone());
    store.flush().await.unwrap();
    store.record_finished(call_start.clone(), CallEnd { status: CallStatus::Succeeded, ..end });
    let found = find(&*store, &call_start.record).await.unwrap();
    assert_eq!((found.status, found.took.is_some()), (CallStatus::Unknown, true));
    assert_eq!(store.output(&call_start.record).await.unwrap().unwrap().get(), "[]");
    let tallies: Vec<u64> = store.statistics().await.unwrap().iter().map(|one| one.tally().total()).collect();
    assert_eq!(tallies.iter().sum::<u64>(), 1, "{tallies:?}");
}

pub(crate) async fn stores_finished_call(database: Database) {
    let store = database.open().await;
    let call_start = start("read_sheet", "{}");
    let mut end = success(&call_start, "excel", "[1]");
    end.sources = vec![Source::Skill, Source::from_name("excel")];
    store.record_finished(call_start.clone(), end.clone());
    // A query returns all calls noted before it.
    let found = find(&*store, &call_start.record).await.unwrap();
    assert_eq!((found.status, found.took), (CallStatus::Succeeded, Some(end.took)));
    assert_eq!(found.sources, end.sources);
    assert_eq!(format!("{:?}", found.start), format!("{call_start:?}"));
    assert_eq!(store.dropped_details(), 0);
}

pub(crate) async fn finished_twice_counts_once(database: Database) {
    let store = database.open().await;
    let call_start = start("t", "{}");
    store.begin(call_start.clone()).await.unwrap();
    let end = success(&call_start, "native", "1");
    store.finish(end.clone()).await.unwrap();
    store.finish(CallEnd { status: CallStatus::Failed, ..end.clone() }).await.unwrap();
    store.record_finished(call_start.clone(), end);
    assert_eq!(find(&*store, &call_start.record).await.unwrap().status, CallStatus::Succeeded);
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 1);
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
}

pub(crate) async fn rejects_end_of_unknown_call(database: Database) {
    let store = database.open().await;
    let (lost, good) = (start("t", "{}"), start("t", "{}"));
    store.begin(good.clone()).await.unwrap();
    // Concurrent, so that both may be written in one batch: the invalid one must not fail the valid one.
    let (bad, fine) = (success(&lost, "native", "1"), success(&good, "native", "1"));
    let (bad, fine) = tokio::join!(store.finish(bad), store.finish(fine));
    assert!(bad.unwrap_err().to_string().contains(lost.record.as_str()));
    fine.unwrap();
    assert_eq!(find(&*store, &good.record).await.unwrap().status, CallStatus::Succeeded);
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 1);
}

pub(crate) async fn stores_call_begun_twice_once(database: Database) {
    let store = database.open().await;
    let call_start = start("t", "{}");
    store.begin(call_start.clone()).await.unwrap();
    store.begin(call_start.clone()).await.unwrap();
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
}

pub(crate) async fn returns_output_by_handle(database: Database) {
    let store = database.open().await;
    let (one, two) = (start("t", "{}"), start("t", "{}"));
    store.begin(one.clone()).await.unwrap();
    store.finish(success(&one, "native", r#"{"content": [ 1.0, "a" ]}"#)).await.unwrap();
    store.record_finished(two.clone(), success(&two, "native", "\"two\""));
    let output =
        async |record: &RecordId| store.output(record).await.unwrap().map(|json| json.get().to_owned());
    assert_eq!(output(&one.record).await.as_deref(), Some(r#"{"content": [ 1.0, "a" ]}"#));
    assert_eq!(output(&two.record).await.as_deref(), Some("\"two\""));
    assert_eq!(output(&RecordId::new("nobody's")).await, None);
}
