//! Scripts of replicas on this worker: it lends them a host, and passes the messages between host and replica on without reading them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::duration_millis;
use toolhub_core::script_host::{
    ScriptHost, ScriptHostEnd, ScriptHostEndCause, ScriptHostEvent, ScriptHosts,
};

use super::WorkerState;
use super::instance::{REPLICA_TIMEOUT, RUNNING_INTERVAL};
use crate::bus::{BusError, IncomingRequest, ReplyWriter, Requests};
use crate::calls::{HandledRequest, HandledRequests};
use crate::cluster_protocol::{self, PROTOCOL, ScriptHead, ScriptReply, WINDOW_BYTES};

/// Messages of a replica to one host that wait. The replica sends the next one after an answer.
const MAX_INPUTS: usize = 4;
/// A script is ended this long after the time at which its replica should have ended it.
const OVERTIME: Duration = Duration::from_secs(60);

/// The hosts that a worker lends.
#[derive(Clone)]
pub struct ScriptOffer {
    /// The hosts.
    pub hosts: Arc<dyn ScriptHosts>,
    /// The version of the messages between hub and host.
    pub version: u32,
    /// Maximum number of scripts at the same time.
    pub slots: usize,
    /// The longest time that a script may take.
    pub max_time: Duration,
}

impl std::fmt::Debug for ScriptOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptOffer").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// The scripts on a worker.
pub(super) struct Scripts {
    offer: Option<ScriptOffer>,
    /// Maximum number of scripts at the same time.
    capacity: usize,
    slots: Semaphore,
    runs: HandledRequests<Streams>,
    /// All scripts end.
    ended: CancellationToken,
}

/// What belongs to a script that runs.
pub(super) struct Streams {
    inputs: mpsc::Sender<Bytes>,
    /// Taken by the task that runs the script.
    received: Mutex<Option<mpsc::Receiver<Bytes>>>,
    /// What the replica has taken of the lines, as the sum of [`cluster_protocol::window_cost`].
    taken: watch::Sender<u64>,
}

impl Default for Streams {
    fn default() -> Self {
        let (inputs, received) = mpsc::channel(MAX_INPUTS);
        Self { inputs, received: Mutex::new(Some(received)), taken: watch::Sender::default() }
    }
}

impl Scripts {
    pub(super) fn new(offer: Option<ScriptOffer>) -> Self {
        let capacity = offer.as_ref().map_or(0, |offer| offer.slots.min(Semaphore::MAX_PERMITS));
        Self {
            offer,
            capacity,
            slots: Semaphore::new(capacity),
            runs: HandledRequests::default(),
            ended: CancellationToken::new(),
        }
    }

    /// How many more scripts it takes; `None` if it takes none.
    pub(super) fn free_slots(&self) -> Option<u32> {
        self.offer.as_ref()?;
        Some(u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX))
    }

    /// Whether no script runs.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.available_permits() == self.capacity
    }

    /// Ends all scripts.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn cancel(&self, id: &str) {
        self.runs.cancel(id);
    }

    pub(super) fn renew_interest(&self, ids: &[String]) -> Vec<String> {
        self.runs.renew_interest(ids)
    }

    /// Passes messages to a host. `false` if the script does not run here.
    pub(super) fn input(&self, id: &str, lines: Bytes) -> bool {
        self.runs.find(id).is_some_and(|run| run.state.inputs.try_send(lines).is_ok())
    }

    pub(super) fn note_taken(&self, id: &str, cost: u64) {
        if let Some(run) = self.runs.find(id) {
            run.state.taken.send_modify(|taken| *taken = cost.max(*taken));
        }
    }

    /// Why a script cannot run here.
    fn refusal(&self, head: &ScriptHead, is_late: bool) -> Option<LocalizedText> {
        let version = self.offer.as_ref().map(|offer| offer.version);
        if head.protocol != PROTOCOL || version != Some(head.version) {
            return Some(LocalizedText::new(
                "the worker is another version of toolhub: run the same version on all machines",
                "该工作进程是另一个版本的 toolhub：请在所有机器上运行相同的版本",
            ));
        }
        is_late.then(|| LocalizedText::new("the request expired before the worker received it", "请求已超时"))
    }
}

impl WorkerState {
    /// Receives scripts.
    pub(super) async fn serve_scripts(self: &Arc<Self>, mut requests: Requests) {
        while let Some(request) = requests.next().await {
            let shared = Arc::clone(self);
            self.tasks.spawn(async move { shared.run_script(request).await });
        }
    }

    async fn run_script(&self, request: IncomingRequest) {
        let IncomingRequest { payload, mut reply } = request;
        let Some((head, first)) = cluster_protocol::read::<ScriptHead>(&payload) else { return };
        drop(payload);
        let Some(offer) = &self.scripts.offer else { return };
        // A copy of a request gets no answer: the first one does.
        let Some(running) = self.scripts.runs.begin(&head.id) else { return };
        let is_late = self.member.clock.now().is_none_or(|now| now > head.begin_by);
        if let Some(why) = self.scripts.refusal(&head, is_late) {
            return refuse(reply, why, false).await;
        }
        if self.is_draining() {
            let why = LocalizedText::new("the worker is about to end", "该工作进程即将结束");
            return refuse(reply, why, false).await;
        }
        let Ok(_slot) = self.scripts.slots.try_acquire() else {
            let why = LocalizedText::new(
                "the worker is full: raise `scripts` in `[worker]`, or start another one",
                "该工作进程已满：请调大 `[worker]` 的 `scripts`，或再启动一个工作进程",
            );
            return refuse(reply, why, true).await;
        };
        if reply.send(&cluster_protocol::write(&ScriptReply::Accepted, b"")).await.is_err() {
            return;
        }
        let run =
            ScriptRun { shared: self, offer, call: &running.call, from: &head.from, began: Instant::now() };
        // Without a connection the replica notices the end by itself.
        let _ = run.run(reply, first).await;
    }
}

/// A script that this worker runs for a replica.
struct ScriptRun<'a> {
    shared: &'a WorkerState,
    offer: &'a ScriptOffer,
    call: &'a HandledRequest<Streams>,
    from: &'a str,
    began: Instant,
}

impl ScriptRun<'_> {
    /// Whether the replica lives and waits for the script. Without it the script has no effect, but takes a slot.
    fn is_wanted(&self) -> bool {
        self.shared.liveness.silent_since(self.from, self.began).elapsed() <= REPLICA_TIMEOUT
            && self.call.is_waited_for()
    }

    fn is_over_time(&self) -> bool {
        self.began.elapsed() > self.offer.max_time.saturating_add(OVERTIME)
    }

    /// Reports that the script runs. `false` if it must end; the replica has been told why if it waits.
    async fn report(&self, reply: &mut ReplyWriter, cpu_ms: Option<u64>) -> Result<bool, BusError> {
        if !self.is_wanted() {
            return Ok(false);
        }
        if self.is_over_time() {
            reply.send(&ended(over_time(), cpu_ms)).await?;
            return Ok(false);
        }
        reply.send(&cluster_protocol::write(&ScriptReply::Running { cpu_ms }, b"")).await?;
        Ok(true)
    }

    /// Runs the script to its end. Dropping the future ends its host.
    async fn run(self, mut reply: ReplyWriter, first: Bytes) -> Result<(), BusError> {
        let mut ticks = tokio::time::interval(RUNNING_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.reset();
        let begin = self.offer.hosts.begin(&first);
        tokio::pin!(begin);
        let host = loop {
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(()),
                () = self.shared.scripts.ended.cancelled() => return reply.finish(&ended(worker_ended(), None)).await,
                begun = &mut begin => match begun {
                    Ok(host) => break host,
                    Err(text) => {
                        let end = ScriptHostEnd { cause: ScriptHostEndCause::Other, text };
                        return reply.finish(&ended(end, None)).await;
                    }
                },
                _ = ticks.tick() => {
                    if !self.report(&mut reply, None).await? {
                        return Ok(());
                    }
                }
            }
        };
        reply.send(&cluster_protocol::write(&ScriptReply::Started, b"")).await?;
        self.relay(reply, host).await
    }

    /// Passes messages on until the script ends.
    async fn relay(self, mut reply: ReplyWriter, mut host: Box<dyn ScriptHost>) -> Result<(), BusError> {
        let streams = &self.call.state;
        let received = streams.received.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut inputs) = received else { return Ok(()) };
        let mut taken = streams.taken.subscribe();
        let (mut sent, mut received) = (0_u64, 0_u64);
        let mut ticks = tokio::time::interval(RUNNING_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.reset();
        loop {
            let has_room = sent - (*taken.borrow_and_update()).min(sent) < WINDOW_BYTES;
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(()),
                () = self.shared.scripts.ended.cancelled() => {
                    return reply.finish(&ended(worker_ended(), cpu_of(&*host))).await;
                }
                _ = ticks.tick() => {
                    if !self.report(&mut reply, cpu_of(&*host)).await? {
                        return Ok(());
                    }
                }
                Some(lines) = inputs.recv() => {
                    received = received.saturating_add(lines.len() as u64);
                    host.send(&lines);
                }
                event = host.next(has_room) => match event {
                    ScriptHostEvent::Line(line) => {
                        sent = sent.saturating_add(cluster_protocol::window_cost(&line));
                        let head = ScriptReply::Line { cpu_ms: cpu_of(&*host) };
                        reply.send(&cluster_protocol::write(&head, &line)).await?;
                    }
                    ScriptHostEvent::Written => {
                        reply.send(&cluster_protocol::write(&ScriptReply::Written { bytes: received }, b"")).await?;
                    }
                    ScriptHostEvent::Ended(end) => return reply.finish(&ended(end, cpu_of(&*host))).await,
                },
                // Its sender is in `call`.
                _ = taken.changed(), if !has_room => {}
            }
        }
    }
}

fn cpu_of(host: &dyn ScriptHost) -> Option<u64> {
    host.cpu_time().map(duration_millis)
}

fn ended(end: ScriptHostEnd, cpu_ms: Option<u64>) -> Bytes {
    cluster_protocol::write(&ScriptReply::Ended { end, cpu_ms }, b"")
}

fn worker_ended() -> ScriptHostEnd {
    ScriptHostEnd {
        cause: ScriptHostEndCause::Other,
        text: LocalizedText::new("its worker was stopped", "其工作进程已停止"),
    }
}

fn over_time() -> ScriptHostEnd {
    ScriptHostEnd {
        cause: ScriptHostEndCause::Other,
        text: LocalizedText::new(
            "it ran longer than its worker allows: raise `time` in `[script]` of the worker",
            "脚本运行时间超过其工作进程的限制：请调大该工作进程 `[script]` 的 `time`",
        ),
    }
}

async fn refuse(reply: ReplyWriter, why: LocalizedText, full: bool) {
    let _ = reply.finish(&cluster_protocol::write(&ScriptReply::Refused { why, full }, b"")).await;
}
