//! Records calls from many tasks until the process is killed, and prints each acknowledged write to stdout.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolhub_audit::AuditStore;
use toolhub_core::audit::{AuditAction, AuditEvent, LoginEvent};
use toolhub_core::call_log::CallStatus;
use toolhub_core::ports::HubStore;
use toolhub_core::{RawJson, ToolName};
use toolhub_store::{AuditOptions, StoreOptions, open_with_audit};

use crate::calls::{end, start};

const TASKS: u64 = 32;

/// Number of tasks that record finished calls with `note`; the others use `begin` and `finish`.
const RECORDING_TASKS: u64 = 8;

/// Number of tasks that append events to the audit log, if there is one.
const AUDITING_TASKS: u64 = 4;

/// With the audit log on if there is a key.
pub(crate) async fn run(location: &str, data: &str, key: Option<&str>) {
    let (options, data) = (StoreOptions::default(), Some(Path::new(data)));
    let (store, audit) = match key {
        None => (crate::store_with(location, options, data).await, None),
        Some(key) => {
            let audited = open_with_audit(&crate::place(location), options, &AuditOptions::new(key), data)
                .await
                .unwrap();
            (audited.store, Some(audited.audit))
        }
    };
    println!("ready");
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work(Arc::clone(&store), task));
    }
    if let Some(audit) = audit {
        for task in 0..AUDITING_TASKS {
            tasks.spawn(append_events(Arc::clone(&audit), task));
        }
    }
    tasks.join_all().await;
}

async fn work(store: Arc<dyn HubStore>, task: u64) {
    let tool = ToolName::new(format!("tool_{}", task % 4));
    for round in 0_u64.. {
        let call = start(&tool, round);
        let status =
            if (task + round).is_multiple_of(3) { CallStatus::Failed } else { CallStatus::Succeeded };
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

/// Appends logins with unique reasons.
async fn append_events(audit: Arc<dyn AuditStore>, task: u64) {
    for round in 0_u64.. {
        let reason = format!("{}-{task}-{round}", std::process::id());
        let login = LoginEvent {
            method: "key".to_owned(),
            accepted: false,
            reason: Some(reason.clone()),
            address: None,
        };
        match audit.append(AuditEvent::now(&"key:x".into(), AuditAction::Login(login))).await {
            Ok(()) => println!("appended {reason}"),
            Err(error) => println!("unappended {reason}: {error}"),
        }
    }
}
