//! Scripts on workers: the messages between the hub and a script's host travel over the bus. Calls, rules, journal and records stay at
//! the replica, so that a lost worker loses a computation and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use toolhub_core::BoxFuture;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::script_host::{
    ScriptHost, ScriptHostEnd, ScriptHostEndCause, ScriptHostEvent, ScriptHosts,
};

use super::candidates::{Candidates, FULL_RETRY_INTERVAL, NotBegun, Refusals, worker_lost};
use super::waiting::OpenRequest;
use super::{Replica, ReplicaState};
use crate::bus::BusError;
use crate::clock::millis;
use crate::cluster_protocol::{
    self, ControlReply, PROTOCOL, REPORT_BYTES, ScriptHead, ScriptReply, Subjects, WorkerMessage,
};
use crate::exchange::{ACCEPT_TIMEOUT, RequestExchange};
use crate::liveness::SlotKind;

/// How long a worker may take to acknowledge messages for a script.
const INPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes that are sent to a script before the worker acknowledges them.
const MAX_INPUT_BYTES: usize = 1 << 20;
/// A script has ended if its worker refuses a message; the end arrives within this time.
const END_TIMEOUT: Duration = Duration::from_secs(1);
impl Replica {
    /// The script hosts of workers. `version` is that of the messages between hub and host. If all workers are full, a script waits
    /// for one with `waits`; otherwise it does not begin.
    pub fn script_hosts(&self, version: u32, waits: bool) -> Arc<dyn ScriptHosts> {
        let candidates = Candidates::new(&self.shared, SlotKind::Script);
        Arc::new(ScriptWorkers { candidates, version, waits })
    }
}

/// The workers that take scripts.
struct ScriptWorkers {
    candidates: Candidates,
    version: u32,
    waits: bool,
}

impl ScriptHosts for ScriptWorkers {
    fn begin<'a>(&'a self, first: &'a [u8]) -> BoxFuture<'a, Result<Box<dyn ScriptHost>, LocalizedText>> {
        Box::pin(async move {
            loop {
                let mut refusals = Refusals::default();
                for worker in self.candidates.find().await {
                    match self.begin_at(&worker.member, first).await {
                        Ok(script) => return Ok(Box::new(script) as Box<dyn ScriptHost>),
                        Err(not_begun) => refusals.push(not_begun),
                    }
                }
                if !(self.waits && refusals.is_any_full) {
                    return Err(no_worker(refusals.last));
                }
                tokio::time::sleep(FULL_RETRY_INTERVAL).await;
            }
        })
    }
}

fn no_worker(refusal: Option<LocalizedText>) -> LocalizedText {
    match refusal {
        Some(why) => LocalizedText::new(
            format!("no worker takes the script: {}", why.localize(Lang::En)),
            format!("没有工作进程接受该脚本：{}", why.localize(Lang::Zh)),
        ),
        None => LocalizedText::new(
            "no worker takes scripts: start `toolhub work`, or write `scripts = \"auto\"` in `[cluster]`",
            "没有接受脚本的工作进程：请运行 `toolhub work`，或在 `[cluster]` 中写 `scripts = \"auto\"`",
        ),
    }
}

impl ScriptWorkers {
    /// Gives the script to a worker, and waits until a host there has it.
    async fn begin_at(&self, worker: &str, first: &[u8]) -> Result<RemoteScript, NotBegun> {
        let shared = &self.candidates.shared;
        let now = shared.member.clock.now().ok_or_else(|| NotBegun::from(&BusError::Disconnected))?;
        let head = ScriptHead {
            protocol: PROTOCOL,
            version: self.version,
            id: shared.new_request_id(),
            from: shared.member.id.clone(),
            begin_by: now.saturating_add(millis(ACCEPT_TIMEOUT)),
        };
        let subjects = Subjects(&shared.bus);
        let open = OpenRequest::new(shared, subjects.control(worker), &head.id);
        // Before the request is sent: dropping this future may happen after that, and must cancel it.
        let mut script = RemoteScript::new(Arc::clone(shared), worker, open);
        let sent = shared.bus.request(&subjects.scripts(worker), cluster_protocol::write(&head, first)).await;
        let replies = sent.map_err(|error| NotBegun::from(&error))?;
        let mut exchange = RequestExchange::of(replies, &script.open, &shared.liveness, worker);
        loop {
            match exchange.next::<ScriptReply>().await {
                Ok((ScriptReply::Accepted | ScriptReply::Running { .. }, _)) => exchange.accept(),
                Ok((ScriptReply::Started, _)) => {
                    exchange.accept();
                    script.exchange = Some(exchange);
                    return Ok(script);
                }
                Ok((ScriptReply::Refused { why, full }, _)) => {
                    script.is_over = true;
                    return Err(NotBegun { why, is_full: full });
                }
                Ok((ScriptReply::Ended { end, .. }, _)) => {
                    script.is_over = true;
                    return Err(NotBegun { why: end.text, is_full: false });
                }
                Ok((ScriptReply::Line { .. } | ScriptReply::Written { .. }, _)) => {
                    return Err(NotBegun::from(&BusError::Unexpected));
                }
                Err(error) => return Err(NotBegun::from(&error)),
            }
        }
    }
}

/// A script that a worker's host runs.
struct RemoteScript {
    shared: Arc<ReplicaState>,
    worker: String,
    open: OpenRequest,
    exchange: Option<RequestExchange>,
    /// Lines of the host that were not read yet. The worker sends no more than a window.
    incoming: VecDeque<Bytes>,
    /// What was read of the lines, as the sum of [`cluster_protocol::window_cost`], and what of it was reported to the worker.
    taken: u64,
    reported: u64,
    /// Messages to the host that are not on their way yet.
    outgoing: BytesMut,
    /// Messages on their way. The next ones follow when the worker has these, so that they stay in order.
    delivery: Option<BoxFuture<'static, Result<ControlReply, BusError>>>,
    /// Bytes of all messages to the host, and those that it has taken.
    queued: u64,
    written: u64,
    cpu: Option<Duration>,
    end: Option<ScriptHostEnd>,
    /// The worker runs it no more.
    is_over: bool,
}

impl RemoteScript {
    fn new(shared: Arc<ReplicaState>, worker: &str, open: OpenRequest) -> Self {
        Self {
            shared,
            worker: worker.to_owned(),
            open,
            exchange: None,
            incoming: VecDeque::new(),
            taken: 0,
            reported: 0,
            outgoing: BytesMut::new(),
            delivery: None,
            queued: 0,
            written: 0,
            cpu: None,
            end: None,
            is_over: false,
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let line = self.incoming.pop_front()?;
        self.taken = self.taken.saturating_add(cluster_protocol::window_cost(&line));
        if self.taken - self.reported >= REPORT_BYTES {
            self.report();
        }
        Some(line.to_vec())
    }

    /// Reports how much was read, so that further lines are sent.
    fn report(&mut self) {
        self.reported = self.taken;
        let message = WorkerMessage::ScriptTaken { id: self.open.id.to_string(), cost: self.taken };
        self.shared.send_later(self.open.subject.clone(), cluster_protocol::write(&message, b""));
    }

    /// Sends what is queued if nothing is on its way.
    fn deliver(&mut self) {
        if self.outgoing.is_empty() || self.delivery.is_some() {
            return;
        }
        let lines = self.outgoing.split_to(self.outgoing.len().min(MAX_INPUT_BYTES));
        let head = WorkerMessage::ScriptInput { id: self.open.id.to_string() };
        let (bus, worker, message) =
            (self.shared.bus.clone(), self.worker.clone(), cluster_protocol::write(&head, &lines));
        self.delivery =
            Some(Box::pin(
                async move { cluster_protocol::control(&bus, &worker, message, INPUT_TIMEOUT).await },
            ));
    }

    /// The worker is lost, or messages were.
    fn lose(&mut self, why: &BusError) {
        let text = worker_lost(&self.worker, why);
        self.end = Some(ScriptHostEnd { cause: ScriptHostEndCause::Other, text });
    }

    /// Takes a message of the worker. `true` if the host has taken everything that was queued.
    fn receive(&mut self, reply: ScriptReply, body: Bytes) -> bool {
        match reply {
            ScriptReply::Line { cpu_ms } => {
                self.note_cpu(cpu_ms);
                self.incoming.push_back(body);
            }
            ScriptReply::Written { bytes } => {
                self.written = bytes.max(self.written);
                return self.unsent() == 0;
            }
            ScriptReply::Running { cpu_ms } => {
                self.note_cpu(cpu_ms);
                // A report may have been lost.
                if self.taken > 0 {
                    self.report();
                }
            }
            ScriptReply::Ended { end, cpu_ms } => {
                self.note_cpu(cpu_ms);
                self.is_over = true;
                self.end = Some(end);
            }
            ScriptReply::Accepted | ScriptReply::Started | ScriptReply::Refused { .. } => {
                self.lose(&BusError::Unexpected);
            }
        }
        false
    }

    fn note_cpu(&mut self, cpu_ms: Option<u64>) {
        self.cpu = self.cpu.max(cpu_ms.map(Duration::from_millis));
    }
}

impl ScriptHost for RemoteScript {
    fn send(&mut self, lines: &[u8]) {
        self.queued = self.queued.saturating_add(lines.len() as u64);
        self.outgoing.extend_from_slice(lines);
    }

    fn unsent(&self) -> usize {
        usize::try_from(self.queued.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    fn next(&mut self, reads: bool) -> BoxFuture<'_, ScriptHostEvent> {
        Box::pin(async move {
            loop {
                // The lines before the end are few, and answers to them can go nowhere.
                if (reads || self.end.is_some())
                    && let Some(line) = self.take_line()
                {
                    return ScriptHostEvent::Line(line);
                }
                if let Some(end) = &self.end {
                    return ScriptHostEvent::Ended(end.clone());
                }
                self.deliver();
                let Self { exchange, delivery, .. } = self;
                let delivered = async {
                    match delivery {
                        Some(delivery) => delivery.await,
                        None => std::future::pending().await,
                    }
                };
                let received = async {
                    match exchange {
                        Some(exchange) => exchange.next::<ScriptReply>().await,
                        None => Err(BusError::Incomplete),
                    }
                };
                tokio::select! {
                    received = received => match received {
                        Ok((reply, body)) => {
                            if self.receive(reply, body) {
                                return ScriptHostEvent::Written;
                            }
                        }
                        Err(error) => self.lose(&error),
                    },
                    delivered = delivered => {
                        self.delivery = None;
                        match delivered {
                            Ok(ControlReply::Done) => {}
                            Ok(_) => {
                                self.delivery = Some(Box::pin(async {
                                    tokio::time::sleep(END_TIMEOUT).await;
                                    Err(BusError::Incomplete)
                                }));
                            }
                            Err(error) => self.lose(&error),
                        }
                    }
                }
            }
        })
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.cpu
    }
}

impl Drop for RemoteScript {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.cancel(&self.worker, &self.open.id);
        }
    }
}
