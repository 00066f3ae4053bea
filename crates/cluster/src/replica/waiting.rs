//! The requests of this replica that other members process. It reports at intervals that it still waits for them, so that each ends
//! there although its cancellation was lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Shared;
use crate::wire::{self, WAITING_INTERVAL, Waiting};

/// Maximum number of ids in one message.
const MAX_IDS: usize = 2000;

/// The requests by the subject of the member that processes them.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Mutex<HashMap<String, HashSet<Arc<str>>>>);

impl OpenRequests {
    fn table(&self) -> MutexGuard<'_, HashMap<String, HashSet<Arc<str>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that this replica waits for. Dropping it ends that.
pub(crate) struct OpenRequest {
    shared: Arc<Shared>,
    pub(crate) subject: String,
    pub(crate) id: Arc<str>,
}

impl OpenRequest {
    /// A request that is about to be sent. Its cancellation goes to `subject`.
    pub(crate) fn new(shared: &Arc<Shared>, subject: String, id: &str) -> Self {
        let id: Arc<str> = id.into();
        shared.open_requests.table().entry(subject.clone()).or_default().insert(Arc::clone(&id));
        Self { shared: Arc::clone(shared), subject, id }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut table = self.shared.open_requests.table();
        if let Some(ids) = table.get_mut(&self.subject) {
            ids.remove(&self.id);
            if ids.is_empty() {
                table.remove(&self.subject);
            }
        }
    }
}

/// Reports at intervals which requests are waited for.
pub(super) async fn report_waiting(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(WAITING_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        let all: Vec<(String, Vec<Arc<str>>)> = {
            let table = shared.open_requests.table();
            table.iter().map(|(subject, ids)| (subject.clone(), ids.iter().cloned().collect())).collect()
        };
        for (subject, ids) in all {
            let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
            for ids in ids.chunks(MAX_IDS) {
                // It is repeated; one that is lost has no effect.
                let _ = shared.bus.request(&subject, wire::write(&Waiting::Waiting { ids }, b"")).await;
            }
        }
    }
}
