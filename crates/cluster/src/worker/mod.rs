//! A worker: takes instances of servers under leases, and runs them for the replicas.
//!
//! A lease ends by the clock of the database. The worker counts with the monotonic clock from before it asked, and ends its
//! processes when two thirds of the lease are over: before another worker can take the instance.

mod calls;
mod handler;
mod placed;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::RawJson;
use toolhub_core::cluster::{ClusterStore, HeldPlacement, InstanceKey, Member, MemberKind};
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::{ClientHandler, Server};

use crate::bus::{Bus, BusError, IncomingRequest, Requests};
use crate::clock::DatabaseClock;
use crate::liveness::Liveness;
use crate::replica::{JoinOptions, new_id};
use crate::wire::{self, Control, ControlReply, Subjects};
use calls::{Calls, read_answer};
use handler::{InstanceHandler, QueuedEvent, publish_events};
use placed::Placed;

/// How often leases are checked against the monotonic clock.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// An instance without a process is given up after this time without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a connection to NATS for this time, instances are given up: other workers may be reachable.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of events that wait to be published.
const MAX_EVENTS: usize = 1024;
/// How long the database may take to remove this worker when it ends.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the servers that a worker runs, as its own configuration describes them.
pub trait ServerSource: Send + Sync {
    /// Creates a server, not connected. `entry` is the digest of the replica's entry; another one is refused.
    fn server(
        &self,
        id: &str,
        entry: &str,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<Arc<Server>, LocalizedText>;

    /// The capabilities that are declared to servers.
    fn capabilities(&self) -> RawJson;
}

/// What a worker offers.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Labels that servers may ask for.
    pub labels: Vec<String>,
    /// Maximum number of instances.
    pub capacity: usize,
    /// How long running requests may take to finish when the worker ends.
    pub drain: Duration,
}

/// A worker.
pub struct Worker {
    shared: Arc<Shared>,
    control: Requests,
    events: mpsc::Receiver<QueuedEvent>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

struct Shared {
    id: String,
    bus: Bus,
    store: Arc<dyn ClusterStore>,
    address: String,
    lease: Duration,
    options: WorkerOptions,
    servers: Arc<dyn ServerSource>,
    clock: DatabaseClock,
    liveness: Arc<Liveness>,
    placed: Mutex<HashMap<InstanceKey, Arc<Placed>>>,
    /// The instances that are being taken.
    claiming: Mutex<HashSet<InstanceKey>>,
    calls: Calls,
    events: mpsc::Sender<QueuedEvent>,
    draining: AtomicBool,
    tasks: TaskTracker,
}

impl Worker {
    /// Joins the cluster. Replicas give it work once [`Self::run`] runs.
    pub async fn join(
        join: JoinOptions,
        options: WorkerOptions,
        servers: Arc<dyn ServerSource>,
    ) -> Result<Self, BusError> {
        let JoinOptions { bus, store, address, lease } = join;
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        let id = new_id("worker");
        let control = bus.serve(&Subjects(&bus).control(&id), None).await?;
        let shared = Shared {
            id,
            bus,
            store,
            address,
            lease,
            options,
            servers,
            clock: DatabaseClock::default(),
            liveness: Arc::default(),
            placed: Mutex::default(),
            claiming: Mutex::default(),
            calls: Calls::default(),
            events: sender,
            draining: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), control, events })
    }

    /// The id of this worker.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Works until `stop` is cancelled, then finishes running requests. Dropping the future kills the processes of all servers.
    pub async fn run(self, stop: CancellationToken) {
        let Self { shared, mut control, events } = self;
        let liveness = Arc::clone(&shared.liveness).run(shared.bus.clone(), shared.id.clone());
        let serving = async {
            while let Some(request) = control.next().await {
                let shared = Arc::clone(&shared);
                shared.clone().tasks.spawn(async move { shared.control(request).await });
            }
        };
        let ending = async {
            stop.cancelled().await;
            shared.drain().await;
        };
        tokio::select! {
            () = ending => {}
            () = liveness => {}
            () = shared.keep_leases() => {}
            () = shared.check_leases() => {}
            () = publish_events(&shared.bus, events) => {}
            () = async { serving.await; std::future::pending::<()>().await } => {}
        }
        shared.tasks.close();
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, shared.tasks.wait()).await;
    }
}

impl Shared {
    fn placed(&self) -> MutexGuard<'_, HashMap<InstanceKey, Arc<Placed>>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_placed(&self) -> Vec<Arc<Placed>> {
        self.placed().values().map(Arc::clone).collect()
    }

    fn claiming(&self) -> MutexGuard<'_, HashSet<InstanceKey>> {
        self.claiming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time from before the database is asked until processes must end.
    fn usable(&self) -> Duration {
        self.lease * 2 / 3
    }

    /// Answers a message to this worker.
    async fn control(self: Arc<Self>, request: IncomingRequest) {
        let IncomingRequest { payload, reply } = request;
        let Some((control, body)) = wire::read::<Control>(&payload) else { return };
        let answer = match control {
            Control::Place { key, entry, begin_by } => self
                .place(key.into(), &entry, begin_by)
                .await
                .unwrap_or_else(|why| ControlReply::Refused { why }),
            Control::Cancel { id } => {
                self.calls.cancel(&id);
                ControlReply::Done
            }
            Control::Answer { id, number, is_error } => {
                self.calls.answer(&id, number, read_answer(is_error, &body));
                ControlReply::Done
            }
        };
        let _ = reply.finish(&wire::write(&answer, b"")).await;
    }

    /// Takes an instance.
    async fn place(
        self: &Arc<Self>,
        key: InstanceKey,
        entry: &str,
        begin_by: i64,
    ) -> Result<ControlReply, LocalizedText> {
        if self.draining.load(Ordering::Acquire) {
            return Err(LocalizedText::new("the worker is about to end", "该工作进程即将结束"));
        }
        if self.clock.now().is_none_or(|now| now > begin_by) {
            return Err(LocalizedText::new("the request came too late", "请求来得太晚"));
        }
        let held = self.placed().get(&key).filter(|placed| placed.is_valid()).map(|placed| placed.epoch);
        if let Some(epoch) = held {
            return Ok(ControlReply::Placed { epoch });
        }
        let Some(_claim) = Claim::begin(self, &key) else {
            return Err(LocalizedText::new(
                "the worker is full or already takes it: raise `[worker] capacity`, or start another one",
                "该工作进程已满或正在接受它：请调大 `[worker] capacity`，或再启动一个工作进程",
            ));
        };
        let handler =
            Arc::new(InstanceHandler::new(key.clone(), self.events.clone(), self.servers.capabilities()));
        let server = self.servers.server(&key.server, entry, Arc::clone(&handler) as _)?;
        let asked = Instant::now();
        let claimed = self.store.claim(key.clone(), self.id.clone(), self.lease).await;
        let claimed = claimed.map_err(|error| {
            LocalizedText::new(
                format!("the worker cannot reach the database: {error}"),
                format!("该工作进程无法访问数据库：{error}"),
            )
        })?;
        let epoch = claimed
            .ok_or_else(|| LocalizedText::new("another worker has taken it", "另一个工作进程已接受它"))?;
        handler.set_epoch(epoch);
        let subject = Subjects(&self.bus).call(&key, epoch);
        let requests = self.bus.serve(&subject, Some(wire::QUEUE)).await.map_err(|error| {
            LocalizedText::new(
                format!("the worker cannot reach NATS: {error}"),
                format!("该工作进程无法访问 NATS：{error}"),
            )
        })?;
        let placed =
            Arc::new(Placed::new(HeldPlacement { key: key.clone(), epoch }, server, asked + self.usable()));
        self.placed().insert(key, Arc::clone(&placed));
        self.tasks.spawn(Arc::clone(self).serve(placed, requests));
        Ok(ControlReply::Placed { epoch })
    }

    /// Extends the leases, and stores that this worker is alive. Gives up instances that are not used.
    async fn keep_leases(&self) {
        let mut reached = Instant::now();
        loop {
            self.store_sign_of_life().await;
            if self.bus.is_connected() {
                reached = Instant::now();
            }
            let all = self.all_placed();
            if reached.elapsed() > UNREACHABLE_TIMEOUT {
                all.iter().for_each(|placed| placed.end());
            } else if !all.is_empty() {
                let asked = Instant::now();
                let held: Vec<HeldPlacement> = all.iter().map(|placed| placed.held()).collect();
                // If this fails or takes too long, `check_leases` ends the instances.
                if let Ok(kept) = self.store.renew(self.id.clone(), held, self.lease).await {
                    let kept: HashSet<i64> = kept.into_iter().map(|held| held.epoch).collect();
                    for placed in &all {
                        match kept.contains(&placed.epoch) {
                            true => placed.extend(asked + self.usable()),
                            false => placed.end(),
                        }
                    }
                }
                all.iter()
                    .filter(|placed| placed.is_unused_for(IDLE_TIMEOUT))
                    .for_each(|placed| placed.drain());
            }
            tokio::time::sleep(self.lease / 6).await;
        }
    }

    /// Ends instances whose lease may end for others soon. Does not wait for the database.
    async fn check_leases(&self) {
        loop {
            self.all_placed().iter().filter(|placed| !placed.is_valid()).for_each(|placed| placed.end());
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn store_sign_of_life(&self) {
        let asked = Instant::now();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let member = Member {
            id: self.id.clone(),
            kind: MemberKind::Worker,
            address: self.address.clone(),
            labels: self.options.labels.clone(),
            capacity: number(self.options.capacity),
            load: number(self.placed().len()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: self.draining.load(Ordering::Acquire),
            silent_for: Duration::ZERO,
        };
        if let Ok(now) = self.store.beat(member).await {
            self.clock.set(now, asked);
        }
    }

    /// Takes nothing more, finishes running requests, and gives all instances up.
    async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let finish = async {
            self.store_sign_of_life().await;
            while !(self.placed().is_empty() && self.claiming().is_empty()) {
                self.all_placed().iter().for_each(|placed| placed.drain());
                tokio::time::sleep(CHECK_INTERVAL / 4).await;
            }
        };
        if tokio::time::timeout(self.options.drain, finish).await.is_err() {
            self.all_placed().iter().for_each(|placed| placed.end());
            let ended = async {
                while !self.placed().is_empty() {
                    tokio::time::sleep(CHECK_INTERVAL / 4).await;
                }
            };
            let _ = tokio::time::timeout(self.lease, ended).await;
        }
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.store.leave(self.id.clone())).await;
        self.bus.flush(LEAVE_TIMEOUT).await;
    }
}

/// An instance that is being taken counts towards the capacity.
struct Claim<'a> {
    shared: &'a Shared,
    key: InstanceKey,
}

impl<'a> Claim<'a> {
    fn begin(shared: &'a Shared, key: &InstanceKey) -> Option<Self> {
        let placed = shared.placed();
        let mut claiming = shared.claiming();
        if placed.contains_key(key)
            || placed.len() + claiming.len() >= shared.options.capacity
            || !claiming.insert(key.clone())
        {
            return None;
        }
        Some(Self { shared, key: key.clone() })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.shared.claiming().remove(&self.key);
    }
}
