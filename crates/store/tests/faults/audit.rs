//! The audit log of a process that is killed while it writes: the chain stays whole, and every acknowledged call and
//! event is in it exactly once.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use toolhub_audit::{AuditQuery, AuditStore};
use toolhub_core::audit::AuditAction;
use toolhub_core::call_log::{CallHistory as _, CallQuery, CallStatus};
use toolhub_store::{AuditOptions, AuditedStore, SqliteStore, StoreOptions, open_with_audit};
use toolhub_testkit::postgres::PostgresServer;

use crate::killed::{PrintedState, hammer_until_killed, read};
use crate::place;

/// Number of kills; more with `TOOLHUB_AUDIT_KILLS`.
fn kills() -> usize {
    std::env::var("TOOLHUB_AUDIT_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(6)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_audit_log_is_whole_and_complete_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path().to_str().unwrap(), folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_audit_log_is_whole_and_complete_after_kills() {
    let data = tempfile::tempdir().unwrap();
    check(&PostgresServer::shared().new_database(), data.path()).await;
}

async fn check(location: &str, data: &Path) {
    let key = data.join("audit.key");
    let (mut calls, mut appended) = (HashMap::new(), HashSet::new());
    for _ in 0..kills() {
        let mut lines = hammer_until_killed(location, data, Some(&key));
        // The kill may truncate the last line, so that it names another event.
        if lines.last().is_some_and(|line| line.starts_with("appended")) {
            lines.pop();
        }
        for line in &lines {
            assert!(!line.starts_with("unappended"), "{line}");
            appended.extend(line.strip_prefix("appended ").map(str::to_owned));
        }
        lines.retain(|line| !line.starts_with("appended"));
        read(&lines, &mut calls);
        let AuditedStore { store, audit } = open(location, data, &key).await;
        // A store without the audit log replays journals too, and must not leave out their calls.
        if fastrand::bool() {
            drop((store, audit));
            let store = crate::open_with_journals(location, data).await.unwrap();
            store.calls(CallQuery { limit: Some(1), ..CallQuery::default() }).await.unwrap();
        }
    }
    let AuditedStore { store, audit } = open(location, data, &key).await;
    let stored = settled(&*audit, &*store, calls.len()).await;
    let summary = audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
    drop((store, audit));
    // A store signs what is in the log when it is closed.
    let AuditedStore { audit, .. } = open(location, data, &key).await;
    let verified = audit.verify_audit(None).await.unwrap();
    assert!(verified.has_head);
    assert_eq!(verified.result.unwrap().unwrap().confirmed, summary.last);

    let (mut statuses, mut logins) =
        (HashMap::<String, Vec<CallStatus>>::new(), HashMap::<String, usize>::new());
    for record in audit.audit_records(AuditQuery::default()).await.unwrap() {
        match record.event.action {
            AuditAction::Call(call) => {
                assert_eq!(*record.event.principal, format!("key:{}", call.tool));
                statuses.entry(call.record).or_default().push(call.status);
            }
            AuditAction::Login(login) => *logins.entry(login.reason.unwrap()).or_default() += 1,
            other => panic!("{other:?}"),
        }
    }
    for (record, printed) in &calls {
        let found = statuses.get(record).map_or(&[][..], Vec::as_slice);
        let is_right = match (printed, found) {
            (PrintedState::Begun, [status]) => *status == CallStatus::Unknown,
            (PrintedState::Finishing(expected), [status]) => {
                *status == CallStatus::Unknown || status == expected
            }
            (PrintedState::Finished(expected), [status]) => status == expected,
            _ => false,
        };
        assert!(is_right, "`{record}` came to {printed:?} and is recorded as {found:?}");
    }
    for (record, found) in &statuses {
        assert_eq!(found.as_slice(), [stored[record]], "`{record}` is in the history otherwise");
    }
    assert_eq!(stored.len(), statuses.len(), "the history has calls that the audit log lacks");
    for reason in &appended {
        assert_eq!(logins.get(reason), Some(&1), "{reason}");
    }
    assert!(logins.values().all(|count| *count == 1));
    let kills = kills();
    assert!(
        calls.len() > 10 * kills && appended.len() > kills,
        "{} calls, {} events",
        calls.len(),
        appended.len()
    );
    println!("{} kills, {} records, {} acknowledged calls", kills, summary.records(), calls.len());
}

async fn open(location: &str, data: &Path, key: &Path) -> AuditedStore {
    open_with_audit(&place(location), StoreOptions::default(), &AuditOptions::new(key), Some(data))
        .await
        .unwrap()
}

/// Waits until no call counts as running, and returns the statuses of all calls in the history.
async fn settled(
    audit: &dyn AuditStore,
    store: &dyn toolhub_core::ports::HubStore,
    least: usize,
) -> HashMap<String, CallStatus> {
    let started = Instant::now();
    loop {
        // Reading the log records the calls of dead stores.
        audit.audit_records(AuditQuery { limit: Some(1), ..AuditQuery::default() }).await.unwrap();
        let calls = store.calls(CallQuery::default()).await.unwrap();
        let running = calls.iter().filter(|call| call.status == CallStatus::Running).count();
        if running == 0 && calls.len() >= least {
            return calls.into_iter().map(|call| (call.start.record.to_string(), call.status)).collect();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{running} calls of dead stores still run");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Calls wait for a damaged log instead of being dropped, and enter it once it is repaired.
#[tokio::test(flavor = "multi_thread")]
async fn inconsistent_log_stops_calls_and_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(folder.path().join("audit.key"));
    let store = SqliteStore::open_with_audit(folder.path(), StoreOptions::default(), &options).unwrap();
    use toolhub_core::call_log::CallLog as _;
    use toolhub_core::ports::HubStore as _;
    let call = || {
        let (start, end) = crate::server_away::call();
        let record = start.record.to_string();
        store.record_finished(start, end);
        record
    };
    let mut records: Vec<String> = (0..40).map(|_| call()).collect();
    store.flush().await.unwrap();
    let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.execute("UPDATE audit_log SET seq = 0", []).unwrap();
    records.extend((0..40).map(|_| call()));
    let error = store.flush().await.unwrap_err().to_string();
    assert!(error.contains("audit log was changed"), "{error}");
    assert_eq!((store.dropped_details(), store.calls(CallQuery::default()).await.unwrap().len()), (0, 40));
    connection.execute("UPDATE audit_log SET seq = (SELECT max(last_seq) FROM audit_batches)", []).unwrap();
    let started = Instant::now();
    while store.flush().await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    use toolhub_audit::AuditHistory as _;
    let mut found: Vec<String> = store
        .audit_records(AuditQuery::default())
        .await
        .unwrap()
        .into_iter()
        .map(|record| match record.event.action {
            AuditAction::Call(call) => call.record,
            other => panic!("{other:?}"),
        })
        .collect();
    found.sort_unstable();
    records.sort_unstable();
    assert_eq!(found, records);
    assert!(store.verify_audit(None).await.unwrap().result.is_ok());
}
