//! Start entries whose caller stops waiting, and durability of appends.

use super::*;

use toolhub_core::call_log::{CallHistory as _, CallLog as _, CallQuery};

use crate::blocks::tests::call;
use crate::options::StoreOptions;

fn store_with(durability: Durability) -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { durability, ..StoreOptions::default() };
    let store = SqliteStore::open_with(folder.path(), options).unwrap();
    (folder, store)
}

/// A call that may change state.
fn changing_call() -> CallStart {
    CallStart { may_change: true, ..call("t").0 }
}

/// Blocks appending until the appender is put back.
fn take_appender(journal: &Journal) -> Appender {
    journal.shared.state().appender.take().unwrap()
}

fn put_back(journal: &Journal, appender: Appender) {
    journal.shared.state().appender = Some(appender);
    journal.shared.wakeup.notify_one();
}

/// A call that is not made must not appear in the history, neither as running nor, later, as unknown.
#[tokio::test]
async fn withdraws_begin_of_dropped_caller() {
    for is_answered in [false, true] {
        let (_folder, store) = store_with(Durability::Program);
        let journal = store.journal().unwrap();
        let (abandoned, kept) = (changing_call(), changing_call());
        let appender = take_appender(journal);
        let mut begin = Box::pin(journal.begin(abandoned.clone()));
        assert!(futures_util::poll!(&mut begin).is_pending());
        if is_answered {
            put_back(journal, appender);
            journal.settle().await.unwrap();
            assert!(journal.waiting.runs(&abandoned.record), "the answer is on its way");
            drop(begin);
        } else {
            drop(begin);
            put_back(journal, appender);
            journal.settle().await.unwrap();
        }
        assert!(!journal.waiting.runs(&abandoned.record), "answered: {is_answered}");
        store.begin(kept.clone()).await.unwrap();
        let calls = store.calls(CallQuery::default()).await.unwrap();
        let records: Vec<_> = calls.into_iter().map(|call| call.start.record).collect();
        assert_eq!(records, [kept.record], "answered: {is_answered}");
    }
}

/// `/dev/null` accepts every write, and fails every `fdatasync`.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn begin_waits_for_the_disk_with_power_durability_only() {
    for (durability, is_synced) in [(Durability::Program, false), (Durability::Power, true)] {
        let (_folder, store) = store_with(durability);
        let journal = store.journal().unwrap();
        let mut appender = take_appender(journal);
        appender.tail.append_to(std::fs::File::options().append(true).open("/dev/null").unwrap());
        put_back(journal, appender);
        let begun = store.begin(changing_call()).await;
        assert_eq!(begun.is_err(), is_synced, "{durability:?}: {begun:?}");
    }
}
