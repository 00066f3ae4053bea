//! A connection to one placement: each request of the server is one request on the bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolhub_core::caller::ClientResponse;
use toolhub_core::cluster::{InstanceKey, Placement};
use toolhub_core::error::Effect;
use toolhub_core::{BoxFuture, RawJson, ServerId};
use toolhub_mcp_client::remote::{RemoteEvents, RemoteFailure, RemoteInbox, RemoteLink, RemoteRequest};
use toolhub_mcp_wire::McpError;

use super::candidates::worker_lost;
use super::waiting::WorkerRequest;
use super::{OpenRequest, ReplicaState, bus_error};
use crate::bus::{BusError, Replies};
use crate::clock::millis;
use crate::cluster_protocol::{
    self, AnswerError, CallHead, CallReply, PROTOCOL, PlacementAction, Subjects, WorkerMessage,
    WorkerRefusal, body_json,
};
use crate::exchange::{ACCEPT_TIMEOUT, RequestExchange};

/// How long delivering the answer of a client may take.
const ANSWER_DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of questions of one request at the same time.
const MAX_QUESTIONS: usize = 64;

/// A connection to an instance.
pub(crate) struct InstanceLink {
    shared: Arc<ReplicaState>,
    key: InstanceKey,
    worker: String,
    pub(super) epoch: i64,
    connection: u64,
    pub(super) inbox: RemoteInbox,
    open: AtomicBool,
}

impl InstanceLink {
    pub(super) fn new(
        shared: Arc<ReplicaState>,
        placement: &Placement,
        connection: u64,
        inbox: RemoteInbox,
    ) -> Arc<Self> {
        let Placement { key, worker, epoch, .. } = placement.clone();
        Arc::new(Self { shared, key, worker, epoch, connection, inbox, open: AtomicBool::new(true) })
    }

    /// The placement is gone; the request was certainly not processed.
    fn gone(&self) -> RemoteFailure {
        self.open.store(false, Ordering::Release);
        RemoteFailure::Error(McpError::SessionExpired { effect: Effect::None })
    }

    /// The request may have been processed.
    fn lost(&self, why: &BusError) -> RemoteFailure {
        self.open.store(false, Ordering::Release);
        let cause = worker_lost(&self.worker, why);
        RemoteFailure::Error(McpError::Lost { cause, stderr: Vec::new(), exit: None })
    }

    fn server(&self) -> ServerId {
        ServerId::new(self.key.server.as_str())
    }

    async fn send(
        &self,
        request: RemoteRequest<'_>,
        events: &dyn RemoteEvents,
    ) -> Result<RawJson, RemoteFailure> {
        let Some(now) = self.shared.member.clock.now() else {
            return Err(RemoteFailure::Error(bus_error(&self.server(), &BusError::Disconnected)));
        };
        let RemoteRequest { message, forwarding, principal, client } = request;
        let id = self.shared.new_request_id();
        let head = CallHead {
            protocol: PROTOCOL,
            id: id.clone(),
            from: self.shared.member.id.clone(),
            epoch: self.epoch,
            renewed: true,
            begin_by: now.saturating_add(millis(ACCEPT_TIMEOUT)),
            action: PlacementAction::Request {
                connection: self.connection,
                principal: principal.map(str::to_owned),
                client,
            },
            forwarding: Some(forwarding),
        };
        let subject = Subjects(&self.shared.bus).call(&self.key, self.epoch);
        let message = cluster_protocol::write(&head, message.as_bytes());
        events.on_send();
        let mut running = WorkerRequest::new(&self.shared, &self.worker, &id);
        let result = match self.shared.bus.request(&subject, message).await {
            Ok(replies) => self.receive(replies, &running.open, events).await,
            Err(error) => Err(self.not_sent(&error)),
        };
        // A request that is lost may still run; it is told to end.
        running.is_over = !matches!(result, Err(RemoteFailure::Error(McpError::Lost { .. })));
        result
    }

    fn not_sent(&self, error: &BusError) -> RemoteFailure {
        match error {
            BusError::NoResponders => self.gone(),
            error if error.effect() == Effect::None => RemoteFailure::Error(bus_error(&self.server(), error)),
            error => self.lost(error),
        }
    }

    /// Receives the messages about a request until its end.
    async fn receive(
        &self,
        replies: Replies,
        open: &OpenRequest,
        events: &dyn RemoteEvents,
    ) -> Result<RawJson, RemoteFailure> {
        let id = &*open.id;
        let mut exchange = RequestExchange::of(replies, open, &self.shared.liveness, &self.worker);
        let mut questions = FuturesUnordered::new();
        loop {
            let reply = tokio::select! {
                reply = exchange.next::<CallReply>() => reply,
                Some(()) = questions.next() => continue,
            };
            let (reply, body) = match reply {
                Ok(reply) => reply,
                Err(error @ BusError::NoResponders) => return Err(self.not_sent(&error)),
                Err(error) => return Err(self.lost(&error)),
            };
            match reply {
                CallReply::Refused { why: WorkerRefusal::NotHeld | WorkerRefusal::Late }
                    if !exchange.is_accepted() =>
                {
                    return Err(self.gone());
                }
                CallReply::Refused { why: WorkerRefusal::CannotTake { why } } if !exchange.is_accepted() => {
                    return Err(RemoteFailure::Error(McpError::connect(why)));
                }
                CallReply::Refused { .. } | CallReply::Opened { .. } => {
                    return Err(self.lost(&BusError::Unexpected));
                }
                CallReply::Accepted | CallReply::Running => exchange.accept(),
                CallReply::Notification { method } => events.notification(&method, body_json(&body).as_ref()),
                CallReply::Question { number, method } => {
                    if questions.len() >= MAX_QUESTIONS {
                        let refusal = Err((-32000, "too many concurrent requests".to_owned()));
                        self.answer(id, number, refusal).await;
                    } else {
                        let asking = events.ask(method, body_json(&body));
                        questions.push(async move { self.answer(id, number, asking.await).await });
                    }
                }
                CallReply::Result => {
                    return body_json(&body)
                        .ok_or_else(|| RemoteFailure::Error(McpError::unreadable("the result is not JSON")));
                }
                CallReply::Failed => {
                    let unreadable = || self.lost(&BusError::Unreadable);
                    return Err(body_json(&body).map_or_else(unreadable, RemoteFailure::Reported));
                }
            }
        }
    }

    /// Delivers the answer of the client.
    async fn answer(&self, id: &str, number: u64, answer: ClientResponse) {
        let (is_error, body) = match answer {
            Ok(result) => (false, result),
            Err((code, message)) => (true, RawJson::of(&AnswerError { code, message })),
        };
        let head = WorkerMessage::Answer { id: id.to_owned(), number, is_error };
        let message = cluster_protocol::write(&head, body.get().as_bytes());
        // If it cannot be delivered, the worker is lost, and so is the request.
        let _ =
            cluster_protocol::control(&self.shared.bus, &self.worker, message, ANSWER_DELIVERY_TIMEOUT).await;
    }
}

impl RemoteLink for InstanceLink {
    fn request<'a>(
        &'a self,
        request: RemoteRequest<'a>,
        events: &'a dyn RemoteEvents,
    ) -> BoxFuture<'a, Result<RawJson, RemoteFailure>> {
        Box::pin(self.send(request, events))
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}
