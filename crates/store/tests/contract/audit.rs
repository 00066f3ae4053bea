//! The audit log: complete, verifiable, and every change of its tables is found.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use tokio::task::JoinSet;
use toolhub_audit::{
    AuditQuery, AuditRecord, AuditStore, ExportFormat, Tampering, TrustedKeys, verify_json_lines,
};
use toolhub_core::audit::{
    AuditAction, AuditEvent, AuditKind, ChangeEvent, ChangeKind, ChangedObject, HeldCallDecision,
    HeldCallEvent, LoginEvent, RefusalEvent,
};
use toolhub_core::call_log::{CallEnd, CallQuery, CallStart, CallStatus};
use toolhub_core::{Authorization, RawJson};
use toolhub_store::{AuditOptions, AuditedStore, DetailLevel, Retention, StoreOptions};

use crate::database::{Database, start, success};

const DAY: Duration = Duration::from_secs(86_400);

/// A database with an audit log, whose files are in a folder of their own.
struct Audited {
    database: Database,
    folder: TempDir,
    retention: Duration,
}

impl Audited {
    fn new(database: Database) -> Self {
        Self { database, folder: tempfile::tempdir().unwrap(), retention: 400 * DAY }
    }

    async fn open(&self) -> AuditedStore {
        self.open_with(StoreOptions::default()).await
    }

    async fn open_with(&self, options: StoreOptions) -> AuditedStore {
        let key = self.folder.path().join("audit.key");
        let audit = AuditOptions { retention: self.retention, ..AuditOptions::new(key) };
        self.database.open_with_audit(options, &audit).await
    }
}

async fn verify(audit: &dyn AuditStore) -> Result<u64, Tampering> {
    let verification = audit.verify_audit(None).await.unwrap();
    assert_eq!(verification.keys, TrustedKeys::new(audit.audit_key()));
    verification.result.map(|summary| summary.map_or(0, |summary| summary.records()))
}

async fn records(audit: &dyn AuditStore) -> Vec<AuditRecord> {
    let mut all = audit.audit_records(AuditQuery::default()).await.unwrap();
    all.reverse();
    all
}

fn event(principal: &str, reason: &str) -> AuditEvent {
    let login = LoginEvent {
        method: "key".to_owned(),
        accepted: false,
        reason: Some(reason.to_owned()),
        address: None,
    };
    AuditEvent::now(&principal.into(), AuditAction::Login(login))
}

/// Records calls in every way that the ports offer, and returns them with their statuses.
async fn record_calls(store: &AuditedStore) -> Vec<(CallStart, CallStatus)> {
    let mut calls = Vec::new();
    let hub = &store.store;
    let call = |number: usize| {
        let principal = ["local", "key:ci", "oidc:https://idp.example#安"][number % 3];
        let rule = (!number.is_multiple_of(3)).then(|| "rule 1".into());
        let approver = (number % 3 == 2).then(|| "key:ops".into());
        let authorization = Authorization { principal: principal.into(), rule, approver };
        CallStart { authorization, ..start("t", &format!(r#"{{"n":{number}}}"#)) }
    };
    // As rows and in blocks.
    for group in [1, 7, 15, 16, 40] {
        for number in 0..group {
            let call = CallStart { may_change: false, ..call(number) };
            hub.record_finished(call.clone(), success(&call, "excel", "1"));
            calls.push((call, CallStatus::Succeeded));
        }
        hub.flush().await.unwrap();
    }
    // Begun and finished at once, after a while, and with an output that is not journaled.
    for number in 0..20 {
        let call = call(number);
        hub.begin(call.clone()).await.unwrap();
        if number % 4 == 1 {
            hub.flush().await.unwrap();
        }
        let mut end = success(&call, "native", "1");
        if number % 5 == 0 {
            end.output = Some(RawJson::of(&"x".repeat(300 << 10)));
        }
        if number % 3 == 0 {
            end = CallEnd { status: CallStatus::Failed, sources: Vec::new(), ..end };
        }
        let status = end.status;
        match number % 2 {
            0 => hub.finish(end.clone()).await.unwrap(),
            _ => hub.record_finished(call.clone(), end.clone()),
        }
        if number % 6 == 0 {
            // Repeated ends count once.
            hub.record_finished(call.clone(), end);
        }
        calls.push((call, status));
    }
    hub.flush().await.unwrap();
    calls
}

pub(crate) async fn every_call_enters_the_log_once(database: Database) {
    let audited = Audited::new(database);
    let store = audited.open().await;
    let calls = record_calls(&store).await;
    drop(store);
    let store = audited.open().await;
    assert_eq!(verify(&*store.audit).await, Ok(calls.len() as u64));
    let found = records(&*store.audit).await;
    assert!(found.iter().map(|record| record.sequence).eq(1..=calls.len() as u64));
    let mut by_record: HashMap<String, AuditRecord> = HashMap::new();
    for record in found {
        let AuditAction::Call(call) = &record.event.action else { panic!("{record:?}") };
        assert!(by_record.insert(call.record.clone(), record).is_none(), "twice");
    }
    for (start, status) in &calls {
        let AuditRecord { event, .. } = &by_record[start.record.as_str()];
        let AuditAction::Call(call) = &event.action else { panic!("{event:?}") };
        assert_eq!((event.principal.clone(), event.at), (start.authorization.principal.clone(), start.at));
        assert_eq!((call.status, call.may_change, call.tool.as_str()), (*status, start.may_change, "t"));
        assert_eq!(call.rule.as_deref(), start.authorization.rule.as_deref());
        assert_eq!(call.approver.as_deref(), start.authorization.approver.as_deref());
        let source = if start.may_change { "native" } else { "excel" };
        assert_eq!(call.sources, [source]);
        let digest: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(
            <sha2::Sha256 as sha2::Digest>::new(),
            start.arguments.get(),
        ))
        .into();
        assert_eq!(call.arguments_sha256, digest);
    }
}

pub(crate) async fn events_of_every_kind_can_be_queried(database: Database) {
    let audited = Audited::new(database);
    let store = audited.open().await;
    let text = str::to_owned;
    let change = |object| {
        AuditAction::Change(ChangeEvent {
            object,
            name: text("n\0"),
            change: ChangeKind::Deleted,
            sha256: Some([1; 32]),
            detail: None,
        })
    };
    let actions = [
        event("", "expired").action,
        AuditAction::Refusal(RefusalEvent {
            operation: text("call"),
            resource: text("delete"),
            rule: Some(text("rule 2")),
            reference: text("ref"),
        }),
        AuditAction::HeldCall(HeldCallEvent {
            reference: text("ref"),
            tool: text("write"),
            caller: text("key:ci"),
            decision: HeldCallDecision::Denied,
            rule: None,
            arguments_sha256: None,
        }),
        change(ChangedObject::Key),
        change(ChangedObject::Rule),
        change(ChangedObject::Config),
        change(ChangedObject::Server),
    ];
    let principals = ["local", "key:ci", "a\0b"];
    let began = SystemTime::now() - Duration::from_secs(1_000);
    let mut expected = Vec::new();
    for (number, action) in actions.iter().cycle().take(60).enumerate() {
        let at = crate::database::hour(0) + Duration::from_secs(number as u64);
        let event = AuditEvent { at, principal: principals[number % 3].into(), action: action.clone() };
        store.audit.append(event.clone()).await.unwrap();
        expected.push(event);
    }
    let call = start("t", "{}");
    store.store.record_finished(call.clone(), success(&call, "native", "1"));
    let all = records(&*store.audit).await;
    assert_eq!(
        all[..60].iter().map(|record| &record.event).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert_eq!(all[60].event.action.kind(), AuditKind::Call);
    let any = AuditQuery::default;
    let queries = [
        any(),
        AuditQuery { principal: Some(text("key:ci")), ..any() },
        AuditQuery { principal: Some(text("a\0b")), ..any() },
        AuditQuery { principal: Some(text("key")), ..any() },
        AuditQuery { kind: Some(AuditKind::HeldCall), ..any() },
        AuditQuery { since: Some(expected[20].at), ..any() },
        AuditQuery { until: Some(expected[20].at), ..any() },
        AuditQuery { since: Some(began), ..any() },
        AuditQuery { after: Some(7), before: Some(50), ..any() },
        AuditQuery { after: Some(7), limit: Some(3), ..any() },
        AuditQuery { principal: Some(text("local")), kind: Some(AuditKind::Login), limit: Some(2), ..any() },
        AuditQuery { limit: Some(0), ..any() },
    ];
    for query in queries {
        let mut expected: Vec<AuditRecord> =
            all.iter().rev().filter(|record| query.matches(record)).cloned().collect();
        expected.truncate(query.limit.unwrap_or(usize::MAX));
        assert_eq!(store.audit.audit_records(query.clone()).await.unwrap(), expected, "{query:?}");
    }
    assert_eq!(verify(&*store.audit).await, Ok(61));
}

/// Several stores append to one log at the same time, more than their queues hold. Each append is durable when it
/// returns.
pub(crate) async fn stores_share_one_log(database: Database) {
    let audited = Audited::new(database);
    let stores = [audited.open().await, audited.open().await];
    let mut tasks = JoinSet::new();
    for task in 0..1_500 {
        let audit = Arc::clone(&stores[task % 2].audit);
        tasks.spawn(async move { audit.append(event("key:ci", &task.to_string())).await.unwrap() });
    }
    for number in 0..1_000 {
        let call = start("t", "{}");
        stores[number % 2].store.record_finished(call.clone(), success(&call, "native", "1"));
    }
    tasks.join_all().await;
    for store in &stores {
        store.store.flush().await.unwrap();
    }
    let summary = stores[0].audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
    assert_eq!(summary.records(), 2_500);
    assert!(summary.confirmed >= 1_000, "{summary:?}");
    drop(stores);
    let store = audited.open().await;
    let summary = store.audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
    assert_eq!(summary.confirmed, 2_500, "a closed store signs what it appended");
}

pub(crate) async fn changed_tables_are_found(database: Database) {
    let changed = |sequence| Tampering::Changed { sequence };
    let cases: [(&str, &str, Tampering); 10] = [
        (
            "a record",
            "UPDATE audit_batches SET entries = overlay_byte(entries, 40) WHERE first_seq = 21",
            changed(21),
        ),
        (
            "batches removed",
            "DELETE FROM audit_batches WHERE first_seq IN (21, 41)",
            Tampering::Missing { first: 21, last: 60 },
        ),
        (
            "the first batch removed",
            "DELETE FROM audit_batches WHERE first_seq = 1",
            Tampering::Missing { first: 1, last: 20 },
        ),
        (
            "the end removed",
            "DELETE FROM audit_batches WHERE first_seq = 81",
            Tampering::Truncated { last: 80, covered: 100 },
        ),
        (
            "the principals",
            "UPDATE audit_batches SET principals = 'x' WHERE first_seq = 41",
            Tampering::ChangedSummary { first: 41, last: 60 },
        ),
        ("the end set back", "UPDATE audit_log SET seq = 99", Tampering::Added { first: 100, last: 100 }),
        (
            "the end set ahead",
            "UPDATE audit_log SET seq = 101",
            Tampering::Truncated { last: 100, covered: 101 },
        ),
        (
            "another log",
            "UPDATE audit_log SET log = last_hash_of(16)",
            Tampering::ForeignChain { sequence: 100 },
        ),
        ("the state removed", "DELETE FROM audit_log", Tampering::MissingState { first: 100 }),
        (
            "the end and its checkpoints removed",
            "DELETE FROM audit_batches WHERE first_seq = 81;
             UPDATE audit_log SET seq = 80, hash = (SELECT last_hash FROM audit_batches WHERE last_seq = 80),
                 checkpoint_seq = 0;
             DELETE FROM audit_checkpoints",
            Tampering::Truncated { last: 80, covered: 100 },
        ),
    ];
    for (name, sql, expected) in cases {
        let audited = Audited::new(database.another());
        {
            let store = audited.open().await;
            for _ in 0..5 {
                for _ in 0..20 {
                    let call = start("t", "{}");
                    store.store.record_finished(call.clone(), success(&call, "native", "1"));
                }
                store.store.flush().await.unwrap();
            }
        }
        {
            let store = audited.open().await;
            assert_eq!(verify(&*store.audit).await, Ok(100), "{name}");
        }
        audited.database.tamper(sql).await;
        let store = audited.open().await;
        assert_eq!(verify(&*store.audit).await, Err(expected), "{name}");
        // What remains can still be read.
        assert!(!records(&*store.audit).await.is_empty());
    }
}

/// Without the head file, the state and the checkpoints, the records alone show that there was a log.
pub(crate) async fn records_without_a_log_are_found(database: Database) {
    let audited = Audited::new(database);
    {
        let store = audited.open().await;
        store.audit.append(event("key:ann", "one")).await.unwrap();
    }
    audited.database.tamper("DELETE FROM audit_log; DELETE FROM audit_checkpoints").await;
    std::fs::remove_file(audited.folder.path().join("audit.head")).unwrap();
    let store = audited.open().await;
    store.audit.sign_checkpoint().await.unwrap();
    assert_eq!(verify(&*store.audit).await, Err(Tampering::MissingState { first: 1 }));
    let exported = store.audit.export_audit(ExportFormat::JsonLines, &mut Vec::new()).await;
    assert!(exported.is_err_and(|error| error.to_string().contains("audit_log")));
}

/// A checkpoint is signed when it is requested, without waiting for its time or for the end of the store.
pub(crate) async fn requested_checkpoint_confirms_all_records(database: Database) {
    let audited = Audited::new(database);
    let store = audited.open().await;
    for number in 0..5 {
        store.audit.append(event("key:ann", &number.to_string())).await.unwrap();
        let call = start("t", "{}");
        store.store.record_finished(call.clone(), success(&call, "native", "1"));
        store.audit.sign_checkpoint().await.unwrap();
        let summary = store.audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
        assert_eq!((summary.last, summary.confirmed), (2 * number + 2, 2 * number + 2));
    }
}

pub(crate) async fn export_reads_back(database: Database) {
    let audited = Audited::new(database);
    let store = audited.open().await;
    let mut export = Vec::new();
    assert_eq!(store.audit.export_audit(ExportFormat::JsonLines, &mut export).await.unwrap(), 0);
    let calls = record_calls(&store).await;
    for number in 0..50 {
        store.audit.append(event("key:ci", &number.to_string())).await.unwrap();
    }
    drop(store);
    let store = audited.open().await;
    let mut export = Vec::new();
    let count = store.audit.export_audit(ExportFormat::JsonLines, &mut export).await.unwrap();
    assert_eq!(count, calls.len() as u64 + 50);
    let keys = TrustedKeys::new(store.audit.audit_key());
    let summary = verify_json_lines(export.as_slice(), &keys).unwrap().unwrap();
    let stored = store.audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
    assert_eq!((summary.hash, summary.last, summary.confirmed), (stored.hash, count, count));
    let other = verify_json_lines(export.as_slice(), &TrustedKeys::default()).unwrap();
    assert!(matches!(other, Err(Tampering::BadSignature { .. })), "{other:?}");
    let mut events = Vec::new();
    assert_eq!(store.audit.export_audit(ExportFormat::Ocsf, &mut events).await.unwrap(), count);
    let events: Vec<serde_json::Value> =
        String::from_utf8(events).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len() as u64, count);
    assert_eq!(events.last().unwrap()["metadata"]["uid"], stored.hash.to_string());
    assert_eq!(events.iter().filter(|event| event["class_uid"] == 3002).count(), 50);
}

/// Old records are deleted with a signed statement; calls and results may be deleted independently.
pub(crate) async fn retention_keeps_the_log_verifiable(database: Database) {
    let audited = Audited { retention: 30 * DAY, ..Audited::new(database) };
    let old = |days: u32, reason: &str| AuditEvent {
        at: SystemTime::now() - days * DAY,
        ..event("key:ci", reason)
    };
    {
        let retention = Retention { every: Duration::from_secs(3600), ..Retention::default() };
        let store = audited.open_with(StoreOptions { retention, ..StoreOptions::default() }).await;
        for number in 0..30 {
            let days = if number < 20 { 40 } else { 10 };
            store.audit.append(old(days, &number.to_string())).await.unwrap();
        }
        let mut call = start("t", "{}");
        call.at = SystemTime::now() - 10 * DAY;
        store.store.record_finished(call.clone(), success(&call, "native", "1"));
        store.store.flush().await.unwrap();
    }
    let retention = Retention { calls: 5 * DAY, every: Duration::from_millis(20), ..Retention::default() };
    let store = audited.open_with(StoreOptions { retention, ..StoreOptions::default() }).await;
    let started = Instant::now();
    loop {
        store.audit.append(event("local", "now")).await.unwrap();
        let summary = store.audit.verify_audit(None).await.unwrap().result.unwrap().unwrap();
        let calls = store.store.calls(CallQuery::default()).await.unwrap().len();
        if (summary.first, calls) == (21, 0) {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{summary:?}, {calls} calls");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let left = records(&*store.audit).await;
    assert_eq!(left[0].sequence, 21);
    assert!(left.iter().any(|record| record.event.action.kind() == AuditKind::Call), "its call was deleted");
    let mut export = Vec::new();
    store.audit.export_audit(ExportFormat::JsonLines, &mut export).await.unwrap();
    let keys = TrustedKeys::new(store.audit.audit_key());
    assert_eq!(verify_json_lines(export.as_slice(), &keys).unwrap().unwrap().first, 21);
    drop(store);
    // Without the signed statement the deletion is tampering.
    audited.database.tamper("DELETE FROM audit_checkpoints WHERE kind = 'base'").await;
    let store = audited.open().await;
    assert_eq!(verify(&*store.audit).await, Err(Tampering::Missing { first: 1, last: 20 }));
}

/// A flood with `detail = "sample"`: every call is recorded nevertheless.
pub(crate) async fn flood_is_recorded_completely(database: Database) {
    const CALLS: usize = 20_000;
    let audited = Audited::new(database);
    let store =
        audited.open_with(StoreOptions { detail: DetailLevel::Sample, ..StoreOptions::default() }).await;
    let output = RawJson::of(&"x".repeat(4_000));
    for _ in 0..CALLS {
        assert!(store.store.should_store_details());
        if let Some(capacity) = store.store.wait_for_capacity() {
            capacity.await;
        }
        let call = CallStart { may_change: false, ..start("t", "{}") };
        let end = CallEnd { output: Some(output.clone()), ..success(&call, "native", "1") };
        store.store.record_finished(call, end);
    }
    store.store.flush().await.unwrap();
    assert_eq!((verify(&*store.audit).await, store.store.dropped_details()), (Ok(CALLS as u64), 0));
}

/// A call whose store died is recorded as unknown once, by another store; a late end is recorded as well.
pub(crate) async fn call_of_a_dead_store_is_recorded_as_unknown(database: Database) {
    let audited = Audited::new(database);
    let (dead, other, plain) = (audited.open().await, audited.open().await, audited.database.open().await);
    let (call, unaudited) = (start("t", "{}"), start("t", "{}"));
    dead.store.begin(call.clone()).await.unwrap();
    plain.begin(unaudited.clone()).await.unwrap();
    assert_eq!(verify(&*other.audit).await, Ok(0), "it runs");
    drop((dead, plain));
    let statuses = async |audit: &dyn AuditStore| -> Vec<CallStatus> {
        records(audit)
            .await
            .into_iter()
            .map(|record| match record.event.action {
                AuditAction::Call(found) if found.record == call.record.as_str() => found.status,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let started = Instant::now();
    while statuses(&*other.audit).await.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..3 {
        assert_eq!(statuses(&*other.audit).await, [CallStatus::Unknown]);
    }
    other.store.finish(success(&call, "native", "1")).await.unwrap();
    assert_eq!(statuses(&*other.audit).await, [CallStatus::Unknown, CallStatus::Succeeded]);
    assert_eq!(verify(&*other.audit).await, Ok(2));
}

/// Without the audit log nothing is recorded, and an event is refused instead of being lost.
pub(crate) async fn store_without_audit_log_records_nothing(database: Database) {
    let audited = Audited::new(database);
    let plain = audited.database.open().await;
    for _ in 0..30 {
        let call = start("t", "{}");
        plain.record_finished(call.clone(), success(&call, "native", "1"));
    }
    plain.flush().await.unwrap();
    let store = audited.open().await;
    assert_eq!(verify(&*store.audit).await, Ok(0));
    assert!(!audited.folder.path().join("audit.head").exists());
}
