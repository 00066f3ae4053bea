//! A PostgreSQL server that is restarted, and one that stays stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinSet;
use toolhub_core::call_log::{
    AttemptStatus, CallEnd, CallQuery, CallStart, CallStatus, RecordId, StoredAttempt,
};
use toolhub_core::ports::HubStore;
use toolhub_core::{CallId, RawJson, Source, ToolName};
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::open_at;

pub(crate) fn call() -> (CallStart, CallEnd) {
    let start = CallStart {
        record: RecordId::generate(),
        call: CallId::generate(),
        tool: ToolName::new("t"),
        arguments: RawJson::empty_object(),
        conversation: None,
        request: None,
        strategy: "first".to_owned(),
        candidates: vec![Source::Native],
        may_change: true,
        at: SystemTime::now(),
        authorization: toolhub_core::Authorization::default(),
        parent: None,
    };
    let took = Duration::from_millis(1);
    let tool = start.tool.clone();
    let end = CallEnd {
        record: start.record.clone(),
        status: CallStatus::Succeeded,
        took,
        error: None,
        sources: vec![Source::Native],
        attempts: vec![StoredAttempt {
            source: Source::Native,
            tool,
            status: AttemptStatus::Succeeded,
            took,
            error: None,
        }],
        output: Some(RawJson::from("x")),
    };
    (start, end)
}

async fn work(store: Arc<dyn HubStore>, stop: Arc<AtomicBool>) -> Vec<RecordId> {
    let mut finished = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let (start, end) = call();
        store.begin(start.clone()).await.unwrap();
        store.finish(end).await.unwrap();
        finished.push(start.record);
        let (start, end) = call();
        store.record_finished(start, end);
        tokio::task::yield_now().await;
    }
    finished
}

async fn all_counted(store: &dyn HubStore) -> (usize, u64) {
    let calls = store.calls(CallQuery::default()).await.unwrap().len();
    let counted = store.statistics().await.unwrap().iter().map(|one| one.tally().total()).sum();
    (calls, counted)
}

/// While the server restarts, writers are delayed but get no error. No call is lost or counted twice.
#[tokio::test(flavor = "multi_thread")]
async fn server_restart_loses_no_call() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let store = open_at(&url).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        tasks.spawn(work(Arc::clone(&store), Arc::clone(&stop)));
    }
    let (unfinished, _) = call();
    store.begin(unfinished.clone()).await.unwrap();
    for how in [Stop::Immediate, Stop::Fast, Stop::Immediate] {
        let before = all_counted(&*store).await.0;
        server.stop(how);
        let mut look = JoinSet::new();
        let looking = Arc::clone(&store);
        look.spawn(async move { all_counted(&*looking).await.0 });
        server.restart();
        let seen = look.join_all().await;
        assert!(seen[0] >= before, "a look while it was away is answered when it is back");
        let back = Instant::now();
        while all_counted(&*store).await.0 < before + 100 {
            assert!(back.elapsed() < Duration::from_secs(20), "nothing goes on after the server is back");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let finished: Vec<RecordId> = tasks.join_all().await.into_iter().flatten().collect();
    store.flush().await.unwrap();

    let stored = store.calls(CallQuery::default()).await.unwrap();
    let succeeded: std::collections::HashSet<_> = stored
        .iter()
        .filter(|call| call.status == CallStatus::Succeeded)
        .map(|call| &call.start.record)
        .collect();
    assert!(finished.len() > 100, "too little happened: {}", finished.len());
    assert!(finished.iter().all(|record| succeeded.contains(record)));
    let (calls, counted) = all_counted(&*store).await;
    assert_eq!(counted, calls as u64 - 1 + store.dropped_details());
    // The new connection holds the liveness lock of this store again, so that its unfinished call is still running.
    let other = open_at(&url).await.unwrap();
    let running = CallQuery { status: Some(CallStatus::Running), ..CallQuery::default() };
    let running = other.calls(running).await.unwrap();
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].start.record, unfinished.record);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_server_fails_calls_that_must_be_recorded() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let store = open_at(&url).await.unwrap();
    let ((one, one_end), (two, _)) = (call(), call());
    store.begin(one.clone()).await.unwrap();
    server.stop(Stop::Fast);

    let error = open_at(&url).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    let started = Instant::now();
    for _ in 0..100 {
        let (start, end) = call();
        store.record_finished(start, end);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "a note never waits");
    let (begun, finished) = tokio::join!(store.begin(two.clone()), store.finish(one_end));
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
    for answer in [begun, finished] {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("cannot be reached"), "{error}");
    }

    server.restart();
    let (again, _) = call();
    store.begin(again.clone()).await.unwrap();
    let calls = store.calls(CallQuery::default()).await.unwrap();
    let status =
        |record: &RecordId| calls.iter().find(|call| call.start.record == *record).map(|call| call.status);
    assert_eq!(status(&again.record), Some(CallStatus::Running));
    assert_eq!(status(&two.record), None, "its caller was told that it was not recorded");
    assert_eq!(status(&one.record), Some(CallStatus::Succeeded), "what is true is written late");
    let counted: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().total()).sum();
    assert_eq!(counted, 101, "calls whose details were lost are counted");
}
