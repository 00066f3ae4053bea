//! A bidirectional stream of messages: stdio, and the HTTP+SSE transport of 2024-11-05. For clients of both eras.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::{RawJson, RawObject};

use crate::in_flight::{InFlightRequest, RequestStep};
use crate::listen::{ListenPermits, NotificationFilter, closing_result};
use crate::message::{
    self, BATCHES_UNSUPPORTED, ClientMessage, ClientRequest, RequestParams, error_response, one_line,
};
use crate::outbox::{OutboundMessage, Outbox};
use crate::pending_input::{RequestIdentity, ResumeOutcome};
use crate::rpc_error::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::{Gateway, PrincipalHandle, RequestClient, modern};

/// The client at the other end of a stream. Dropping it cancels its requests.
#[derive(Debug)]
pub struct Duplex {
    gateway: Arc<Gateway>,
    principal: PrincipalHandle,
    out: Outbox,
    session: Mutex<Option<Arc<Session>>>,
    /// The requests in progress of a modern client, by id.
    in_flight: Arc<Mutex<HashMap<String, CancellationToken>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Duplex {
    /// Opens a stream. Returns it and the messages for the client, one per line.
    pub fn open(
        gateway: &Arc<Gateway>,
        principal: PrincipalHandle,
    ) -> (Self, mpsc::Receiver<OutboundMessage>) {
        let (out, messages) = Outbox::new(principal.clone());
        let duplex = Self {
            gateway: Arc::clone(gateway),
            principal,
            out,
            session: Mutex::default(),
            in_flight: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        (duplex, messages)
    }

    /// Waits until all received requests have been answered.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Waits until the gateway closes and the requests received before have been answered.
    pub async fn closed(&self) {
        self.gateway.closing.cancelled().await;
        self.drain().await;
    }

    /// Handles one message.
    pub async fn receive(&self, text: &str) {
        match message::parse_message(&text.into()) {
            Ok(ClientMessage::Request(request, params)) => self.request(request, params).await,
            Ok(ClientMessage::Notification { method, params }) => {
                self.handle_notification(&method, params.as_ref());
            }
            Ok(ClientMessage::Response { id, answer }) => {
                if let Some(session) = self.session().as_ref() {
                    session.info.server_requests.deliver(id, answer);
                }
            }
            // Batches are not supported on this transport: one line is one message.
            Err((_, error)) if error.code == INVALID_REQUEST && text.trim_start().starts_with('[') => {
                self.out
                    .send(error_response(None, &RpcError::new(INVALID_REQUEST, BATCHES_UNSUPPORTED)))
                    .await;
            }
            Err((id, error)) => self.out.send(error_response(id.as_ref(), &error)).await,
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_notification(&self, method: &str, params: Option<&RawJson>) {
        let id = params.and_then(RawJson::object).and_then(|params| params.get("requestId").cloned());
        let modern = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let cancellation = id.filter(|_| method == "notifications/cancelled");
        if let Some(token) = cancellation.and_then(|id| modern.get(id.get()).cloned()) {
            return token.cancel();
        }
        drop(modern);
        if let Some(session) = self.session().as_ref() {
            self.gateway.handle_notification(session, method, params);
        }
    }

    async fn request(&self, request: ClientRequest, params: RequestParams) {
        if modern::version_of(&params).is_some() || request.method == "server/discover" {
            return self.modern(request, params).await;
        }
        if request.method == "initialize" && self.session().is_none() {
            return self.initialize(&request, &params.members).await;
        }
        let session = self.session().clone();
        let Some(session) = session else {
            // A ping is answered even before `initialize` (2025-11-25, basic/lifecycle).
            let answer = match &*request.method {
                "ping" => Ok(RawJson::empty_object()),
                _ => Err(RpcError::new(INVALID_REQUEST, "begin with `initialize`")),
            };
            return self.out.answer(&request.id, &answer).await;
        };
        session.touch();
        let guard = session.register(&request.id);
        let client = RequestClient { info: session.info.clone(), session: Some(session) };
        let mut in_flight = self.gateway.start(request, params, client);
        let (out, closing) = (self.out.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            loop {
                let step = tokio::select! {
                    step = in_flight.step() => step,
                    // A cancelled request gets no response.
                    _ = guard.cancellation.wait() => return,
                    () = closing.cancelled() => return,
                };
                match step {
                    RequestStep::Send(text) => out.send(one_line(text)).await,
                    RequestStep::Done(outcome) => return out.answer(&in_flight.id, &outcome).await,
                    RequestStep::RequestInput(_) => {}
                }
                if out.is_closed() {
                    return;
                }
            }
        });
    }

    async fn initialize(&self, request: &ClientRequest, params: &RawObject) {
        let (session, greeting) = match self.gateway.initialize(params, &self.principal, None).await {
            Ok(greeted) => greeted,
            Err(error) => return self.out.send(error_response(Some(&request.id), &error)).await,
        };
        *self.session() = Some(Arc::clone(&session));
        self.out.answer(&request.id, &Ok(greeting)).await;
        let (gateway, out, closing) = (Arc::clone(&self.gateway), self.out.clone(), self.closing.clone());
        self.gateway.tasks.spawn(async move {
            let notification = gateway.send_notifications(session, move |text| out.try_send(one_line(text)));
            tokio::select! {
                () = notification => {}
                () = closing.cancelled() => {}
            }
        });
    }

    async fn modern(&self, request: ClientRequest, params: RequestParams) {
        let info = self.gateway.modern_client_info(&params).and_then(|info| {
            modern::check_supported(&modern::version_of(&params).unwrap_or_default())?;
            Ok(info)
        });
        let info = match info {
            Ok(info) => info,
            Err(error) => return self.out.send(error_response(Some(&request.id), &error)).await,
        };
        self.gateway.note_modern_client(&request, &params, &self.principal);
        let token = self.closing.child_token();
        let guard = RequestGuard::new(&self.in_flight, &request.id, token.clone());
        if request.method == "subscriptions/listen" {
            let filter = NotificationFilter::of(&params);
            let permits = match filter.permits(&self.principal) {
                Ok(permits) => permits,
                Err(error) => return self.out.send(error_response(Some(&request.id), &error)).await,
            };
            let listening = self.listen(request.id, filter, permits, token);
            self.tasks.spawn(async move {
                let _held = guard;
                listening.await;
            });
            return;
        }
        let identity = RequestIdentity::of(&self.principal, &request, &params);
        let in_flight = match self.gateway.pending_inputs.resume(&request, &params, &identity) {
            ResumeOutcome::NotPending => {
                self.gateway.start(request, params, RequestClient { info, session: None })
            }
            ResumeOutcome::Continued(in_flight) => in_flight,
            ResumeOutcome::Incomplete(server_request) => {
                return self.out.answer(&request.id, &Ok(server_request)).await;
            }
            ResumeOutcome::Rejected(error) => {
                return self.out.send(error_response(Some(&request.id), &error)).await;
            }
        };
        let (gateway, out) = (Arc::clone(&self.gateway), self.out.clone());
        self.tasks.spawn(async move {
            let _guard = guard;
            tokio::select! {
                () = run(gateway, in_flight, identity, out) => {}
                () = token.cancelled() => {}
            }
        });
    }

    /// Sends a modern client the notifications of a `subscriptions/listen` request until that is cancelled.
    fn listen(
        &self,
        id: RawJson,
        filter: NotificationFilter,
        permits: ListenPermits,
        token: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (gateway, out, closing) =
            (Arc::clone(&self.gateway), self.out.clone(), self.gateway.closing.clone());
        let principal = Arc::clone(self.principal.identity());
        async move {
            let mut changes = Arc::clone(&gateway.backend).changes(principal);
            let ListenPermits { stream, subscriptions } = permits;
            let _permit = stream;
            let subscriptions = tokio::select! {
                subscriptions = gateway.subscribe_all(subscriptions) => subscriptions,
                () = token.cancelled() => return,
            };
            out.send(filter.acknowledgement(&id)).await;
            loop {
                let change = tokio::select! {
                    () = closing.cancelled() => {
                        out.answer(&id, &Ok(closing_result(&id))).await;
                        break;
                    }
                    () = token.cancelled() => break,
                    change = changes.next() => change,
                };
                let Some(change) = change else { break };
                if let Some(text) = filter.notification(&change, &id, &subscriptions) {
                    out.send(one_line(text)).await;
                }
                if out.is_closed() {
                    break;
                }
            }
        }
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Some(session) = self.session().take() {
            session.close();
        }
    }
}

async fn run(gateway: Arc<Gateway>, mut in_flight: InFlightRequest, identity: RequestIdentity, out: Outbox) {
    loop {
        match in_flight.step().await {
            RequestStep::Send(text) => out.send(one_line(text)).await,
            RequestStep::Done(outcome) => return out.answer(&in_flight.id, &outcome).await,
            RequestStep::RequestInput(server_requests) => {
                let id = in_flight.id.clone();
                let input_required = gateway.pending_inputs.suspend(in_flight, server_requests, identity);
                return out.answer(&id, &input_required).await;
            }
        }
        if out.is_closed() {
            return;
        }
    }
}

/// A registered modern request.
struct RequestGuard {
    tokens: Arc<Mutex<HashMap<String, CancellationToken>>>,
    id: String,
}

impl RequestGuard {
    fn new(
        tokens: &Arc<Mutex<HashMap<String, CancellationToken>>>,
        id: &RawJson,
        token: CancellationToken,
    ) -> Self {
        let id = id.get().to_owned();
        tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), token);
        Self { tokens: Arc::clone(tokens), id }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
