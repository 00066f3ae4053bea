//! Retention deletes calls and results that are past their limits, and nothing else.

use std::time::{Duration, Instant, SystemTime};

use toolhub_core::RawJson;
use toolhub_core::call_log::{CallQuery, RecordId};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::ResponseStatus;
use toolhub_store::{Retention, StoreOptions};

use crate::database::{Database, start, success};

const DAY: Duration = Duration::from_secs(86_400);

fn options_with_retention(retention: Retention) -> StoreOptions {
    let retention = Retention { every: Duration::from_millis(20), ..retention };
    StoreOptions { retention, ..StoreOptions::default() }
}

/// Records a call that began `days` days ago, with an output of 1,000 bytes.
fn record_call(store: &dyn HubStore, days: u32) -> RecordId {
    let mut call = start("t", "{}");
    call.at = SystemTime::now() - days * DAY;
    let output = format!("\"{}\"", "x".repeat(998));
    store.record_finished(call.clone(), success(&call, "native", &output));
    call.record
}

/// For each record, whether the call is stored and whether its output is stored.
async fn stored(store: &dyn HubStore, records: &[RecordId]) -> (Vec<bool>, Vec<bool>) {
    let found = store.calls(CallQuery::default()).await.unwrap();
    let mut outputs = Vec::new();
    for record in records {
        outputs.push(store.output(record).await.unwrap().is_some());
    }
    (records.iter().map(|one| found.iter().any(|call| call.start.record == *one)).collect(), outputs)
}

/// Waits until the stored calls and outputs equal `expected`, then checks once more that they stay so.
async fn wait_until_stored(store: &dyn HubStore, records: &[RecordId], expected: (Vec<bool>, Vec<bool>)) {
    let started = Instant::now();
    loop {
        let found = stored(store, records).await;
        if found == expected {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{found:?}, not {expected:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Long enough for several more retention runs.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stored(store, records).await, expected);
}

pub(crate) async fn deletes_old_calls(database: Database) {
    let store = database.open_with(options_with_retention(Retention::default())).await;
    let records = [
        record_call(&*store, 100),
        record_call(&*store, 89),
        record_call(&*store, 95),
        record_call(&*store, 0),
    ];
    let present = vec![false, true, false, true];
    wait_until_stored(&*store, &records, (present, vec![false, false, false, true])).await;
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 4, "statistics stay");
}

pub(crate) async fn deletes_old_results_before_their_calls(database: Database) {
    let store = database
        .open_with(options_with_retention(Retention { results: 5 * DAY, ..Retention::default() }))
        .await;
    let records = [record_call(&*store, 6), record_call(&*store, 4), record_call(&*store, 10)];
    wait_until_stored(&*store, &records, (vec![true; 3], vec![false, true, false])).await;
}

pub(crate) async fn deletes_results_with_their_calls(database: Database) {
    let retention = Retention { calls: 5 * DAY, results: 30 * DAY, ..Retention::default() };
    let store = database.open_with(options_with_retention(retention)).await;
    let records = [record_call(&*store, 6), record_call(&*store, 4), record_call(&*store, 10)];
    wait_until_stored(&*store, &records, (vec![false, true, false], vec![false, true, false])).await;
}

/// Records 75 calls in groups of `group`, each group written in one batch.
async fn record_in_groups(store: &dyn HubStore, group: usize) -> Vec<RecordId> {
    let mut records = Vec::new();
    while records.len() < 75 {
        records.extend((0..group).map(|_| record_call(store, 0)));
        store.flush().await.unwrap();
    }
    records
}

pub(crate) async fn deletes_excess_results(database: Database) {
    let store = database
        .open_with(options_with_retention(Retention { result_bytes: 30_000, ..Retention::default() }))
        .await;
    // A group this small is stored as single rows, so that exactly the excess is deleted, oldest first.
    let records = record_in_groups(&*store, 15).await;
    let outputs: Vec<bool> = (0..75).map(|index| index >= 45).collect();
    wait_until_stored(&*store, &records, (vec![true; 75], outputs)).await;
}

pub(crate) async fn deletes_excess_results_in_blocks(database: Database) {
    let store = database
        .open_with(options_with_retention(Retention { result_bytes: 30_000, ..Retention::default() }))
        .await;
    let records = record_in_groups(&*store, 25).await;
    let outputs: Vec<bool> = (0..75).map(|index| index >= 50).collect();
    wait_until_stored(&*store, &records, (vec![true; 75], outputs)).await;
}

pub(crate) async fn deletes_old_blocks(database: Database) {
    let store = database
        .open_with(options_with_retention(Retention { results: 5 * DAY, ..Retention::default() }))
        .await;
    let mut records = Vec::new();
    for days in [100, 6, 4] {
        records.extend((0..20).map(|_| record_call(&*store, days)));
        store.flush().await.unwrap();
    }
    let is_kept = (0..60).map(|index| index >= 20).collect();
    let has_output = (0..60).map(|index| index >= 40).collect();
    wait_until_stored(&*store, &records, (is_kept, has_output)).await;
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 60, "statistics stay");
}

/// `max_bytes`, the limit of the whole database, deletes the oldest results first, then the oldest calls.
#[tokio::test(flavor = "multi_thread")]
async fn database_stays_within_its_size_in_sqlite() {
    let database = Database::sqlite();
    let max_bytes = 2_000_000;
    let store =
        database.open_with(options_with_retention(Retention { max_bytes, ..Retention::default() })).await;
    let mut records = Vec::new();
    for _ in 0..400 {
        records.extend((0..20).map(|_| record_call(&*store, 0)));
        store.flush().await.unwrap();
    }
    let started = Instant::now();
    loop {
        let connection = rusqlite::Connection::open(database.file().unwrap()).unwrap();
        let pragma =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        let used = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
        if used.unsigned_abs() <= max_bytes {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{used} bytes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (present, outputs) = stored(&*store, &records).await;
    assert!(outputs.is_sorted() && present.is_sorted(), "the oldest go first");
    assert!(present[7_999] && outputs[7_999] && !outputs[0], "the newest stay");
    let gone_with_output_left = present.iter().zip(&outputs).any(|(present, output)| !present && *output);
    assert!(!gone_with_output_left);
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 8_000, "statistics stay");
}

/// `max_bytes` is the limit of calls and results: responses have their own, and delete none of these.
#[tokio::test(flavor = "multi_thread")]
async fn responses_do_not_count_as_calls_in_sqlite() {
    let database = Database::sqlite();
    let retention = Retention { max_bytes: 1_000_000, ..Retention::default() };
    let store = database.open_with(options_with_retention(retention)).await;
    for index in 0..20 {
        let mut response = crate::responses::response(ResponseStatus::Completed);
        response.id = format!("large_{index}");
        response.body = RawJson::of(&"x".repeat(100_000));
        store.add_response(response).await.unwrap();
    }
    let records: Vec<RecordId> = (0..40).map(|_| record_call(&*store, 0)).collect();
    store.flush().await.unwrap();
    // An old call that retention deletes shows that it ran.
    let old = record_call(&*store, 100);
    let mut all = records;
    all.push(old);
    let expected: Vec<bool> = (0..41).map(|index| index < 40).collect();
    wait_until_stored(&*store, &all, (expected.clone(), expected)).await;
}

/// Results over `result_bytes` are deleted while calls are recorded, not only by the next hourly run.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_results_is_pruned_at_once_in_sqlite() {
    let database = Database::sqlite();
    let retention = Retention { result_bytes: 30_000, ..Retention::default() };
    let store = database.open_with(StoreOptions { retention, ..StoreOptions::default() }).await;
    let first = record_call(&*store, 0);
    store.flush().await.unwrap();
    // The run at startup is over; the next one is due in an hour.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut records = record_in_groups(&*store, 25).await;
    records.insert(0, first);
    let outputs: Vec<bool> = (0..76).map(|index| index >= 51).collect();
    wait_until_stored(&*store, &records, (vec![true; 76], outputs)).await;
}
