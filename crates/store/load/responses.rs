//! Stores responses from many tasks until the process is killed, and prints each acknowledged write to stdout.
//! Every line ends with a full stop, so that a truncated one is recognised.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use toolhub_core::RawJson;
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::HubStore;
use toolhub_core::responses::{ResponseStatus, ResponseUpdate, StoredResponse};
use toolhub_store::StoreOptions;

const TASKS: usize = 16;

pub(crate) async fn run(location: &str, data: &str) {
    let store = crate::store_with(location, StoreOptions::default(), Some(Path::new(data))).await;
    println!("ready");
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(respond(Arc::clone(&store)));
    }
    tasks.join_all().await;
}

/// Adds responses and finishes every second one.
async fn respond(store: Arc<dyn HubStore>) {
    for round in 0_u64.. {
        let now = SystemTime::now();
        let mut response = StoredResponse {
            id: format!("resp_{}", RecordId::generate()),
            principal: "local".to_owned(),
            previous: None,
            status: ResponseStatus::InProgress,
            request: RawJson::of(&"request"),
            input: RawJson::of(&["input"]),
            body: RawJson::of(&"x".repeat(500)),
            created_at: now,
            expires_at: now + Duration::from_secs(3_600),
        };
        store.add_response(response.clone()).await.unwrap();
        println!("added {} .", response.id);
        if round.is_multiple_of(2) {
            response.status = ResponseStatus::Completed;
            println!("finishing {} .", response.id);
            assert_eq!(store.update_response(response.clone()).await.unwrap(), ResponseUpdate::Written);
            println!("finished {} .", response.id);
        }
    }
}
