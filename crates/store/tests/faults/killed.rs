//! A process that is killed while it writes, 50 times on the same database.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolhub_core::call_log::{CallQuery, CallStatus};
use toolhub_core::ports::HubStore;
use toolhub_testkit::postgres::PostgresServer;

use crate::open_with_journals;

const KILLS: usize = 50;
/// After every so many kills, the calls are read. With PostgreSQL an end is certain only after a grace period.
const CHECKED: usize = 10;

/// The last state of a call that the killed process printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrintedState {
    Begun,
    Finishing(CallStatus),
    Finished(CallStatus),
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path().to_str().unwrap(), folder.path()).await;
    let connection = rusqlite::Connection::open(folder.path().join("toolhub.db")).unwrap();
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_what_was_acknowledged() {
    let data = tempfile::tempdir().unwrap();
    check(&PostgresServer::shared().new_database(), data.path()).await;
}

async fn check(location: &str, data: &Path) {
    let mut calls = HashMap::new();
    for round in 0..KILLS {
        let lines = hammer_until_killed(location, data, None);
        read(&lines, &mut calls);
        let store = open_with_journals(location, data).await.unwrap();
        if round % CHECKED == 0 {
            assert_no_running_call(&*store, round).await;
        }
    }
    let store = open_with_journals(location, data).await.unwrap();
    assert_no_running_call(&*store, KILLS).await;
    let found = store.calls(CallQuery::default()).await.unwrap();
    for call in &found {
        let principal = format!("key:{}", call.start.tool);
        assert_eq!(*call.start.authorization.principal, *principal, "`{}`", call.start.record);
        assert_eq!(call.start.authorization.rule.as_deref(), Some("rule 1"), "`{}`", call.start.record);
    }
    let stored: HashMap<String, CallStatus> =
        found.into_iter().map(|call| (call.start.record.to_string(), call.status)).collect();
    for (record, printed) in &calls {
        let status = stored.get(record).copied();
        let right = match printed {
            PrintedState::Begun => status == Some(CallStatus::Unknown),
            PrintedState::Finishing(as_what) => {
                status == Some(CallStatus::Unknown) || status == Some(*as_what)
            }
            PrintedState::Finished(as_what) => status == Some(*as_what),
        };
        assert!(right, "`{record}` came to {printed:?} and is kept as {status:?}");
    }
    let count =
        |predicate: fn(&PrintedState) -> bool| calls.values().filter(|printed| predicate(printed)).count();
    let (begun, finished) = (
        count(|printed| *printed == PrintedState::Begun),
        count(|printed| matches!(printed, PrintedState::Finished(_))),
    );
    let left: Vec<_> = std::fs::read_dir(data.join("running"))
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_none_or(|extension| extension != "lock"))
        .collect();
    assert!(left.is_empty(), "journals of dead stores: {left:?}");
    assert!(begun >= KILLS && finished >= KILLS, "too little happened: {begun} begun, {finished} finished");
    // Statistics count each ended call exactly once.
    let counted: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().total()).sum();
    let ended = stored.values().filter(|status| **status != CallStatus::Unknown).count();
    assert_eq!(counted, ended as u64);
}

/// Runs `store-load hammer` until it is killed. With `key`, its audit log is on.
pub(crate) fn hammer_until_killed(location: &str, data: &Path, key: Option<&Path>) -> Vec<String> {
    run_until_killed("hammer", location, data, key)
}

/// Starts `store-load` in a mode, kills it after a random delay of 1 to 120 ms, and returns the lines it printed.
pub(crate) fn run_until_killed(mode: &str, location: &str, data: &Path, key: Option<&Path>) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_store-load"))
        .args([mode, location])
        .arg(data)
        .args(key)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| lines.map_while(Result::ok).collect());
        std::thread::sleep(Duration::from_micros(fastrand::u64(1_000..120_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        rest.join().unwrap()
    })
}

pub(crate) fn read(lines: &[String], calls: &mut HashMap<String, PrintedState>) {
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            ["noted", record, status] => {
                // The status of a line truncated by the kill is incomplete.
                if let Some(status) = CallStatus::from_name(status) {
                    calls.insert(record.to_owned(), PrintedState::Finished(status));
                }
            }
            ["begun", record] => drop(calls.insert(record.to_owned(), PrintedState::Begun)),
            ["finishing", record, status] => {
                calls.insert(
                    record.to_owned(),
                    PrintedState::Finishing(CallStatus::from_name(status).unwrap()),
                );
            }
            ["finished", record] => {
                let printed = calls.get_mut(record).unwrap();
                assert!(
                    matches!(printed, PrintedState::Finishing(_)),
                    "`{record}` was finished out of the blue"
                );
                if let PrintedState::Finishing(status) = *printed {
                    *printed = PrintedState::Finished(status);
                }
            }
            // The kill may truncate the last line.
            _ => assert!(!line.starts_with("refused") && !line.starts_with("unfinished"), "{line}"),
        }
    }
}

/// Waits until no call is `Running`: immediate with SQLite, but PostgreSQL first has to detect that the connection is closed.
async fn assert_no_running_call(store: &dyn HubStore, round: usize) {
    let running = CallQuery { status: Some(CallStatus::Running), limit: Some(1), ..CallQuery::default() };
    let started = Instant::now();
    while !store.calls(running.clone()).await.unwrap().is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "calls of a dead hub still run after kill {round}"
        );
    }
}
