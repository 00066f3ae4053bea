//! Journals of other stores: of one that is still open, and of one that was killed before its calls were in the database.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolhub_core::call_log::{CallEnd, CallHistory as _, CallLog as _, CallQuery, CallStart, CallStatus};
use toolhub_core::ports::HubStore as _;
use toolhub_store::SqliteStore;

use crate::server_away::call;

const DAY: Duration = Duration::from_secs(86_400);

/// The files with extension `extension` in the journal directory.
fn journals(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("running")).into_iter().flatten();
    let mut found: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|found| found == extension));
    found
}

async fn counted(store: &SqliteStore) -> u64 {
    store.statistics().await.unwrap().iter().map(|one| one.tally().total()).sum()
}

fn reading_call() -> (CallStart, CallEnd) {
    let (start, end) = call();
    (CallStart { may_change: false, ..start }, end)
}

#[tokio::test]
async fn journal_of_an_open_store_is_neither_replayed_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let owner = SqliteStore::open(folder.path()).unwrap();
    let (start, end) = call();
    owner.begin(start.clone()).await.unwrap();
    let (read_start, read_end) = reading_call();
    owner.record_finished(read_start, read_end);
    let files = || [journals(folder.path(), "journal"), journals(folder.path(), "calls")].concat();
    let contents = || files().iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    let (before, bytes) = (files(), contents());
    assert_eq!(before.len(), 2, "{before:?}");
    for _ in 0..3 {
        let other = SqliteStore::open(folder.path()).unwrap();
        let unknown = CallQuery { status: Some(CallStatus::Unknown), ..CallQuery::default() };
        assert_eq!(other.calls(unknown).await.unwrap().len(), 0, "its owner lives");
        assert_eq!((files(), contents()), (before.clone(), bytes.clone()));
    }
    owner.finish(end).await.unwrap();
    owner.flush().await.unwrap();
    assert_eq!((owner.calls(CallQuery::default()).await.unwrap().len(), counted(&owner).await), (2, 2));
    drop(owner);
    assert_eq!(files(), Vec::<PathBuf>::new(), "the database has all of it");
}

/// Records one call of each kind that began at `at`, and returns the journals that a store killed at this point leaves
/// behind.
async fn journals_of_dropped_store(at: SystemTime) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let ((start, end), (read_start, read_end)) = (call(), reading_call());
    store.begin(CallStart { at, ..start }).await.unwrap();
    store.finish(end).await.unwrap();
    store.record_finished(CallStart { at, ..read_start }, read_end);
    let files = ["journal", "calls"].map(|kind| (kind, journals(folder.path(), kind)));
    let read = |(kind, files): (&str, Vec<PathBuf>)| {
        assert_eq!(files.len(), 1, "{kind}: {files:?}");
        (format!("00000000000000aa.7.{kind}"), std::fs::read(&files[0]).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Calls past retention were in the database and have been deleted since. Replaying them would count them twice.
#[tokio::test]
async fn replay_neither_stores_nor_counts_calls_past_retention() {
    for (days, expect) in [(89, 2), (91, 0)] {
        let folder = tempfile::tempdir().unwrap();
        drop(SqliteStore::open(folder.path()).unwrap());
        let running = folder.path().join("running");
        std::fs::create_dir_all(&running).unwrap();
        for (name, bytes) in journals_of_dropped_store(SystemTime::now() - days * DAY).await {
            std::fs::write(running.join(name), bytes).unwrap();
        }
        let store = SqliteStore::open(folder.path()).unwrap();
        let calls = store.calls(CallQuery::default()).await.unwrap().len();
        assert_eq!((calls, counted(&store).await), (expect, expect as u64), "{days} days");
        for kind in ["journal", "calls"] {
            assert_eq!(journals(folder.path(), kind), Vec::<PathBuf>::new(), "{days} days");
        }
    }
}
