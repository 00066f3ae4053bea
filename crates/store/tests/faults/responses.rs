//! A process that is killed while it stores responses: acknowledged ones stay, and unfinished ones are continued by the
//! next process.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use toolhub_core::responses::{ResponseStatus, ResponseUpdate};
use toolhub_testkit::postgres::PostgresServer;

use crate::killed::run_until_killed;
use crate::open_with_journals;

const KILLS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_acknowledged_responses() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path().to_str().unwrap(), folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_acknowledged_responses() {
    let data = tempfile::tempdir().unwrap();
    check(&PostgresServer::shared().new_database(), data.path()).await;
}

async fn check(location: &str, data: &Path) {
    let mut unfinished_count = 0;
    for kill in 0.. {
        // A process may be killed before its first write.
        if kill >= KILLS && unfinished_count > 0 {
            return;
        }
        assert!(kill < 10 * KILLS, "too little happened");
        let lines = run_until_killed("respond", location, data, None);
        let mut printed: HashMap<&str, &str> = HashMap::new();
        for line in &lines {
            // The kill may truncate the last line.
            if let [state, id, "."] = line.split(' ').collect::<Vec<&str>>()[..] {
                printed.insert(id, state);
            }
        }
        let store = open_with_journals(location, data).await.unwrap();
        // The process is gone as soon as its responses are taken over, which PostgreSQL notices with a short delay.
        let unfinished: HashSet<&str> =
            printed.iter().filter(|(_, state)| **state == "added").map(|(id, _)| *id).collect();
        let started = Instant::now();
        let found = loop {
            let found = store.unfinished_responses().await.unwrap();
            let ids: HashSet<&str> = found.iter().map(|one| one.id.as_str()).collect();
            if ids.is_superset(&unfinished) {
                break found;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{:?}", unfinished.difference(&ids));
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        unfinished_count += unfinished.len();
        for (id, state) in &printed {
            let stored = store.response(id, "local").await.unwrap().map(|one| one.status);
            let is_right = match *state {
                "added" => stored == Some(ResponseStatus::InProgress),
                "finished" => stored == Some(ResponseStatus::Completed),
                _ => stored.is_some(),
            };
            assert!(is_right, "`{id}` was {state} and is {stored:?}");
        }
        for mut one in found {
            one.status = ResponseStatus::Failed;
            assert_eq!(store.update_response(one).await.unwrap(), ResponseUpdate::Written);
        }
    }
}
