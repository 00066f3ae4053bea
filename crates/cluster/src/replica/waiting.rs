//! The requests of this replica that other members process. It reports at intervals that it still waits for them, so that each ends
//! there although its cancellation was lost, and learns which have ended there although their result was lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::ReplicaState;
use crate::cluster_protocol::{self, AwaitedRequests, EndedRequests, Subjects, WAITING_INTERVAL};

/// Maximum number of ids in one message.
const MAX_REPORTED_IDS: usize = 2000;
/// How long the answer of a member may take.
const MEMBER_ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// After a new connection to NATS, messages may have been lost: reports follow each other at the short interval for a while.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
const RECONNECT_PERIOD: Duration = Duration::from_secs(10);

/// The requests by the subject of the member that processes them and by their ids; `true` once the member has reported their end.
type RequestsBySubject = HashMap<String, HashMap<Arc<str>, Arc<AtomicBool>>>;

/// The requests that this replica waits for.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Mutex<RequestsBySubject>);

impl OpenRequests {
    fn table(&self) -> MutexGuard<'_, RequestsBySubject> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the member at `subject` has ended these requests.
    fn note_ended(&self, subject: &str, ids: &[String]) {
        let table = self.table();
        let Some(requests) = table.get(subject) else { return };
        for has_ended in ids.iter().filter_map(|id| requests.get(id.as_str())) {
            has_ended.store(true, Ordering::Release);
        }
    }
}

/// A request that this replica waits for. Dropping it ends that.
pub(crate) struct OpenRequest {
    shared: Arc<ReplicaState>,
    pub(crate) subject: String,
    pub(crate) id: Arc<str>,
    /// Whether the member that processes it has reported its end.
    pub(crate) has_ended: Arc<AtomicBool>,
}

impl OpenRequest {
    /// A request that is about to be sent. Its cancellation goes to `subject`.
    pub(crate) fn new(shared: &Arc<ReplicaState>, subject: String, id: &str) -> Self {
        let (id, has_ended): (Arc<str>, Arc<AtomicBool>) = (id.into(), Arc::default());
        let mut table = shared.open_requests.table();
        table.entry(subject.clone()).or_default().insert(Arc::clone(&id), Arc::clone(&has_ended));
        drop(table);
        Self { shared: Arc::clone(shared), subject, id, has_ended }
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

/// A request that a worker processes. Dropping it before its end cancels it there.
pub(super) struct WorkerRequest {
    pub(super) open: OpenRequest,
    worker: String,
    /// The worker does not process it any more.
    pub(super) is_over: bool,
}

impl WorkerRequest {
    /// A request that is about to be sent: dropping the future that sends it may happen after that.
    pub(super) fn new(shared: &Arc<ReplicaState>, worker: &str, id: &str) -> Self {
        shared.in_flight.fetch_add(1, Ordering::Relaxed);
        let open = OpenRequest::new(shared, Subjects(&shared.bus).control(worker), id);
        Self { open, worker: worker.to_owned(), is_over: false }
    }
}

impl Drop for WorkerRequest {
    fn drop(&mut self) {
        let shared = &self.open.shared;
        shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.is_over {
            shared.cancel(&self.worker, &self.open.id);
        }
    }
}

/// Reports at intervals which requests are waited for.
pub(super) async fn report_waiting(shared: Weak<ReplicaState>) {
    let Some(mut connections) = shared.upgrade().map(|shared| shared.bus.connections()) else { return };
    connections.mark_unchanged();
    let mut reconnected: Option<Instant> = None;
    loop {
        let is_new = reconnected.is_some_and(|at| at.elapsed() < RECONNECT_PERIOD);
        tokio::select! {
            () = tokio::time::sleep(if is_new { RECONNECT_INTERVAL } else { WAITING_INTERVAL }) => {}
            changed = connections.changed() => match changed {
                Ok(()) => reconnected = Some(Instant::now()),
                Err(_) => return,
            },
        }
        let Some(shared) = shared.upgrade() else { return };
        let all: Vec<(String, Vec<Arc<str>>)> = {
            let table = shared.open_requests.table();
            table.iter().map(|(subject, ids)| (subject.clone(), ids.keys().cloned().collect())).collect()
        };
        let mut reports = JoinSet::new();
        for (subject, ids) in all {
            let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
            for ids in ids.chunks(MAX_REPORTED_IDS) {
                let message = cluster_protocol::write(&AwaitedRequests::Waiting { ids }, b"");
                reports.spawn(report(Arc::clone(&shared), subject.clone(), message));
            }
        }
        while reports.join_next().await.is_some() {}
    }
}

/// Sends one report. It is repeated; one that is lost has no effect.
async fn report(shared: Arc<ReplicaState>, subject: String, message: Bytes) {
    let Ok(mut replies) = shared.bus.request(&subject, message).await else { return };
    let Ok(Some(answer)) = replies.next(MEMBER_ANSWER_TIMEOUT).await else { return };
    if let Some((EndedRequests { ended }, _)) = cluster_protocol::read(&answer) {
        shared.open_requests.note_ended(&subject, &ended);
    }
}
