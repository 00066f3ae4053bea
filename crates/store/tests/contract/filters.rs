//! Looks into the past: each filter, several at once, the order, and following.

use toolhub_core::Source;
use toolhub_core::memory::{AttemptStatus, CallEnd, CallQuery, RecordId, Status};
use toolhub_core::ports::HubStore;

use crate::database::{Database, attempt, hour, start, success};

/// Four calls, oldest first.
async fn fill(store: &dyn HubStore) -> Vec<RecordId> {
    let mut calls = vec![
        start("read_sheet", r#"{"path":"a.xlsx","rows":5}"#),
        start("write_sheet", r#"{"path":"Über.xlsx"}"#),
        start("search_web", r#"{"query":"\u4eac\u90fd weather"}"#),
        start("read_sheet", r#"{ "rows": 5, "path": "a.xlsx" }"#),
    ];
    for (index, call) in calls.iter_mut().enumerate() {
        call.at = hour(index as u64);
    }
    calls[1].conversation = Some("work".to_owned());
    calls[1].candidates = vec![Source::named("sheets")];
    calls[2].request = Some("Was it SUNNY in 京都?".to_owned());
    store.note(calls[0].clone(), success(&calls[0], "excel", "1"));
    store.begin(calls[1].clone()).await.unwrap();
    let mut failed = success(&calls[2], "brave", "1");
    failed.attempts = vec![attempt("brave", "search", AttemptStatus::Failed)];
    store.note(calls[2].clone(), CallEnd { status: Status::Failed, sources: Vec::new(), ..failed });
    let mut mixed = success(&calls[3], "native", "1");
    mixed.attempts.insert(0, attempt("excel", "read_sheet", AttemptStatus::Failed));
    store.note(calls[3].clone(), mixed);
    calls.into_iter().map(|call| call.record).collect()
}

async fn found(store: &dyn HubStore, records: &[RecordId], query: CallQuery) -> Vec<usize> {
    let calls = store.calls(query).await.unwrap();
    calls.iter().map(|call| records.iter().position(|one| *one == call.start.record).unwrap()).collect()
}

pub(crate) async fn each_alone(database: Database) {
    let store = database.open().await;
    let records = fill(&*store).await;
    let text = |text: &str| Some(text.to_owned());
    let any = CallQuery::default;
    let cases = [
        ("all", any(), vec![3, 2, 1, 0]),
        ("tool", CallQuery { tool: text("read_sheet"), ..any() }, vec![3, 0]),
        ("no such tool", CallQuery { tool: text("read"), ..any() }, vec![]),
        // Call 3 tried `excel`, but was answered by another.
        ("source", CallQuery { source: text("excel"), ..any() }, vec![0]),
        ("tried source", CallQuery { source: text("brave"), ..any() }, vec![2]),
        ("source where it runs", CallQuery { source: text("sheets"), ..any() }, vec![1]),
        ("part of a source", CallQuery { source: text("exce"), ..any() }, vec![]),
        ("status", CallQuery { status: Some(Status::Failed), ..any() }, vec![2]),
        ("running", CallQuery { status: Some(Status::Running), ..any() }, vec![1]),
        ("unknown", CallQuery { status: Some(Status::Unknown), ..any() }, vec![]),
        ("conversation", CallQuery { conversation: text("work"), ..any() }, vec![1]),
        ("arguments", CallQuery { arguments: text(r#"{"path":"a.xlsx","rows":5}"#), ..any() }, vec![3, 0]),
        ("tool's name", CallQuery { text: text("SHEET"), ..any() }, vec![3, 1, 0]),
        ("request", CallQuery { text: text("sunny"), ..any() }, vec![2]),
        ("Chinese", CallQuery { text: text("京都"), ..any() }, vec![2]),
        ("escaped", CallQuery { text: text("京都 WEATHER"), ..any() }, vec![2]),
        ("umlaut", CallQuery { text: text("über.X"), ..any() }, vec![1]),
        ("no pattern", CallQuery { text: text("%"), ..any() }, vec![]),
        ("since", CallQuery { since: Some(hour(2)), ..any() }, vec![3, 2]),
        ("after", CallQuery { after: Some(records[1].clone()), ..any() }, vec![3, 2]),
        ("before", CallQuery { before: Some(records[1].clone()), ..any() }, vec![0]),
        ("limit", CallQuery { limit: Some(2), ..any() }, vec![3, 2]),
        ("limit 0", CallQuery { limit: Some(0), ..any() }, vec![]),
    ];
    for (name, query, expect) in cases {
        assert_eq!(found(&*store, &records, query).await, expect, "{name}");
    }
}

pub(crate) async fn together(database: Database) {
    let store = database.open().await;
    let records = fill(&*store).await;
    let query = CallQuery {
        tool: Some("read_sheet".to_owned()),
        source: Some("native".to_owned()),
        status: Some(Status::Succeeded),
        arguments: Some(r#"{"path":"a.xlsx","rows":5}"#.to_owned()),
        text: Some("A.XLSX".to_owned()),
        since: Some(hour(1)),
        after: Some(records[0].clone()),
        limit: Some(9),
        ..CallQuery::default()
    };
    assert_eq!(found(&*store, &records, query.clone()).await, [3]);
    let other = CallQuery { before: Some(records[3].clone()), ..query };
    assert!(found(&*store, &records, other).await.is_empty());
}

pub(crate) async fn newest_first(database: Database) {
    let store = database.open().await;
    // Written in another order than they began.
    let mut calls: Vec<_> = (0..30).map(|_| start("t", "{}")).collect();
    let expect: Vec<RecordId> = calls.iter().rev().map(|call| call.record.clone()).collect();
    calls.rotate_left(11);
    for call in calls {
        store.note(call.clone(), success(&call, "native", "1"));
    }
    let found = store.calls(CallQuery::default()).await.unwrap();
    assert_eq!(found.into_iter().map(|call| call.start.record).collect::<Vec<_>>(), expect);
}

pub(crate) async fn follow(database: Database) {
    let (writer, reader) = (database.open().await, database.open().await);
    let mut last = RecordId::new("");
    for round in 0..5 {
        let calls: Vec<_> = (0..=round).map(|_| start("t", "{}")).collect();
        for call in &calls {
            writer.note(call.clone(), success(call, "native", "1"));
        }
        writer.flush().await.unwrap();
        let new = reader.calls(CallQuery { after: Some(last), ..CallQuery::default() }).await.unwrap();
        assert_eq!(new.len(), calls.len());
        last = new[0].start.record.clone();
    }
}

/// Long arguments are kept in part, and found by all of them.
pub(crate) async fn long_arguments_by_their_whole_text(database: Database) {
    let store = database.open().await;
    let long = |last: &str| format!(r#"{{"text":"{}{last}"}}"#, "x".repeat(1 << 20));
    for arguments in [long("a"), long("b")] {
        let mut call = start("t", &arguments);
        call.arguments = toolhub_core::memory::stored_arguments(&call.arguments);
        store.note(call.clone(), success(&call, "native", "1"));
    }
    store.flush().await.unwrap();
    let found = store.calls(CallQuery { arguments: Some(long("b")), ..CallQuery::default() }).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].start.arguments.get().len() < 16 << 10);
}
