//! A worker: takes instances of servers under leases, and runs them for the replicas.
//!
//! A lease ends by the clock of the database. The worker counts with the monotonic clock from before it asked, and ends its
//! processes when two thirds of the lease are over: before another worker can take the instance.

mod handler;
mod instance;
mod questions;
mod refusal;
mod scripts;
mod skills;
mod slots;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::RawJson;
use toolhub_core::cluster::{HeldPlacement, InstanceKey, MemberKind};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_client::{ClientHandler, Server};

use crate::bus::{Bus, BusError, IncomingRequest, Requests};
use crate::calls::HandledRequests;
use crate::clock::DatabaseClock;
use crate::cluster_protocol::{self, ControlReply, EndedRequests, Subjects, WorkerMessage};
use crate::liveness::{FreeSlots, Liveness};
use crate::membership::{MemberState, Membership};
use crate::replica::{JoinOptions, new_id};
use handler::{InstanceHandler, QueuedEvent, publish_events};
use instance::Instance;
use questions::{Questions, read_answer};
use scripts::Scripts;
use skills::Skills;

pub use scripts::ScriptOffer;
pub use skills::SkillOffer;

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
    /// The hosts for scripts; `None` if the worker takes none.
    pub scripts: Option<ScriptOffer>,
    /// The scripts of skills; `None` if the worker takes none.
    pub skills: Option<SkillOffer>,
    /// How long running requests may take to finish when the worker ends.
    pub drain: Duration,
}

/// A worker.
pub struct Worker {
    shared: Arc<WorkerState>,
    control: Requests,
    /// `None` if the worker takes no scripts.
    scripts: Option<Requests>,
    /// `None` if the worker takes no skills.
    skills: Option<Requests>,
    events: mpsc::Receiver<QueuedEvent>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("id", &self.shared.member.id).finish_non_exhaustive()
    }
}

/// What a worker is made of beside its connections.
struct WorkerParts {
    lease: Duration,
    options: WorkerOptions,
    servers: Arc<dyn ServerSource>,
    events: mpsc::Sender<QueuedEvent>,
}

struct WorkerState {
    member: Membership,
    bus: Bus,
    lease: Duration,
    options: WorkerOptions,
    servers: Arc<dyn ServerSource>,
    liveness: Arc<Liveness>,
    instances: Mutex<HashMap<InstanceKey, Arc<Instance>>>,
    /// The instances that are being taken.
    claiming: Mutex<HashSet<InstanceKey>>,
    calls: HandledRequests<Questions>,
    scripts: Scripts,
    skills: Skills,
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
        let scripts = match &options.scripts {
            Some(_) => Some(bus.serve(&Subjects(&bus).scripts(&id), None).await?),
            None => None,
        };
        let skills = match &options.skills {
            Some(_) => Some(bus.serve(&Subjects(&bus).skills(&id), None).await?),
            None => None,
        };
        let member =
            Membership { id, kind: MemberKind::Worker, address, store, clock: DatabaseClock::default() };
        let shared = WorkerState::new(member, bus, WorkerParts { lease, options, servers, events: sender });
        Ok(Self { shared: Arc::new(shared), control, scripts, skills, events })
    }

    /// The id of this worker.
    pub fn id(&self) -> &str {
        &self.shared.member.id
    }

    /// Works until `stop` is cancelled, then finishes running requests. Dropping the future kills the processes of all servers.
    pub async fn run(self, stop: CancellationToken) {
        let Self { shared, mut control, scripts, skills, events } = self;
        let free_slots = || match shared.is_draining() {
            true => FreeSlots::default(),
            false => FreeSlots { scripts: shared.scripts.slots.free(), skills: shared.skills.slots.free() },
        };
        let liveness =
            Arc::clone(&shared.liveness).run(shared.bus.clone(), shared.member.id.clone(), free_slots);
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
            () = async {
                if let Some(scripts) = scripts {
                    shared.serve_scripts(scripts).await;
                }
                std::future::pending::<()>().await;
            } => {}
            () = async {
                if let Some(skills) = skills {
                    shared.serve_skills(skills).await;
                }
                std::future::pending::<()>().await;
            } => {}
        }
        shared.tasks.close();
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, shared.tasks.wait()).await;
    }
}

impl WorkerState {
    fn new(member: Membership, bus: Bus, parts: WorkerParts) -> Self {
        let WorkerParts { lease, options, servers, events } = parts;
        Self {
            member,
            bus,
            lease,
            scripts: Scripts::new(options.scripts.clone()),
            skills: Skills::new(options.skills.clone()),
            options,
            servers,
            liveness: Arc::default(),
            instances: Mutex::default(),
            claiming: Mutex::default(),
            calls: HandledRequests::default(),
            events,
            draining: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }
    }

    fn instances(&self) -> MutexGuard<'_, HashMap<InstanceKey, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_instances(&self) -> Vec<Arc<Instance>> {
        self.instances().values().map(Arc::clone).collect()
    }

    fn claiming(&self) -> MutexGuard<'_, HashSet<InstanceKey>> {
        self.claiming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Whether there is neither an instance nor a script.
    fn is_idle(&self) -> bool {
        self.instances().is_empty()
            && self.claiming().is_empty()
            && self.scripts.slots.is_empty()
            && self.skills.slots.is_empty()
    }

    /// The time from before the database is asked until processes must end.
    fn usable(&self) -> Duration {
        self.lease * 2 / 3
    }

    /// Answers a message to this worker.
    async fn control(self: Arc<Self>, request: IncomingRequest) {
        let IncomingRequest { payload, reply } = request;
        let Some((control, body)) = cluster_protocol::read::<WorkerMessage>(&payload) else { return };
        let answer = match control {
            WorkerMessage::Place { key, entry, begin_by } => self
                .place(key.into(), &entry, begin_by)
                .await
                .unwrap_or_else(|why| ControlReply::Refused { why }),
            WorkerMessage::Cancel { id } => {
                self.calls.cancel(&id);
                self.scripts.slots.runs.cancel(&id);
                self.skills.slots.runs.cancel(&id);
                ControlReply::Done
            }
            WorkerMessage::Waiting { ids } => {
                let mut ended = self.calls.renew_interest(&ids);
                ended.extend(self.scripts.slots.runs.renew_interest(&ids));
                ended.extend(self.skills.slots.runs.renew_interest(&ids));
                ControlReply::Waiting(EndedRequests { ended })
            }
            WorkerMessage::ScriptInput { id } => match self.scripts.input(&id, body) {
                true => ControlReply::Done,
                false => ControlReply::Refused {
                    why: LocalizedText::new("the script does not run here", "该脚本不在此处运行"),
                },
            },
            WorkerMessage::ScriptTaken { id, cost } => {
                self.scripts.note_taken(&id, cost);
                ControlReply::Done
            }
            WorkerMessage::Answer { id, number, is_error } => {
                if let Some(call) = self.calls.find(&id) {
                    call.state.answer(number, read_answer(is_error, &body));
                }
                ControlReply::Done
            }
        };
        let _ = reply.finish(&cluster_protocol::write(&answer, b"")).await;
    }

    /// Takes an instance.
    async fn place(
        self: &Arc<Self>,
        key: InstanceKey,
        entry: &str,
        begin_by: i64,
    ) -> Result<ControlReply, LocalizedText> {
        if let Some(why) = self.refusal(begin_by) {
            return Err(why);
        }
        let held =
            self.instances().get(&key).filter(|instance| instance.is_valid()).map(|instance| instance.epoch);
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
        let claimed = self.member.store.claim(key.clone(), self.member.id.clone(), self.lease).await;
        let claimed = claimed.map_err(|error| {
            LocalizedText::new(
                format!("the worker cannot reach the database: {error}"),
                format!("该工作进程无法访问数据库：{error}"),
            )
        })?;
        let epoch = claimed
            .ok_or_else(|| LocalizedText::new("another worker has taken it", "另一个工作进程已接受它"))?;
        handler.set_epoch(epoch);
        let held = HeldPlacement { key: key.clone(), epoch };
        let requests = self.receive_requests(&held).await?;
        let instance = Arc::new(Instance::new(held, server, asked + self.usable()));
        self.instances().insert(key, Arc::clone(&instance));
        self.tasks.spawn(Arc::clone(self).serve(instance, requests));
        Ok(ControlReply::Placed { epoch })
    }

    /// Subscribes to the requests for a placement that this worker has just been given. Without them it is released, so that
    /// another worker may take it at once and not only after the lease.
    async fn receive_requests(&self, held: &HeldPlacement) -> Result<Requests, LocalizedText> {
        let subject = Subjects(&self.bus).call(&held.key, held.epoch);
        match self.bus.serve(&subject, Some(cluster_protocol::QUEUE)).await {
            Ok(requests) => Ok(requests),
            Err(error) => {
                let _ = self.member.store.release(self.member.id.clone(), held.clone()).await;
                Err(LocalizedText::new(
                    format!("the worker cannot reach NATS: {}", error.localize(Lang::En)),
                    format!("该工作进程无法访问 NATS：{}", error.localize(Lang::Zh)),
                ))
            }
        }
    }

    /// Extends the leases, and stores that this worker is alive. Gives up instances that are not used.
    async fn keep_leases(&self) {
        let mut reached = Instant::now();
        loop {
            self.store_sign_of_life().await;
            if self.bus.is_connected() {
                reached = Instant::now();
            }
            let all = self.all_instances();
            if reached.elapsed() > UNREACHABLE_TIMEOUT {
                all.iter().for_each(|instance| instance.end());
            } else if !all.is_empty() {
                let asked = Instant::now();
                let held: Vec<HeldPlacement> = all.iter().map(|instance| instance.held()).collect();
                // If this fails or takes too long, `check_leases` ends the instances.
                if let Ok(kept) = self.member.store.renew(self.member.id.clone(), held, self.lease).await {
                    let kept: HashSet<i64> = kept.into_iter().map(|held| held.epoch).collect();
                    for instance in &all {
                        match kept.contains(&instance.epoch) {
                            true => instance.extend(asked + self.usable()),
                            false => instance.end(),
                        }
                    }
                }
                all.iter()
                    .filter(|instance| instance.is_unused_for(IDLE_TIMEOUT))
                    .for_each(|instance| instance.drain());
            }
            tokio::time::sleep(self.lease / 6).await;
        }
    }

    /// Ends instances whose lease may end for others soon. Does not wait for the database.
    async fn check_leases(&self) {
        loop {
            self.all_instances()
                .iter()
                .filter(|instance| !instance.is_valid())
                .for_each(|instance| instance.end());
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn store_sign_of_life(&self) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let state = MemberState {
            labels: self.options.labels.clone(),
            capacity: number(self.options.capacity),
            load: number(self.instances().len()),
            draining: self.is_draining(),
        };
        // Without the database, leases are not extended and instances end.
        let _ = self.member.store_sign_of_life(state).await;
    }

    /// Takes nothing more, finishes running requests, and gives all instances up.
    async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let finish = async {
            self.store_sign_of_life().await;
            while !self.is_idle() {
                self.all_instances().iter().for_each(|instance| instance.drain());
                tokio::time::sleep(CHECK_INTERVAL / 4).await;
            }
        };
        if tokio::time::timeout(self.options.drain, finish).await.is_err() {
            self.all_instances().iter().for_each(|instance| instance.end());
            self.scripts.slots.end();
            self.skills.slots.end();
            let ended = async {
                while !self.is_idle() {
                    tokio::time::sleep(CHECK_INTERVAL / 4).await;
                }
            };
            let _ = tokio::time::timeout(self.lease, ended).await;
        }
        self.member.leave(LEAVE_TIMEOUT).await;
        self.bus.flush(LEAVE_TIMEOUT).await;
    }
}

/// An instance that is being taken counts towards the capacity.
struct Claim<'a> {
    shared: &'a WorkerState,
    key: InstanceKey,
}

impl<'a> Claim<'a> {
    fn begin(shared: &'a WorkerState, key: &InstanceKey) -> Option<Self> {
        let instances = shared.instances();
        let mut claiming = shared.claiming();
        if instances.contains_key(key)
            || instances.len() + claiming.len() >= shared.options.capacity
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

#[cfg(test)]
mod tests;
