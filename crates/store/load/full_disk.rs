//! Fills a small disk, checks which operations still work, frees space, and checks again. Prints the results to stdout.

use std::path::Path;

use toolhub_core::call_log::{CallQuery, CallStatus};
use toolhub_core::ports::HubStore;
use toolhub_core::{RawJson, ToolName};
use toolhub_store::StoreOptions;

use crate::calls::{end, start};

pub(crate) async fn run(folder: &str) {
    let ballast = Path::new(folder).join("ballast");
    std::fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let tool = ToolName::new("t");
    let finished = {
        let store = crate::store(folder, StoreOptions::default()).await;
        let (mut finished, mut error) = (0, None);
        for round in 0..10_000 {
            match call(&*store, &tool, round).await {
                Ok(()) => finished += 1,
                Err(why) => {
                    error = Some(why);
                    break;
                }
            }
        }
        println!("full: {}", error.unwrap_or_default());
        // A finished call stays in the queue until there is free space.
        let noted = start(&tool, 0);
        // Larger than any free space left.
        store.record_finished(
            noted.clone(),
            end(&noted, CallStatus::Succeeded, RawJson::of(&"y".repeat(1 << 20))),
        );
        println!("flush: {}", store.flush().await.is_err());
        println!("lost: {}", store.dropped_details());
        // Until there is free space, the last calls may be in the journal only.
        println!("read: {}", (1..=finished).contains(&succeeded(&*store).await));
        println!("still full: {}", call(&*store, &tool, 0).await.is_err());

        std::fs::remove_file(&ballast).unwrap();
        println!("again: {}", call(&*store, &tool, 0).await.is_ok());
        println!("counted: {}", store.flush().await.is_ok());
        finished + 2
    };
    let store = crate::store(folder, StoreOptions::default()).await;
    // The two calls that failed above may have begun, and their ends may have been written later.
    let stored = succeeded(&*store).await;
    println!("reopened: {}", (finished..=finished + 2).contains(&stored));
    let counted: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().successes).sum();
    println!("statistics: {}", counted == stored as u64);
    drop(store);
    let connection = rusqlite::Connection::open(Path::new(folder).join("toolhub.db")).unwrap();
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    println!("integrity: {integrity}");
}

fn output() -> RawJson {
    RawJson::of(&"y".repeat(20_000))
}

async fn call(store: &dyn HubStore, tool: &ToolName, number: u64) -> Result<(), String> {
    let call = start(tool, number);
    let ending = end(&call, CallStatus::Succeeded, output());
    store.begin(call).await.map_err(|error| error.to_string())?;
    store.finish(ending).await.map_err(|error| error.to_string())
}

async fn succeeded(store: &dyn HubStore) -> usize {
    let query = CallQuery { status: Some(CallStatus::Succeeded), ..CallQuery::default() };
    store.calls(query).await.unwrap().len()
}
