//! The side of a replica: finds the worker that holds an instance of a server, or lets one take it, and sends requests there.

mod candidates;
mod link;
mod open;
mod recent_placements;
mod scripts;
mod skills;
mod waiting;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use toolhub_core::cluster::{ClusterStore, InstanceKey, MemberKind};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{BoxFuture, ServerId};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::remote::{RemoteConnection, RemoteInbox, RemoteServers};
use toolhub_mcp_wire::McpError;

use crate::bus::{Bus, BusError};
use crate::clock::DatabaseClock;
use crate::cluster_protocol::{self, ClusterEvent, Subjects};
use crate::liveness::{FreeSlots, Liveness};
use crate::membership::{MemberState, Membership};

use recent_placements::RecentPlacements;
pub(crate) use waiting::OpenRequest;
use waiting::OpenRequests;

/// Interval at which a replica stores that it is alive.
const STORE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of messages that wait to be sent.
const MAX_QUEUED_MESSAGES: usize = 4096;

/// How a process joins a cluster.
#[derive(Clone)]
pub struct JoinOptions {
    /// The connection to NATS.
    pub bus: Bus,
    /// The database with the members and placements.
    pub store: Arc<dyn ClusterStore>,
    /// Where this process runs, for `toolhub cluster status`.
    pub address: String,
    /// How long a placement lasts without being extended.
    pub lease: Duration,
}

impl std::fmt::Debug for JoinOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinOptions").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A replica of a cluster. Its tasks end when it is dropped.
pub struct Replica {
    pub(crate) shared: Arc<ReplicaState>,
    pub(crate) own: ReplicaId,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("id", &self.shared.member.id).finish_non_exhaustive()
    }
}

/// The links to each placement, by its instance and epoch.
type LinksByPlacement = HashMap<(InstanceKey, i64), Vec<Weak<link::InstanceLink>>>;

pub(crate) struct ReplicaState {
    pub(crate) member: Membership,
    pub(crate) bus: Bus,
    pub(crate) liveness: Arc<Liveness>,
    /// Why the database could not be reached last time.
    store_problem: Mutex<Option<String>>,
    links: Mutex<LinksByPlacement>,
    queued: mpsc::Sender<QueuedMessage>,
    pub(crate) open_requests: OpenRequests,
    recent_placements: RecentPlacements,
    pub(crate) in_flight: AtomicU32,
    next_request: AtomicU64,
    changes: watch::Sender<u64>,
}

/// A message whose answer is not awaited, such as a cancellation.
pub(crate) struct QueuedMessage {
    subject: String,
    message: Bytes,
}

/// The id of a replica as a member of the cluster.
pub(crate) fn member_id(replica: &str) -> String {
    format!("replica-{replica}")
}

/// An id for a process, or for a request: unguessable, and never used again.
pub(crate) fn new_id(kind: &str) -> String {
    format!("{kind}-{:016x}", fastrand::u64(..))
}

impl Replica {
    /// Joins the cluster as this replica.
    pub fn join(options: JoinOptions, own: ReplicaId) -> Self {
        let JoinOptions { bus, store, address, lease: _ } = options;
        let (queued, to_send) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let shared = Arc::new(ReplicaState {
            member: Membership {
                id: member_id(&own.to_string()),
                kind: MemberKind::Replica,
                address,
                store,
                clock: DatabaseClock::default(),
            },
            bus,
            liveness: Arc::default(),
            store_problem: Mutex::default(),
            links: Mutex::default(),
            queued,
            open_requests: OpenRequests::default(),
            recent_placements: RecentPlacements::default(),
            in_flight: AtomicU32::new(0),
            next_request: AtomicU64::new(1),
            changes: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared.liveness).run(
            shared.bus.clone(),
            shared.member.id.clone(),
            FreeSlots::default,
        ));
        tasks.spawn(send_queued(shared.bus.clone(), to_send));
        tasks.spawn(store_signs_of_life(Arc::downgrade(&shared)));
        tasks.spawn(waiting::report_waiting(Arc::downgrade(&shared)));
        tasks.spawn(receive_events(shared.bus.clone(), Arc::downgrade(&shared)));
        Self { shared, own, tasks }
    }

    /// The id of this replica.
    pub fn id(&self) -> &str {
        &self.shared.member.id
    }

    /// The connection to NATS.
    pub fn bus(&self) -> &Bus {
        &self.shared.bus
    }

    /// The database with the members and placements.
    pub fn store(&self) -> Arc<dyn ClusterStore> {
        Arc::clone(&self.shared.member.store)
    }

    /// The connections to servers that workers run.
    pub fn servers(&self) -> Arc<dyn RemoteServers> {
        Arc::new(WorkerServers(Arc::clone(&self.shared)))
    }

    /// What does not work at present, and what follows from it; empty if all works.
    pub fn problems(&self) -> Vec<LocalizedText> {
        self.shared.problems()
    }

    /// Tells the other replicas that something changed which all read from the database.
    pub async fn publish_change(&self, topic: &str) {
        let event = ClusterEvent::Changed { from: self.shared.member.id.clone(), topic: topic.to_owned() };
        let subject = Subjects(&self.shared.bus).events();
        // Without a connection, the others notice it by reading the database.
        let _ = self.shared.bus.publish(&subject, cluster_protocol::write(&event, b"")).await;
    }

    /// Counts what other replicas reported by [`Self::publish_change`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Leaves the cluster.
    pub async fn leave(mut self) {
        self.tasks.shutdown().await;
        self.shared.member.leave(STORE_INTERVAL).await;
    }
}

impl ReplicaState {
    fn problems(&self) -> Vec<LocalizedText> {
        let mut problems = Vec::new();
        if !self.bus.is_connected() {
            let error = BusError::Disconnected;
            problems.push(LocalizedText::new(
                format!("what runs on workers cannot be reached: {}", error.localize(Lang::En)),
                format!("无法访问在工作进程上运行的内容：{}", error.localize(Lang::Zh)),
            ));
        }
        let problem = self.store_problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(error) = problem {
            problems.push(LocalizedText::new(
                format!("servers cannot be placed on workers: the database cannot be reached: {error}"),
                format!("无法把服务器安排到工作进程：无法访问数据库：{error}"),
            ));
        }
        problems
    }

    pub(crate) fn new_request_id(&self) -> String {
        format!("{}-{}", self.member.id, self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    fn cancel(&self, worker: &str, id: &str) {
        let message =
            cluster_protocol::write(&cluster_protocol::WorkerMessage::Cancel { id: id.to_owned() }, b"");
        self.send_later(Subjects(&self.bus).control(worker), message);
    }

    /// Sends a message whose answer is not awaited. If the queue is full, it is dropped: a request that should have been cancelled
    /// runs on, and its result is discarded in any case.
    pub(crate) fn send_later(&self, subject: String, message: Bytes) {
        let _ = self.queued.try_send(QueuedMessage { subject, message });
    }

    fn register(&self, key: InstanceKey, link: &Arc<link::InstanceLink>) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|_, links| {
            links.retain(|link| link.strong_count() > 0);
            !links.is_empty()
        });
        links.entry((key, link.epoch)).or_default().push(Arc::downgrade(link));
    }

    /// The links to a placement. None of another epoch: notifications of a former holder are dropped.
    fn links(&self, key: &InstanceKey, epoch: i64) -> Vec<Arc<link::InstanceLink>> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let found = links.get(&(key.clone(), epoch));
        found.map(|links| links.iter().filter_map(Weak::upgrade).collect()).unwrap_or_default()
    }

    async fn store_sign_of_life(&self) {
        let state = MemberState { load: self.in_flight.load(Ordering::Relaxed), ..MemberState::default() };
        let problem = self.member.store_sign_of_life(state).await.err().map(|error| error.to_string());
        *self.store_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

async fn store_signs_of_life(shared: Weak<ReplicaState>) {
    while let Some(shared) = shared.upgrade() {
        shared.store_sign_of_life().await;
        drop(shared);
        tokio::time::sleep(STORE_INTERVAL).await;
    }
}

async fn send_queued(bus: Bus, mut to_send: mpsc::Receiver<QueuedMessage>) {
    while let Some(QueuedMessage { subject, message }) = to_send.recv().await {
        // The answer is not awaited.
        let _ = bus.request(&subject, message).await;
    }
}

async fn receive_events(bus: Bus, shared: Weak<ReplicaState>) {
    let Ok(mut events) = bus.subscribe(&Subjects(&bus).events()).await else { return };
    while let Some(event) = events.next().await {
        let Some(shared) = shared.upgrade() else { return };
        let Some((event, body)) = cluster_protocol::read::<ClusterEvent>(&event.payload) else { continue };
        match event {
            ClusterEvent::Notification { key, epoch, method } => {
                let params = cluster_protocol::body_json(&body);
                for link in shared.links(&key.into(), epoch) {
                    link.inbox.notification(&method, params.as_ref());
                }
            }
            ClusterEvent::Changed { from, .. } if from != shared.member.id => {
                shared.changes.send_modify(|count| *count += 1);
            }
            ClusterEvent::Changed { .. } => {}
        }
    }
}

/// The servers that workers run.
struct WorkerServers(Arc<ReplicaState>);

impl RemoteServers for WorkerServers {
    fn runs(&self, spec: &ServerSpec) -> bool {
        spec.transport.name() == "stdio"
    }

    fn open<'a>(
        &'a self,
        spec: &'a ServerSpec,
        owner: Option<&'a str>,
        inbox: RemoteInbox,
    ) -> BoxFuture<'a, Result<RemoteConnection, McpError>> {
        Box::pin(open::open(&self.0, spec, owner, inbox))
    }
}

/// The error if NATS cannot be reached; nothing was sent.
fn bus_error(server: &ServerId, error: &BusError) -> McpError {
    McpError::connect(LocalizedText::new(
        format!("`{server}` runs on a worker, which cannot be reached: {}", error.localize(Lang::En)),
        format!("`{server}` 在工作进程上运行，但无法访问：{}", error.localize(Lang::Zh)),
    ))
}
