//! The client of a link, as the caller of the forwarded requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use toolhub_core::caller::{CLIENT_ANSWER_TIMEOUT, Caller, ClientResponse};
use toolhub_core::{BoxFuture, RawJson, RawObject};
use toolhub_mcp_wire::era::{CAPABILITIES, INFO, INPUT_RESPONSES, REQUEST_STATE, VERSION};
use toolhub_mcp_wire::{Era, jsonrpc};

use crate::transport::RequestObserver;

/// Client numbers start here, to be disjoint from those of the gateway's clients.
const FIRST_CLIENT_NUMBER: u64 = 1 << 62;

/// Another process that sends requests.
pub(crate) trait Peer: Send + Sync {
    /// The number of the client behind the request.
    fn number(&self) -> u64;

    /// The principal it is sent for.
    fn principal(&self) -> Option<&str>;

    /// Sends a notification. It may be dropped.
    fn notify(&self, method: &str, params: &RawObject);

    /// Sends a request of the server, and returns the answer of the client.
    fn ask<'a>(&'a self, method: &'a str, params: Option<&'a RawJson>) -> BoxFuture<'a, ClientResponse>;
}

/// The process at the other end of a link.
pub(super) struct LinkClient {
    number: u64,
    principal: Box<str>,
    out: mpsc::Sender<String>,
    /// The requests sent to it that are unanswered, by id.
    pending_requests: Mutex<HashMap<u64, oneshot::Sender<ClientResponse>>>,
    next_request_id: AtomicU64,
}

impl LinkClient {
    pub(super) fn new(principal: &str, out: mpsc::Sender<String>) -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(FIRST_CLIENT_NUMBER);
        Self {
            number: CLIENTS.fetch_add(1, Ordering::Relaxed),
            principal: principal.into(),
            out,
            pending_requests: Mutex::default(),
            next_request_id: AtomicU64::new(1),
        }
    }

    fn pending_requests(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ClientResponse>>> {
        self.pending_requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the answer to the request with this id.
    pub(super) fn deliver_answer(&self, id: u64, answer: ClientResponse) {
        let pending = self.pending_requests().remove(&id);
        if let Some(reply) = pending {
            let _ = reply.send(answer);
        }
    }

    /// Sends a notification; it is dropped if the queue of the link is full.
    pub(super) fn notify(&self, method: &str, params: &RawObject) {
        let _ = self.out.try_send(jsonrpc::notification(method, params));
    }

    /// Sends a message; waits while the queue is full.
    pub(super) async fn send(&self, message: String) {
        let _ = self.out.send(message).await;
    }

    async fn send_request(&self, method: &str, params: Option<&RawJson>) -> ClientResponse {
        let unavailable = |why: &str| (-32000, why.to_owned());
        let id = self.next_request_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.pending_requests().insert(id, reply);
        let _guard = PendingRequestGuard { client: self, id };
        self.send(jsonrpc::on_one_line(jsonrpc::server_request(id, method, params))).await;
        match tokio::time::timeout(CLIENT_ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(unavailable("the client is gone"))),
            Err(_) => Err(unavailable("the client did not answer in time")),
        }
    }
}

impl Peer for LinkClient {
    fn number(&self) -> u64 {
        self.number
    }

    fn principal(&self) -> Option<&str> {
        Some(&self.principal)
    }

    fn notify(&self, method: &str, params: &RawObject) {
        Self::notify(self, method, params);
    }

    fn ask<'a>(&'a self, method: &'a str, params: Option<&'a RawJson>) -> BoxFuture<'a, ClientResponse> {
        Box::pin(self.send_request(method, params))
    }
}

struct PendingRequestGuard<'a> {
    client: &'a LinkClient,
    id: u64,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.client.pending_requests().remove(&self.id);
    }
}

/// The caller of one forwarded request.
pub(crate) struct RequestCaller {
    client: Arc<dyn Peer>,
    era: Era,
    capabilities: RawJson,
    meta: RawObject,
    extras: RawObject,
    progress: Option<RawJson>,
}

impl RequestCaller {
    /// The caller of a request with these params, and the params to be forwarded.
    pub(crate) fn new(client: Arc<dyn Peer>, era: Era, mut params: RawObject) -> (Self, RawObject) {
        let mut meta = params.get("_meta").and_then(RawJson::object).unwrap_or_default();
        params.remove("_meta");
        let progress = meta.get("progressToken").cloned();
        let capabilities = meta.get(CAPABILITIES).cloned().unwrap_or_else(RawJson::empty_object);
        meta.retain(|name| !["progressToken", VERSION, CAPABILITIES, INFO].contains(&name));
        let mut extras = RawObject::default();
        for name in [INPUT_RESPONSES, REQUEST_STATE] {
            if let Some(value) = params.get(name).cloned() {
                extras.set(name, value);
                params.remove(name);
            }
        }
        (Self { client, era, capabilities, meta, extras, progress }, params)
    }
}

impl Caller for RequestCaller {
    fn client(&self) -> u64 {
        self.client.number()
    }

    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn meta(&self) -> &RawObject {
        &self.meta
    }

    fn extras(&self) -> &RawObject {
        &self.extras
    }

    /// The client uses the era of the server, and handles the `input_required` results of a modern one itself.
    fn accepts_input_requests(&self) -> bool {
        self.era == Era::Modern
    }

    fn progress(&self, params: &RawJson) {
        if let (Some(token), Some(params)) = (&self.progress, params.object()) {
            self.client.notify("notifications/progress", &params.with("progressToken", token.clone()));
        }
    }

    fn notify(&self, method: &str, params: Option<&RawJson>) {
        self.client.notify(method, &params.and_then(RawJson::object).unwrap_or_default());
    }

    fn principal_id(&self) -> Option<&str> {
        self.client.principal()
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        Box::pin(async move { self.client.ask(&method, params.as_ref()).await })
    }
}

/// Forwards the progress of a request to its client.
pub(crate) struct ProgressForwarder(pub(crate) toolhub_core::CallerHandle);

impl RequestObserver for ProgressForwarder {
    fn on_send(&self) {}

    fn progress(&self, params: &RawJson) {
        self.0.progress(params);
    }
}
