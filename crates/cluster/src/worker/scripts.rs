//! Scripts of replicas on this worker: it lends them a host, and passes the messages between host and replica on without reading them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::duration_millis;
use toolhub_core::script_host::{
    ScriptHost, ScriptHostEnd, ScriptHostEndCause, ScriptHostEvent, ScriptHosts,
};

use super::instance::RUNNING_INTERVAL;
use super::slots::{RunTerms, Slots, ticks};
use super::{WorkerState, refusal};
use crate::bus::{BusError, IncomingRequest, ReplyWriter, Requests};
use crate::calls::HandledRequest;
use crate::cluster_protocol::{self, PROTOCOL, ScriptHead, ScriptReply, WINDOW_BYTES};

/// Messages of a replica to one host that wait. The replica sends the next one after an answer.
const MAX_INPUTS: usize = 4;

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
    pub(super) slots: Slots<Streams>,
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
        let capacity = offer.as_ref().map_or(0, |offer| offer.slots);
        Self { offer, slots: Slots::new(capacity) }
    }

    /// Passes messages to a host. `false` if the script does not run here.
    pub(super) fn input(&self, id: &str, lines: Bytes) -> bool {
        self.slots.runs.find(id).is_some_and(|run| run.state.inputs.try_send(lines).is_ok())
    }

    pub(super) fn note_taken(&self, id: &str, cost: u64) {
        if let Some(run) = self.slots.runs.find(id) {
            run.state.taken.send_modify(|taken| *taken = cost.max(*taken));
        }
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
        let Some(running) = self.scripts.slots.runs.begin(&head.id) else { return };
        if head.protocol != PROTOCOL || head.version != offer.version {
            return refuse(reply, refusal::other_version(), false).await;
        }
        if let Some(why) = self.refusal(head.begin_by) {
            return refuse(reply, why, false).await;
        }
        let Some(_slot) = self.scripts.slots.take() else {
            return refuse(reply, refusal::full("scripts"), true).await;
        };
        if reply.send(&cluster_protocol::write(&ScriptReply::Accepted, b"")).await.is_err() {
            return;
        }
        let terms = RunTerms { from: &head.from, began: Instant::now(), max_time: offer.max_time };
        let run = ScriptRun { shared: self, offer, call: &running.call, terms };
        // Without a connection the replica notices the end by itself.
        let _ = run.run(reply, first).await;
    }
}

/// A script that this worker runs for a replica.
struct ScriptRun<'a> {
    shared: &'a WorkerState,
    offer: &'a ScriptOffer,
    call: &'a HandledRequest<Streams>,
    terms: RunTerms<'a>,
}

impl ScriptRun<'_> {
    /// Reports that the script runs. `false` if it must end; the replica has been told why if it waits.
    async fn report(&self, reply: &mut ReplyWriter, cpu_ms: Option<u64>) -> Result<bool, BusError> {
        if !self.terms.is_wanted(self.shared, self.call) {
            return Ok(false);
        }
        if self.terms.is_over_time() {
            reply.send(&ended(stop(refusal::over_time("time", "script")), cpu_ms)).await?;
            return Ok(false);
        }
        reply.send(&cluster_protocol::write(&ScriptReply::Running { cpu_ms }, b"")).await?;
        Ok(true)
    }

    /// Runs the script to its end. Dropping the future ends its host.
    async fn run(self, mut reply: ReplyWriter, first: Bytes) -> Result<(), BusError> {
        let mut ticks = ticks(RUNNING_INTERVAL);
        let begin = self.offer.hosts.begin(&first);
        tokio::pin!(begin);
        let host = loop {
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(()),
                () = self.shared.scripts.slots.ended.cancelled() => return reply.finish(&ended(stop(refusal::worker_stopped()), None)).await,
                begun = &mut begin => match begun {
                    Ok(host) => break host,
                    Err(text) => {
                        return reply.finish(&ended(stop(text), None)).await;
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
        let mut ticks = ticks(RUNNING_INTERVAL);
        loop {
            let has_room = sent - (*taken.borrow_and_update()).min(sent) < WINDOW_BYTES;
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(()),
                () = self.shared.scripts.slots.ended.cancelled() => {
                    return reply.finish(&ended(stop(refusal::worker_stopped()), cpu_of(&*host))).await;
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

fn stop(text: LocalizedText) -> ScriptHostEnd {
    ScriptHostEnd { cause: ScriptHostEndCause::Other, text }
}

async fn refuse(reply: ReplyWriter, why: LocalizedText, full: bool) {
    let _ = reply.finish(&cluster_protocol::write(&ScriptReply::Refused { why, full }, b"")).await;
}
