//! Multiplexes requests over one message stream, independent of its carrier: matches responses to requests. Callers register a
//! request and send it themselves; the reader of the stream delivers the responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson, RawObject};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::jsonrpc::{self, MessageError, ServerMessage};

use super::dynamic_threshold_semaphore::DynamicThresholdSemaphore;
use super::{OutgoingRequest, RequestObserver, ServerMessageHandler, progress_token};

/// Maximum number of requests in flight; others wait.
const MAX_PENDING_REQUESTS: usize = 1024;
/// Maximum number of queued outgoing messages: every request in flight, and a cancellation for each.
pub(crate) const MAX_QUEUED_MESSAGES: usize = 2 * MAX_PENDING_REQUESTS;
/// Maximum number of requests of the server that are answered concurrently.
const MAX_SERVER_REQUESTS: usize = 64;
/// Pause before an answer to the server is sent again if the queue is full.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The sending side of a message stream.
pub(crate) trait MessageSink: Send + Sync + 'static {
    /// Queues a message without waiting. Returns it if the queue is full.
    fn enqueue(&self, message: String) -> Result<(), String>;
}

impl MessageSink for mpsc::Sender<String> {
    fn enqueue(&self, message: String) -> Result<(), String> {
        self.try_send(message).map_err(mpsc::error::TrySendError::into_inner)
    }
}

struct PendingResponse {
    reply: oneshot::Sender<Result<RawJson, McpError>>,
    listener: Option<Arc<dyn RequestObserver>>,
    /// Whether it was sent, or may have been.
    sent: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The stream has ended, and the cause is being determined: nothing is sent any more.
    Ending,
    Closed,
}

#[derive(Default)]
struct InFlight {
    pending: HashMap<u64, PendingResponse>,
    stage: Stage,
}

/// The state that callers and the reader of the stream share.
struct MuxState<O> {
    sink: O,
    in_flight: Mutex<InFlight>,
    open: AtomicBool,
}

impl<O> MuxState<O> {
    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request. Returns whether it is to be sent, or `None` if the stream is closed.
    fn register(&self, id: u64, mut pending: PendingResponse) -> Option<bool> {
        let mut in_flight = self.in_flight();
        let sent = in_flight.stage == Stage::Open;
        if in_flight.stage == Stage::Closed {
            return None;
        }
        // Dropped requests that send no cancellation (`initialize`, `server/discover`, `ping`) stay until answered; they are
        // removed if the table is full.
        if in_flight.pending.len() >= MAX_PENDING_REQUESTS {
            in_flight.pending.retain(|_, pending| !pending.reply.is_closed());
        }
        pending.sent = sent;
        in_flight.pending.insert(id, pending);
        Some(sent)
    }

    fn take(&self, id: u64) -> Option<PendingResponse> {
        self.in_flight().pending.remove(&id)
    }
}

/// The callers' side. Dropping it closes the stream.
pub(crate) struct MuxHandle<O> {
    shared: Arc<MuxState<O>>,
    /// Limits the requests in flight.
    semaphore: DynamicThresholdSemaphore,
    _closing: DropGuard,
}

impl<O> std::fmt::Debug for MuxHandle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MuxHandle").field("open", &self.shared.open).finish_non_exhaustive()
    }
}

impl<O: MessageSink> MuxHandle<O> {
    /// Creates both sides of a stream.
    pub(crate) fn new(sink: O, inbox: Arc<dyn ServerMessageHandler>) -> (Self, Mux<O>) {
        let shared = Arc::new(MuxState { sink, in_flight: Mutex::default(), open: AtomicBool::new(true) });
        let closing = CancellationToken::new();
        let handle_dropped = closing.clone();
        let semaphore = DynamicThresholdSemaphore::new(MAX_PENDING_REQUESTS);
        let mux = Mux { shared: Arc::clone(&shared), handle_dropped, inbox, server_requests: JoinSet::new() };
        (Self { shared, semaphore, _closing: closing.drop_guard() }, mux)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.shared.open.load(Ordering::Acquire)
    }

    /// Waits for a permit, sends a request, and waits for its response. `closed_error` creates the error if the stream is closed. A
    /// request that is dropped while waiting for the permit is never sent.
    pub(crate) fn request<'a>(
        &'a self,
        request: OutgoingRequest<'a>,
        closed_error: impl Fn() -> McpError + Send + 'a,
    ) -> BoxFuture<'a, Result<RawJson, McpError>> {
        Box::pin(async move {
            let _permit = self.semaphore.take(request.principal).await;
            let (reply, answer) = oneshot::channel();
            let (id, listener) = (request.id, request.listener.cloned());
            let sent = self
                .shared
                .register(id, PendingResponse { reply, listener, sent: false })
                .ok_or_else(&closed_error)?;
            if sent {
                request.on_send();
                if self.shared.sink.enqueue(request.body).is_err() {
                    self.shared.take(id);
                    return Err(McpError::busy(LocalizedText::new(
                        "the send queue is full: it does not read its input",
                        "发送队列已满：它没有读取输入",
                    )));
                }
            }
            // `initialize` may not be cancelled (2025-11-25, utilities/cancellation), and a legacy server should not receive
            // other messages before it.
            let cancellable = !matches!(request.method, "initialize" | "server/discover" | "ping");
            let mut guard = CancelOnDrop { shared: &*self.shared, id: cancellable.then_some(id) };
            let answer = answer.await;
            guard.id = None;
            answer.unwrap_or_else(|_| Err(if sent { closed_error().after_sending() } else { closed_error() }))
        })
    }

    /// Sends a notification; it is dropped if the queue is full.
    pub(crate) fn notify(&self, body: String, closed_error: impl Fn() -> McpError) -> Result<(), McpError> {
        if !self.is_open() {
            return Err(closed_error());
        }
        let _ = self.shared.sink.enqueue(body);
        Ok(())
    }
}

/// Sends a cancellation if the request's future is dropped.
struct CancelOnDrop<'a, O: MessageSink> {
    shared: &'a MuxState<O>,
    id: Option<u64>,
}

impl<O: MessageSink> Drop for CancelOnDrop<'_, O> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.shared.take(id).is_some_and(|pending| pending.sent) {
            let params =
                RawObject::default().with("requestId", id).with("reason", "the caller cancelled the request");
            // If the queue is full, the cancellation is not sent; the response is discarded in any case.
            let _ = self.shared.sink.enqueue(jsonrpc::notification("notifications/cancelled", &params));
        }
    }
}

/// The reader's side of the stream.
pub(crate) struct Mux<O> {
    shared: Arc<MuxState<O>>,
    handle_dropped: CancellationToken,
    inbox: Arc<dyn ServerMessageHandler>,
    /// The tasks that answer requests of the server; aborted with the stream.
    server_requests: JoinSet<()>,
}

impl<O: MessageSink> Mux<O> {
    /// The sending side.
    pub(crate) fn sink(&self) -> &O {
        &self.shared.sink
    }

    /// Cancelled when the callers' side is dropped.
    pub(crate) fn handle_dropped(&self) -> CancellationToken {
        self.handle_dropped.clone()
    }

    /// Processes one incoming message. Returns the text if it is not a message, for the stderr log of the server.
    pub(crate) fn receive(&mut self, message: &Bytes) -> Option<String> {
        if message.trim_ascii().is_empty() {
            return None;
        }
        match jsonrpc::read(message) {
            Ok(ServerMessage::Response { id, outcome }) => match self.shared.take(id) {
                Some(pending) => {
                    let _ = pending.reply.send(outcome);
                }
                None => {
                    self.inbox
                        .report_anomaly(format!("an answer to request {id}, for which no call is pending"));
                }
            },
            Ok(ServerMessage::Notification { method, params }) if method == "notifications/progress" => {
                if let Some(params) = params
                    && let Some(listener) = self.listener_of(&params)
                {
                    listener.progress(&params);
                }
            }
            Ok(ServerMessage::Notification { method, params }) => {
                self.inbox.notification(&method, params.as_ref(), None);
            }
            Ok(ServerMessage::Request { id, method, params }) => {
                self.answer_server_request(id, method, params);
            }
            Err(MessageError::NotJsonRpc) => {
                let text: String = String::from_utf8_lossy(message).chars().take(200).collect();
                self.inbox.report_anomaly(format!("a line that is no message: {text}"));
                return Some(text);
            }
            Err(MessageError::Malformed { id, detail }) => self.fail_malformed(id, detail),
        }
        None
    }

    fn answer_server_request(&mut self, id: RawJson, method: String, params: Option<RawJson>) {
        while self.server_requests.try_join_next().is_some() {}
        if self.server_requests.len() >= MAX_SERVER_REQUESTS {
            let refusal = Err((-32000, "too many concurrent requests".to_owned()));
            let _ = self.shared.sink.enqueue(jsonrpc::answer(id, &refusal));
            return;
        }
        let (inbox, shared) = (Arc::clone(&self.inbox), Arc::clone(&self.shared));
        self.server_requests.spawn(async move {
            let outcome = inbox.request(method, params, None).await;
            let mut answer = jsonrpc::answer(id, &outcome);
            while let Err(back) = shared.sink.enqueue(answer) {
                answer = back;
                tokio::time::sleep(RETRY_DELAY).await;
            }
        });
    }

    fn listener_of(&self, params: &RawJson) -> Option<Arc<dyn RequestObserver>> {
        let token = progress_token(params)?;
        self.shared.in_flight().pending.get(&token)?.listener.clone()
    }

    /// An invalid response fails the request whose id it contains. Without an id it fails the only request in flight, as long
    /// as no client of the gateway has used the connection: in the handshake, and for calls of the owner. With clients it may
    /// be the late response to a cancelled request of another client, and is only logged.
    pub(crate) fn fail_malformed(&self, id: Option<u64>, detail: String) {
        let owner = {
            let pending = &mut self.shared.in_flight().pending;
            let may_guess = pending.len() == 1 && !self.inbox.has_clients();
            let sole = may_guess.then(|| pending.keys().next().copied()).flatten();
            let owner = id.filter(|id| pending.contains_key(id)).or(sole);
            owner.and_then(|id| pending.remove(&id))
        };
        match owner {
            Some(pending) => {
                let _ = pending.reply.send(Err(McpError::unreadable(detail)));
            }
            None => self.inbox.report_anomaly(format!("a message that cannot be read: {detail}")),
        }
    }

    /// Fails the request whose message was rejected; other rejected messages are only logged.
    pub(crate) fn fail_rejected(&self, message: &str, error: McpError) {
        let id = match jsonrpc::read(&Bytes::copy_from_slice(message.as_bytes())) {
            Ok(ServerMessage::Request { id, .. }) => id.decode().ok(),
            _ => None,
        };
        match id.and_then(|id: u64| self.shared.take(id)) {
            Some(pending) => {
                let _ = pending.reply.send(Err(error));
            }
            None => self.inbox.report_anomaly(format!("an error response to a notification: {error}")),
        }
    }

    /// Marks the stream as ended: nothing is sent any more. New requests wait for the cause.
    pub(crate) fn end(&self) {
        self.shared.in_flight().stage = Stage::Ending;
        self.shared.open.store(false, Ordering::Release);
    }

    /// Fails all requests after the stream is lost. Requests made after its end count as not sent.
    pub(crate) fn fail_all(&self, error: &McpError) {
        let pending = {
            let mut in_flight = self.shared.in_flight();
            in_flight.stage = Stage::Closed;
            std::mem::take(&mut in_flight.pending)
        };
        for PendingResponse { reply, sent, .. } in pending.into_values() {
            let error = error.clone();
            let _ = reply.send(Err(if sent { error } else { error.before_sending() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Repeat;
    use crate::transport::test_inbox::TestInbox;

    fn stream(
        capacity: usize,
    ) -> (MuxHandle<mpsc::Sender<String>>, Mux<mpsc::Sender<String>>, mpsc::Receiver<String>) {
        let (sink, sent) = mpsc::channel(capacity);
        let (handle, mux) = MuxHandle::new(sink, Arc::<TestInbox>::default());
        (handle, mux, sent)
    }

    fn outgoing(id: u64, method: &str) -> OutgoingRequest<'_> {
        let body = format!("ask {id}");
        let repeat = Repeat::IfUnprocessed;
        OutgoingRequest {
            id,
            method,
            name: None,
            body,
            headers: &[],
            listener: None,
            repeat,
            principal: None,
            client: None,
        }
    }

    fn closed_error() -> McpError {
        McpError::connect("gone")
    }

    #[tokio::test]
    async fn delivers_responses_by_id_and_cancels_dropped_requests() {
        let (handle, mut mux, mut sent) = stream(8);
        let (one, other) =
            (handle.request(outgoing(1, "m"), closed_error), handle.request(outgoing(2, "m"), closed_error));
        let answering = async {
            assert_eq!(
                (sent.recv().await.unwrap(), sent.recv().await.unwrap()),
                ("ask 1".into(), "ask 2".into())
            );
            assert!(mux.receive(&Bytes::from_static(br#"{"id":2,"result":{"two":2}}"#)).is_none());
            assert!(mux.receive(&Bytes::from_static(br#"{"id":1,"result":{"one":1}}"#)).is_none());
        };
        let (one, other, ()) = tokio::join!(one, other, answering);
        assert_eq!((one.unwrap().get(), other.unwrap().get()), (r#"{"one":1}"#, r#"{"two":2}"#));
        for (id, method, cancellable) in [(3, "m", true), (4, "ping", false)] {
            let dropped = tokio::time::timeout(
                Duration::from_millis(1),
                handle.request(outgoing(id, method), closed_error),
            );
            assert!(dropped.await.is_err());
            assert_eq!(sent.try_recv().unwrap(), format!("ask {id}"));
            assert_eq!(sent.try_recv().is_ok(), cancellable, "{method}");
        }
        drop(handle);
        mux.handle_dropped().cancelled().await;
    }

    #[tokio::test]
    async fn matches_client_responses_by_id_only() {
        let late = [
            r#"{"jsonrpc":"2.0","result":{"content":"SECRET"}}"#,
            r#"{"jsonrpc":"2.0","id":"1","result":{"content":"SECRET"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"SECRET"}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{"content":"SECRET"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"SECRET"#,
            r#"{"jsonrpc":"2.0","result":{"id":2,"content":"SECRET"#,
        ];
        for with_clients in [true, false] {
            for text in late {
                let (sink, mut sent) = mpsc::channel(8);
                let inbox: Arc<dyn ServerMessageHandler> =
                    Arc::new(TestInbox { has_clients: with_clients, ..TestInbox::default() });
                let (handle, mut mux) = MuxHandle::new(sink, inbox);
                let cancelled =
                    tokio::time::timeout(Duration::ZERO, handle.request(outgoing(1, "m"), closed_error));
                assert!(cancelled.await.is_err());
                let answering = async {
                    while sent.recv().await.as_deref() != Some("ask 2") {}
                    mux.receive(&Bytes::from_static(text.as_bytes()));
                    mux.receive(&Bytes::from_static(br#"{"id":2,"result":{"own":2}}"#));
                };
                let (own, ()) = tokio::join!(handle.request(outgoing(2, "m"), closed_error), answering);
                if with_clients {
                    assert_eq!(own.unwrap().get(), r#"{"own":2}"#, "{text}");
                } else {
                    assert!(own.is_err(), "the only request of the owner need not wait: {text}");
                }
            }
        }
    }

    #[tokio::test]
    async fn requests_after_the_end_count_as_not_sent() {
        let (handle, mux, mut sent) = stream(1);
        let before = handle.request(outgoing(1, "m"), closed_error);
        let full = handle.request(outgoing(2, "m"), closed_error);
        let after = async {
            mux.end();
            assert!(!handle.is_open() && handle.notify("n".to_owned(), closed_error).is_err());
            handle.request(outgoing(3, "m"), closed_error).await
        };
        let failing = async {
            tokio::task::yield_now().await;
            mux.fail_all(&McpError::Lost { cause: "lost".into(), stderr: Vec::new(), exit: None });
        };
        let (before, full, after, ()) = tokio::join!(biased; before, full, after, failing);
        assert!(matches!(before, Err(McpError::Lost { .. })), "{before:?}");
        assert!(full.unwrap_err().to_string().contains("does not read"));
        assert!(matches!(after, Err(McpError::Connect { .. })), "{after:?}");
        assert_eq!(sent.try_recv().unwrap(), "ask 1");
        assert!(sent.try_recv().is_err());
        let over = handle.request(outgoing(4, "m"), closed_error).await;
        assert!(over.unwrap_err().to_string().contains("gone"));
    }
}
