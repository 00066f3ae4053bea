//! The side that processes the requests of other replicas.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_core::BoxFuture;

use super::{PeerEnvelope, PeerMessage, PeerReply, Peers, RUNNING_INTERVAL};
use crate::bus::{BusError, IncomingRequest, ReplyWriter, Requests};
use crate::calls::{HandledRequest, HandledRequests};
use crate::cluster_protocol::{self, EndedRequests, PROTOCOL, Subjects, WINDOW_BYTES};
use crate::replica::member_id;

/// Maximum number of requests of other replicas that run at the same time, apart from streams.
const MAX_REQUESTS: usize = 4096;
/// Maximum number of streams for other replicas at the same time. A stream may last as long as a session.
const MAX_STREAMS: usize = 4096;
/// A request is cancelled if its sender has not given a sign of life for this time.
const SENDER_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause before the subscription is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long requests are refused after the end.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of an answer, sealed.
pub type PeerParts = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Processes the requests of other replicas.
pub trait PeerService: Send + Sync {
    /// Verifies a request and returns its answer, which has an effect only when it is polled. `None` refuses it.
    fn open<'a>(&'a self, envelope: &'a PeerEnvelope, sealed: Bytes) -> BoxFuture<'a, Option<PeerParts>>;
}

/// What belongs to a request that runs.
#[derive(Debug, Default)]
struct Window {
    /// What the receiver has taken of the answer, as the sum of [`cluster_protocol::window_cost`].
    taken: watch::Sender<u64>,
}

impl Peers {
    /// Processes the requests of other replicas until `stop` is cancelled, and then those that have begun. Dropping the future
    /// cuts these off.
    pub async fn serve(&self, service: Arc<dyn PeerService>, stop: CancellationToken) {
        let subject = Subjects(&self.shared.bus).replica(&self.own.to_string());
        let calls = Arc::new(HandledRequests::<Window>::default());
        let slots = RequestSlots::default();
        let mut running = JoinSet::new();
        while !stop.is_cancelled() {
            let Ok(mut requests) = self.shared.bus.serve(&subject, None).await else {
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            };
            let mut is_open = true;
            // Cancellations and reports of requests that run are received until these have ended.
            while is_open || !running.is_empty() {
                let request = tokio::select! {
                    () = stop.cancelled(), if is_open => {
                        is_open = false;
                        continue;
                    }
                    Some(_) = running.join_next() => continue,
                    request = requests.next() => request,
                };
                let Some(IncomingRequest { payload, reply }) = request else { break };
                let Some((message, body)) = cluster_protocol::read::<PeerMessage>(&payload) else { continue };
                match message {
                    PeerMessage::Request { envelope, renewed, stream } => {
                        let Some(slot) = slots.take(stream).filter(|_| is_open) else {
                            running.spawn(refuse(reply));
                            continue;
                        };
                        let (peers, service) = (self.clone(), Arc::clone(&service));
                        let incoming =
                            IncomingPeerRequest { envelope, is_renewed: renewed, body, reply, _slot: slot };
                        let calls = Arc::clone(&calls);
                        running.spawn(async move { peers.answer(incoming, &*service, &calls).await });
                    }
                    PeerMessage::Cancel { id } => calls.cancel(&id),
                    PeerMessage::Waiting { ids } => {
                        let ended = EndedRequests { ended: calls.renew_interest(&ids) };
                        running.spawn(async move {
                            // It is asked for again.
                            let _ = reply.finish(&cluster_protocol::write(&ended, b"")).await;
                        });
                    }
                    PeerMessage::Taken { id, cost } => {
                        if let Some(call) = calls.find(&id) {
                            call.state.taken.send_modify(|taken| *taken = cost.max(*taken));
                        }
                    }
                }
            }
            if stop.is_cancelled() {
                refuse_rest(requests).await;
            }
        }
    }

    async fn answer(
        &self,
        incoming: IncomingPeerRequest,
        service: &dyn PeerService,
        calls: &HandledRequests<Window>,
    ) {
        let IncomingPeerRequest { envelope, is_renewed, body, mut reply, _slot } = incoming;
        // A copy of a request gets no answer: the first one does.
        let Some(running) = calls.begin(&envelope.id) else { return };
        let is_late = || self.shared.member.clock.now().is_none_or(|now| now > envelope.begin_by);
        if envelope.protocol != PROTOCOL || envelope.to != self.own.to_string() || is_late() {
            return refuse(reply).await;
        }
        let parts = tokio::select! {
            parts = service.open(&envelope, body) => parts,
            () = running.call.cancelled.cancelled() => return,
        };
        // Verification may have taken a while.
        let Some(parts) = parts.filter(|_| !is_late()) else { return refuse(reply).await };
        if reply.send(&cluster_protocol::write(&PeerReply::Accepted, b"")).await.is_err() {
            return;
        }
        let _ = self
            .send_parts(
                parts,
                reply,
                &running.call,
                &Sender { member: member_id(&envelope.from), is_renewed },
            )
            .await;
    }

    /// Sends the parts of an answer as fast as its receiver takes them.
    async fn send_parts(
        &self,
        mut parts: PeerParts,
        mut reply: ReplyWriter,
        call: &HandledRequest<Window>,
        sender: &Sender,
    ) -> Result<(), BusError> {
        let began = Instant::now();
        let (mut taken, mut sent) = (call.state.taken.subscribe(), 0_u64);
        let mut ticks = tokio::time::interval(RUNNING_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.reset();
        loop {
            let has_room = sent - (*taken.borrow_and_update()).min(sent) < WINDOW_BYTES;
            tokio::select! {
                biased;
                () = call.cancelled.cancelled() => return Ok(()),
                _ = ticks.tick() => {
                    let is_lost = self.shared.liveness.silent_since(&sender.member, began).elapsed() > SENDER_TIMEOUT;
                    if is_lost || (sender.is_renewed && !call.is_waited_for()) {
                        return Ok(());
                    }
                    reply.send(&cluster_protocol::write(&PeerReply::Running, b"")).await?;
                }
                part = parts.next(), if has_room => match part {
                    Some(part) => {
                        sent = sent.saturating_add(cluster_protocol::window_cost(&part));
                        reply.send(&cluster_protocol::write(&PeerReply::Part, &part)).await?;
                    }
                    None => return reply.finish(&cluster_protocol::write(&PeerReply::End, b"")).await,
                },
                // Its sender is in `call`.
                _ = taken.changed(), if !has_room => {}
            }
        }
    }
}

/// A request of another replica.
struct IncomingPeerRequest {
    envelope: PeerEnvelope,
    is_renewed: bool,
    body: Bytes,
    reply: ReplyWriter,
    _slot: OwnedSemaphorePermit,
}

/// The replica that waits for an answer.
struct Sender {
    member: String,
    /// Whether it reports that it waits.
    is_renewed: bool,
}

/// Slots for requests and for streams: open streams take none from requests.
struct RequestSlots {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Default for RequestSlots {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }
}

impl RequestSlots {
    /// Takes a slot; `None` if all are taken.
    fn take(&self, is_stream: bool) -> Option<OwnedSemaphorePermit> {
        let slots = if is_stream { &self.streams } else { &self.requests };
        Arc::clone(slots).try_acquire_owned().ok()
    }
}

/// Refuses requests that are on their way when a replica ends. Without an answer their effect would be unknown to their senders.
async fn refuse_rest(mut requests: Requests) {
    let refusing = async {
        while let Some(IncomingRequest { payload, reply }) = requests.next().await {
            if let Some((PeerMessage::Request { .. }, _)) = cluster_protocol::read::<PeerMessage>(&payload) {
                refuse(reply).await;
            }
        }
    };
    let _ = tokio::time::timeout(REFUSE_TIMEOUT, refusing).await;
}

async fn refuse(reply: ReplyWriter) {
    let _ = reply.finish(&cluster_protocol::write(&PeerReply::Refused, b"")).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_streams_keep_no_request_out() {
        let slots = RequestSlots::default();
        let streams: Vec<_> = (0..MAX_STREAMS).map_while(|_| slots.take(true)).collect();
        assert_eq!(streams.len(), MAX_STREAMS);
        assert!(slots.take(true).is_none() && slots.take(false).is_some());
        drop(streams);
        assert!(slots.take(true).is_some());
    }
}
