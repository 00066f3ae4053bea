//! Retention deletes calls and results that are past their limits, and nothing else.

use std::time::{Duration, Instant, SystemTime};

use toolhub_core::call_log::{CallQuery, RecordId};
use toolhub_core::ports::HubStore;
use toolhub_store::{Retention, StoreOptions};

use crate::database::{Database, start, success};

const DAY: Duration = Duration::from_secs(86_400);

fn keeping(retention: Retention) -> StoreOptions {
    let retention = Retention { every: Duration::from_millis(20), ..retention };
    StoreOptions { retention, ..StoreOptions::default() }
}

/// Records a call that began `days` days ago, with an output of 1,000 bytes.
fn note(store: &dyn HubStore, days: u32) -> RecordId {
    let mut call = start("t", "{}");
    call.at = SystemTime::now() - days * DAY;
    let output = format!("\"{}\"", "x".repeat(998));
    store.record_finished(call.clone(), success(&call, "native", &output));
    call.record
}

/// For each record, whether the call is stored and whether its output is stored.
async fn there(store: &dyn HubStore, records: &[RecordId]) -> (Vec<bool>, Vec<bool>) {
    let found = store.calls(CallQuery::default()).await.unwrap();
    let mut outputs = Vec::new();
    for record in records {
        outputs.push(store.output(record).await.unwrap().is_some());
    }
    (records.iter().map(|one| found.iter().any(|call| call.start.record == *one)).collect(), outputs)
}

/// Waits until the stored calls and outputs equal `wanted`, then checks once more that they stay so.
async fn settles(store: &dyn HubStore, records: &[RecordId], wanted: (Vec<bool>, Vec<bool>)) {
    let started = Instant::now();
    loop {
        let found = there(store, records).await;
        if found == wanted {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{found:?}, not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Long enough for several more retention runs.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(there(store, records).await, wanted);
}

pub(crate) async fn old_calls_go(database: Database) {
    let store = database.open_with(keeping(Retention::default())).await;
    let records = [note(&*store, 100), note(&*store, 89), note(&*store, 95), note(&*store, 0)];
    let kept = vec![false, true, false, true];
    settles(&*store, &records, (kept, vec![false, false, false, true])).await;
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 4, "statistics stay");
}

pub(crate) async fn old_results_go_before_their_calls(database: Database) {
    let store = database.open_with(keeping(Retention { results: 5 * DAY, ..Retention::default() })).await;
    let records = [note(&*store, 6), note(&*store, 4), note(&*store, 10)];
    settles(&*store, &records, (vec![true; 3], vec![false, true, false])).await;
}

pub(crate) async fn results_are_kept_no_longer_than_their_calls(database: Database) {
    let retention = Retention { calls: 5 * DAY, results: 30 * DAY, ..Retention::default() };
    let store = database.open_with(keeping(retention)).await;
    let records = [note(&*store, 6), note(&*store, 4), note(&*store, 10)];
    settles(&*store, &records, (vec![false, true, false], vec![false, true, false])).await;
}

/// Records 75 calls in groups of `group`, each group written in one batch.
async fn note_in_groups(store: &dyn HubStore, group: usize) -> Vec<RecordId> {
    let mut records = Vec::new();
    while records.len() < 75 {
        records.extend((0..group).map(|_| note(store, 0)));
        store.flush().await.unwrap();
    }
    records
}

pub(crate) async fn too_many_results_go(database: Database) {
    let store = database.open_with(keeping(Retention { result_bytes: 30_000, ..Retention::default() })).await;
    // A group this small is stored as single rows, so that exactly the excess is deleted, oldest first.
    let records = note_in_groups(&*store, 15).await;
    let outputs: Vec<bool> = (0..75).map(|index| index >= 45).collect();
    settles(&*store, &records, (vec![true; 75], outputs)).await;
}

pub(crate) async fn too_many_results_in_blocks_go(database: Database) {
    let store = database.open_with(keeping(Retention { result_bytes: 30_000, ..Retention::default() })).await;
    let records = note_in_groups(&*store, 25).await;
    let outputs: Vec<bool> = (0..75).map(|index| index >= 50).collect();
    settles(&*store, &records, (vec![true; 75], outputs)).await;
}

pub(crate) async fn old_blocks_go(database: Database) {
    let store = database.open_with(keeping(Retention { results: 5 * DAY, ..Retention::default() })).await;
    let mut records = Vec::new();
    for days in [100, 6, 4] {
        records.extend((0..20).map(|_| note(&*store, days)));
        store.flush().await.unwrap();
    }
    let is_kept = (0..60).map(|index| index >= 20).collect();
    let has_output = (0..60).map(|index| index >= 40).collect();
    settles(&*store, &records, (is_kept, has_output)).await;
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 60, "statistics stay");
}

/// `max_bytes`, the limit of the whole database, deletes the oldest results first, then the oldest calls.
#[tokio::test(flavor = "multi_thread")]
async fn database_stays_within_its_size_in_sqlite() {
    let database = Database::sqlite();
    let max_bytes = 2_000_000;
    let store = database.open_with(keeping(Retention { max_bytes, ..Retention::default() })).await;
    let mut records = Vec::new();
    for _ in 0..400 {
        records.extend((0..20).map(|_| note(&*store, 0)));
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
    let (kept, outputs) = there(&*store, &records).await;
    assert!(outputs.is_sorted() && kept.is_sorted(), "the oldest go first");
    assert!(kept[7_999] && outputs[7_999] && !outputs[0], "the newest stay");
    let gone_with_output_left = kept.iter().zip(&outputs).any(|(kept, output)| !kept && *output);
    assert!(!gone_with_output_left);
    assert_eq!(store.statistics().await.unwrap()[0].tally().total(), 8_000, "statistics stay");
}

/// Results over `result_bytes` are deleted while calls are recorded, not only by the next hourly run.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_results_is_pruned_at_once_in_sqlite() {
    let database = Database::sqlite();
    let retention = Retention { result_bytes: 30_000, ..Retention::default() };
    let store = database.open_with(StoreOptions { retention, ..StoreOptions::default() }).await;
    let first = note(&*store, 0);
    store.flush().await.unwrap();
    // The run at startup is over; the next one is due in an hour.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut records = note_in_groups(&*store, 25).await;
    records.insert(0, first);
    let outputs: Vec<bool> = (0..76).map(|index| index >= 51).collect();
    settles(&*store, &records, (vec![true; 76], outputs)).await;
}
