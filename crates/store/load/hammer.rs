//! Records calls from many tasks until the process is killed, and prints each acknowledged write to stdout.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolhub_core::call_log::Status;
use toolhub_core::ports::HubStore;
use toolhub_core::{RawJson, ToolName};
use toolhub_store::StoreOptions;

use crate::calls::{end, start};

const TASKS: u64 = 32;

/// Number of tasks that record finished calls with `note`; the others use `begin` and `finish`.
const RECORDING_TASKS: u64 = 8;

pub(crate) async fn run(location: &str, data: &str) {
    let store = crate::store_with(location, StoreOptions::default(), Some(Path::new(data))).await;
    println!("ready");
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work(Arc::clone(&store), task));
    }
    tasks.join_all().await;
}

async fn work(store: Arc<dyn HubStore>, task: u64) {
    let tool = ToolName::new(format!("tool_{}", task % 4));
    for round in 0_u64.. {
        let call = start(&tool, round);
        let status = if (task + round).is_multiple_of(3) { Status::Failed } else { Status::Succeeded };
        let ending = end(&call, status, RawJson::of(&"x".repeat(200)));
        if task < RECORDING_TASKS {
            let record = call.record.clone();
            store.record_finished(call, ending);
            println!("noted {record} {}", status.name());
            tokio::time::sleep(Duration::from_micros(task * 100)).await;
            continue;
        }
        if let Err(error) = store.begin(call.clone()).await {
            println!("refused {}: {error}", call.record);
            continue;
        }
        println!("begun {}", call.record);
        // Durations differ, so that some calls are always in flight.
        tokio::time::sleep(Duration::from_micros((task * 97 + round * 31) % 5_000)).await;
        println!("finishing {} {}", call.record, status.name());
        match store.finish(ending).await {
            Ok(()) => println!("finished {}", call.record),
            Err(error) => println!("unfinished {}: {error}", call.record),
        }
    }
}
