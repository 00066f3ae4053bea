//! An instance of a server on this worker: its lease, and the requests for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_core::caller::{CLIENT_ANSWER_TIMEOUT, ClientResponse};
use toolhub_core::cluster::{HeldPlacement, InstanceKey};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson, RawObject};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::remote::{RemoteClient, ServedRequest, ServedServer, cut_off};

use super::WorkerState;
use super::questions::Questions;
use super::refusal::other_version;
use crate::bus::{IncomingRequest, ReplyWriter, Requests};
use crate::calls::HandledRequest;
use crate::cluster_protocol::{self, CallHead, CallReply, PROTOCOL, PlacementAction, WorkerRefusal};

/// How often a running request is reported to its replica.
pub(super) const RUNNING_INTERVAL: Duration = Duration::from_secs(5);
/// A request is cancelled if its replica has not given a sign of life for this time.
pub(super) const REPLICA_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of messages about a request that wait to be sent. Notifications beyond it are dropped.
const MAX_QUEUED_MESSAGES: usize = 256;
/// How long the processes of a server may take to end; then they are killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long requests are still refused after an instance was given up. A replica that is refused sends no more.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An instance under a lease.
pub(super) struct Instance {
    key: InstanceKey,
    pub(super) epoch: i64,
    served: ServedServer,
    /// Until when the instance may be used.
    valid_until: Mutex<Instant>,
    last_used: Mutex<Instant>,
    /// No more requests are taken.
    draining: CancellationToken,
    /// Everything ends at once.
    ended: CancellationToken,
}

impl Instance {
    pub(super) fn new(held: HeldPlacement, server: Arc<Server>, valid_until: Instant) -> Self {
        let HeldPlacement { key, epoch } = held;
        Self {
            key,
            epoch,
            served: ServedServer::new(server),
            valid_until: Mutex::new(valid_until),
            last_used: Mutex::new(Instant::now()),
            draining: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn held(&self) -> HeldPlacement {
        HeldPlacement { key: self.key.clone(), epoch: self.epoch }
    }

    /// Whether no other worker can hold the instance, and will not for a while.
    pub(super) fn is_valid(&self) -> bool {
        let until = *self.valid_until.lock().unwrap_or_else(PoisonError::into_inner);
        !self.ended.is_cancelled() && Instant::now() < until
    }

    pub(super) fn extend(&self, until: Instant) {
        *self.valid_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Takes no more requests, and ends after those that run.
    pub(super) fn drain(&self) {
        self.draining.cancel();
    }

    /// Kills the processes.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether it has no process, and no request came for this time.
    pub(super) fn is_unused_for(&self, span: Duration) -> bool {
        if self.served.is_in_use() {
            self.touch();
        }
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= span
    }
}

impl WorkerState {
    /// Processes the requests for an instance until it is given up or lost.
    pub(super) async fn serve(self: Arc<Self>, instance: Arc<Instance>, mut requests: Requests) {
        let mut running = JoinSet::new();
        let mut is_open = true;
        while is_open || !running.is_empty() {
            tokio::select! {
                biased;
                () = instance.ended.cancelled() => break,
                () = instance.draining.cancelled(), if is_open => is_open = false,
                Some(_) = running.join_next() => {}
                // Those that come while it drains are refused.
                request = requests.next() => match request {
                    Some(request) => {
                        running.spawn(Arc::clone(&self).answer(Arc::clone(&instance), request));
                    }
                    None => instance.end(),
                },
            }
        }
        // Ending the subscription would lose requests on their way, whose effect would then be unknown to their replicas.
        let closing = self.close(&instance, running);
        tokio::pin!(closing);
        loop {
            tokio::select! {
                () = &mut closing => break,
                Some(request) = requests.next() => refuse(request.reply, WorkerRefusal::NotHeld).await,
            }
        }
        let refusing = async {
            while let Some(request) = requests.next().await {
                refuse(request.reply, WorkerRefusal::NotHeld).await;
            }
        };
        let _ = tokio::time::timeout(REFUSE_TIMEOUT, refusing).await;
    }

    /// Ends the processes of an instance, and gives it up.
    async fn close(&self, instance: &Instance, mut running: JoinSet<()>) {
        let server = instance.served.server();
        if instance.ended.is_cancelled() {
            server.kill(CLOSE_TIMEOUT).await;
        } else {
            let is_over = tokio::select! {
                () = server.close(CLOSE_TIMEOUT) => server.tasks_left() == 0,
                () = instance.ended.cancelled() => false,
            };
            if !is_over {
                server.kill(CLOSE_TIMEOUT).await;
            }
        }
        // Requests that were cut off report it.
        while running.join_next().await.is_some() {}
        // Only now may another worker start it.
        let _ = self.member.store.release(self.member.id.clone(), instance.held()).await;
        self.instances().remove(&instance.key);
    }

    /// Processes one request.
    async fn answer(self: Arc<Self>, instance: Arc<Instance>, request: IncomingRequest) {
        let IncomingRequest { payload, mut reply } = request;
        let Some((head, body)) = cluster_protocol::read::<CallHead>(&payload) else { return };
        if head.protocol != PROTOCOL {
            let why = WorkerRefusal::CannotTake { why: other_version() };
            return refuse(reply, why).await;
        }
        // A copy of a request gets no answer: the first one does.
        let Some(running) = self.calls.begin(&head.id) else { return };
        if self.is_late(head.begin_by) {
            return refuse(reply, WorkerRefusal::Late).await;
        }
        // After a pause of this process, the lease may have ended. A request that comes after the drain began may run elsewhere.
        let is_taken = !instance.draining.is_cancelled() && instance.is_valid();
        if head.epoch != instance.epoch || !is_taken {
            return refuse(reply, WorkerRefusal::NotHeld).await;
        }
        instance.touch();
        if reply.send(&cluster_protocol::write(&CallReply::Accepted, b"")).await.is_err() {
            return;
        }
        let (out, queued) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let client = Arc::new(CallClient { call: Arc::clone(&running.call), out, next: AtomicU64::new(1) });
        let (call, from) = (Arc::clone(&running.call), head.from.clone());
        let running_request = RunningRequest {
            shared: &self,
            instance: &instance,
            call: &call,
            from: &from,
            is_renewed: head.renewed,
        };
        match head.action {
            PlacementAction::Open => {
                let work = async {
                    let opened = instance.served.open().await;
                    opened.map(|(connection, description)| (CallReply::Opened { connection }, description))
                };
                running_request.run(reply, queued, work).await;
            }
            PlacementAction::Request { connection, principal, client: number } => {
                let forwarding = head.forwarding.unwrap_or_else(RawJson::empty_object);
                let number = number.map(|number| number_in_cluster(&from, number));
                let is_stream = is_stream(&body);
                let message = body.to_vec();
                let request = ServedRequest { connection, message, forwarding, principal, client: number };
                let work = async {
                    let requested = instance.served.request(request, client);
                    let result = tokio::select! {
                        result = requested => result,
                        // A stream has no end of its own. The replica opens it again at the next holder.
                        () = instance.draining.cancelled(), if is_stream => Err(cut_off(released())),
                    };
                    result.map(|result| (CallReply::Result, result))
                };
                running_request.run(reply, queued, work).await;
            }
        }
        instance.touch();
    }
}

/// The number of a client of a replica, as a number that no client of another replica has.
fn number_in_cluster(replica: &str, client: u64) -> u64 {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(format!("{replica}\n{client}").as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(digest.get(..8).unwrap_or(&[0; 8]));
    u64::from_be_bytes(first) | 1
}

/// Whether a message opens a stream of notifications.
fn is_stream(message: &Bytes) -> bool {
    #[derive(Deserialize)]
    struct Head {
        method: String,
    }
    message.len() < 1 << 20
        && serde_json::from_slice::<Head>(message).is_ok_and(|head| head.method == "subscriptions/listen")
}

fn released() -> LocalizedText {
    LocalizedText::new("its worker released the server", "工作进程已释放该服务器")
}

async fn refuse(reply: ReplyWriter, why: WorkerRefusal) {
    let _ = reply.finish(&cluster_protocol::write(&CallReply::Refused { why }, b"")).await;
}

/// A request that this worker processes for a replica.
struct RunningRequest<'a> {
    shared: &'a WorkerState,
    instance: &'a Instance,
    call: &'a HandledRequest<Questions>,
    from: &'a str,
    /// Whether the replica reports that it waits.
    is_renewed: bool,
}

impl RunningRequest<'_> {
    /// Runs the work to its end, and sends the messages that it causes and its result to the replica.
    async fn run(
        &self,
        mut reply: ReplyWriter,
        mut queued: mpsc::Receiver<Bytes>,
        work: impl Future<Output = Result<(CallReply, RawJson), RawJson>>,
    ) {
        tokio::pin!(work);
        let began = Instant::now();
        let mut ticks = tokio::time::interval(RUNNING_INTERVAL);
        ticks.reset();
        let outcome = loop {
            tokio::select! {
                biased;
                // The replica does not wait any more.
                () = self.call.cancelled.cancelled() => return,
                () = self.instance.ended.cancelled() => break Err(cut_off(released())),
                Some(message) = queued.recv() => {
                    let _ = reply.send(&message).await;
                }
                outcome = &mut work => break outcome,
                _ = ticks.tick() => {
                    let is_lost = self.shared.liveness.silent_since(self.from, began).elapsed() > REPLICA_TIMEOUT;
                    if is_lost || (self.is_renewed && !self.call.is_waited_for()) {
                        return;
                    }
                    let _ = reply.send(&cluster_protocol::write(&CallReply::Running, b"")).await;
                }
            }
        };
        while let Ok(message) = queued.try_recv() {
            let _ = reply.send(&message).await;
        }
        let (head, body) = outcome.unwrap_or_else(|failure| (CallReply::Failed, failure));
        let _ = reply.finish(&cluster_protocol::write(&head, body.get().as_bytes())).await;
    }
}

/// The replica behind a request.
struct CallClient {
    call: Arc<HandledRequest<Questions>>,
    out: mpsc::Sender<Bytes>,
    next: AtomicU64,
}

impl RemoteClient for CallClient {
    fn notify(&self, method: &str, params: &RawObject) {
        let head = CallReply::Notification { method: method.to_owned() };
        let params = params.clone().into_raw();
        let _ = self.out.try_send(cluster_protocol::write(&head, params.get().as_bytes()));
    }

    fn ask<'a>(&'a self, method: &'a str, params: Option<&'a RawJson>) -> BoxFuture<'a, ClientResponse> {
        Box::pin(async move {
            let unavailable = |why: &str| Err((-32000, why.to_owned()));
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let answer = self.call.state.expect_answer(number);
            let head = CallReply::Question { number, method: method.to_owned() };
            let body = params.map(RawJson::get).unwrap_or_default();
            if self.out.send(cluster_protocol::write(&head, body.as_bytes())).await.is_err() {
                return unavailable("the client is gone");
            }
            match tokio::time::timeout(CLIENT_ANSWER_TIMEOUT, answer).await {
                Ok(answer) => answer.unwrap_or_else(|_| unavailable("the client is gone")),
                Err(_) => unavailable("the client did not answer in time"),
            }
        })
    }
}
