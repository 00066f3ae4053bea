//! Queries of the call history: each filter, combined filters, the order, and following new calls.

use toolhub_core::call_log::{AttemptStatus, CallEnd, CallQuery, CallStart, CallStatus, RecordId};
use toolhub_core::ports::HubStore;
use toolhub_core::{CallId, Source};

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
    calls[2].call = CallId::new("call_2");
    calls[3].parent = Some(CallId::new("call_2"));
    calls[1].conversation = Some("work".to_owned());
    calls[1].candidates = vec![Source::from_name("sheets")];
    calls[2].request = Some("Was it SUNNY in 京都?".to_owned());
    store.record_finished(calls[0].clone(), success(&calls[0], "excel", "1"));
    store.begin(calls[1].clone()).await.unwrap();
    let mut failed = success(&calls[2], "brave", "1");
    failed.attempts = vec![attempt("brave", "search", AttemptStatus::Failed)];
    store.record_finished(
        calls[2].clone(),
        CallEnd { status: CallStatus::Failed, sources: Vec::new(), ..failed },
    );
    let mut mixed = success(&calls[3], "native", "1");
    mixed.attempts.insert(0, attempt("excel", "read_sheet", AttemptStatus::Failed));
    store.record_finished(calls[3].clone(), mixed);
    calls.into_iter().map(|call| call.record).collect()
}

async fn found(store: &dyn HubStore, records: &[RecordId], query: CallQuery) -> Vec<usize> {
    let calls = store.calls(query).await.unwrap();
    calls.iter().map(|call| records.iter().position(|one| *one == call.start.record).unwrap()).collect()
}

pub(crate) async fn single_filters(database: Database) {
    let store = database.open().await;
    let records = fill(&*store).await;
    let text = |text: &str| Some(text.to_owned());
    let any = CallQuery::default;
    let cases = [
        ("all", any(), vec![3, 2, 1, 0]),
        ("tool", CallQuery { tool: text("read_sheet"), ..any() }, vec![3, 0]),
        ("no such tool", CallQuery { tool: text("read"), ..any() }, vec![]),
        // Call 3 also has an attempt at `excel`, which failed; its result is from `native`.
        ("source", CallQuery { source: text("excel"), ..any() }, vec![0]),
        ("tried source", CallQuery { source: text("brave"), ..any() }, vec![2]),
        ("source where it runs", CallQuery { source: text("sheets"), ..any() }, vec![1]),
        ("part of a source", CallQuery { source: text("exce"), ..any() }, vec![]),
        ("status", CallQuery { status: Some(CallStatus::Failed), ..any() }, vec![2]),
        ("running", CallQuery { status: Some(CallStatus::Running), ..any() }, vec![1]),
        ("unknown", CallQuery { status: Some(CallStatus::Unknown), ..any() }, vec![]),
        ("conversation", CallQuery { conversation: text("work"), ..any() }, vec![1]),
        ("call", CallQuery { call: text("call_2"), ..any() }, vec![2]),
        ("no such call", CallQuery { call: text("call"), ..any() }, vec![]),
        ("parent", CallQuery { parent: text("call_2"), ..any() }, vec![3]),
        ("no such parent", CallQuery { parent: text("call"), ..any() }, vec![]),
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

pub(crate) async fn combined_filters(database: Database) {
    let store = database.open().await;
    let records = fill(&*store).await;
    let query = CallQuery {
        tool: Some("read_sheet".to_owned()),
        source: Some("native".to_owned()),
        status: Some(CallStatus::Succeeded),
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

pub(crate) async fn returns_newest_first(database: Database) {
    let store = database.open().await;
    // Recorded in a different order than they began.
    let mut calls: Vec<_> = (0..30).map(|_| start("t", "{}")).collect();
    let expect: Vec<RecordId> = calls.iter().rev().map(|call| call.record.clone()).collect();
    calls.rotate_left(11);
    for call in calls {
        store.record_finished(call.clone(), success(&call, "native", "1"));
    }
    let found = store.calls(CallQuery::default()).await.unwrap();
    assert_eq!(found.into_iter().map(|call| call.start.record).collect::<Vec<_>>(), expect);
}

pub(crate) async fn follows_new_calls(database: Database) {
    let (writer, reader) = (database.open().await, database.open().await);
    let mut last = RecordId::new("");
    for round in 0..5 {
        let calls: Vec<_> = (0..=round).map(|_| start("t", "{}")).collect();
        for call in &calls {
            writer.record_finished(call.clone(), success(call, "native", "1"));
        }
        writer.flush().await.unwrap();
        let new = reader.calls(CallQuery { after: Some(last), ..CallQuery::default() }).await.unwrap();
        assert_eq!(new.len(), calls.len());
        last = new[0].start.record.clone();
    }
}

/// Long arguments are stored truncated, but are matched by their complete text.
pub(crate) async fn filters_long_arguments_by_their_full_text(database: Database) {
    let store = database.open().await;
    let long = |last: &str| format!(r#"{{"text":"{}{last}"}}"#, "x".repeat(1 << 20));
    for arguments in [long("a"), long("b")] {
        let mut call = start("t", &arguments);
        call.arguments = toolhub_core::call_log::stored_arguments(&call.arguments);
        store.record_finished(call.clone(), success(&call, "native", "1"));
    }
    store.flush().await.unwrap();
    let found = store.calls(CallQuery { arguments: Some(long("b")), ..CallQuery::default() }).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].start.arguments.get().len() < 16 << 10);
}

/// A finished call with random values in every field that a query filters on.
fn random_call() -> (CallStart, CallEnd) {
    fn pick<'a>(values: &[&'a str]) -> &'a str {
        values[fastrand::usize(..values.len())]
    }
    let mut call = start(pick(&["read", "write", "Über"]), pick(&["{}", r#"{"a":1}"#, r#"{"q":"\u4eac"}"#]));
    call.at = hour(fastrand::u64(..5));
    call.conversation = fastrand::bool().then(|| pick(&["c1", "c2"]).to_owned());
    call.authorization.principal = pick(&["local", "key:ci", "key:c"]).into();
    call.parent = fastrand::bool().then(|| CallId::new(pick(&["p1", "p2", "p"])));
    if fastrand::bool() {
        call.call = CallId::new("c1");
    }
    call.request = fastrand::bool().then(|| pick(&["Was it SUNNY?", "京都"]).to_owned());
    let mut end = success(&call, pick(&["native", "excel", "brave"]), "1");
    if fastrand::bool() {
        end.attempts.insert(0, attempt(pick(&["excel", "other"]), "t", AttemptStatus::Failed));
    }
    if fastrand::u8(..4) == 0 {
        (end.status, end.sources, end.output) = (CallStatus::Failed, Vec::new(), None);
    }
    (call, end)
}

fn random_query(records: &[RecordId]) -> CallQuery {
    let text = |values: &[&str]| {
        (fastrand::u8(..4) == 0).then(|| values[fastrand::usize(..values.len())].to_owned())
    };
    let record = || (fastrand::u8(..4) == 0).then(|| records[fastrand::usize(..records.len())].clone());
    CallQuery {
        tool: text(&["read", "Über", "none"]),
        source: text(&["native", "excel", "other"]),
        status: (fastrand::u8(..4) == 0).then(|| CallStatus::ALL[fastrand::usize(..4)]),
        conversation: text(&["c1", "c3"]),
        principal: text(&["local", "key:ci", "key:none"]),
        call: (fastrand::u8(..8) == 0).then(|| "c1".to_owned()),
        parent: text(&["p1", "p", "none"]),
        arguments: text(&["{}", r#"{ "a": 1 }"#]),
        text: text(&["über", "京", "sunny", "a"]),
        since: (fastrand::u8(..4) == 0).then(|| hour(fastrand::u64(..6))),
        after: record(),
        before: record(),
        from: record(),
        limit: (fastrand::u8(..2) == 0).then(|| fastrand::usize(..30)),
    }
}

/// Queries return the same results whether calls are stored as single rows, in one block, or in overlapping blocks.
pub(crate) async fn rows_and_blocks_return_the_same_calls(database: Database) {
    let other = match &database {
        Database::Sqlite(_) => Database::sqlite(),
        Database::Postgres(_) => Database::postgres(),
    };
    let (rows, blocks) = (database.open().await, other.open().await);
    let mut calls: Vec<(CallStart, CallEnd)> = (0..150).map(|_| random_call()).collect();
    for chunk in calls.chunks(10) {
        for (start, end) in chunk {
            rows.record_finished(start.clone(), end.clone());
        }
        rows.flush().await.unwrap();
    }
    let records: Vec<RecordId> = calls.iter().map(|(start, _)| start.record.clone()).collect();
    // Shuffled, so that the time ranges of the blocks overlap.
    fastrand::shuffle(&mut calls[40..]);
    for chunk in calls.chunks(40) {
        for (start, end) in chunk {
            blocks.record_finished(start.clone(), end.clone());
        }
        blocks.flush().await.unwrap();
    }
    for _ in 0..300 {
        let query = random_query(&records);
        let of_rows = rows.calls(query.clone()).await.unwrap();
        let of_blocks = blocks.calls(query.clone()).await.unwrap();
        assert_eq!(format!("{of_blocks:#?}"), format!("{of_rows:#?}"), "{query:?}");
    }
    for record in &records {
        let outputs = [rows.output(record).await.unwrap(), blocks.output(record).await.unwrap()];
        assert_eq!(
            outputs[0].as_ref().map(|output| output.get()),
            outputs[1].as_ref().map(|output| output.get())
        );
    }
    let statistics = [rows.statistics().await.unwrap(), blocks.statistics().await.unwrap()];
    assert_eq!(format!("{:?}", statistics[0]), format!("{:?}", statistics[1]));
    if let Some(file) = other.file() {
        let connection = rusqlite::Connection::open(file).unwrap();
        let select = "SELECT coalesce(sum(calls), 0) FROM call_blocks";
        let in_blocks: i64 = connection.query_row(select, [], |row| row.get(0)).unwrap();
        assert!(in_blocks >= 40, "{in_blocks}");
    }
}

/// The parts of a history, one after another, have each call once, and about the requested number of calls.
pub(crate) async fn parts_have_each_call_once(database: Database) {
    const PART_CALLS: usize = 20;
    let store = database.open().await;
    assert_eq!(store.part_start(None, PART_CALLS).await.unwrap(), None);
    let mut records = Vec::new();
    // Single calls, a block, and both side by side.
    for (calls, group) in [(60, 5), (40, 40), (60, 5), (120, 40)] {
        for chunk in (0..calls).map(|_| random_call()).collect::<Vec<_>>().chunks(group) {
            for (start, end) in chunk {
                records.push(start.record.clone());
                store.record_finished(start.clone(), end.clone());
            }
            store.flush().await.unwrap();
        }
    }
    records.reverse();
    let (mut seen, mut parts, mut before) = (Vec::new(), 0, None);
    loop {
        let from = store.part_start(before.clone(), PART_CALLS).await.unwrap();
        let part = CallQuery { before: before.clone(), from: from.clone(), ..CallQuery::default() };
        let found = store.calls(part).await.unwrap();
        assert!(found.len() <= 2 * 40 + PART_CALLS, "{} calls in one part", found.len());
        seen.extend(found.into_iter().map(|call| call.start.record));
        parts += 1;
        match from {
            Some(from) => assert!(before.replace(from.clone()).is_none_or(|before| from < before)),
            None => break,
        }
    }
    assert_eq!(seen, records);
    assert!((5..=records.len() / PART_CALLS + 1).contains(&parts), "{parts} parts");
}
