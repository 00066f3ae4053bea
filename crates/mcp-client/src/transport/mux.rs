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
use toolhub_mcp_wire::wire::{self, Incoming, NotAMessage};

use super::turns::Turns;
use super::{Inbox, Listener, OutgoingRequest, progress_token};

/// Maximum number of requests in flight; others wait.
const MAX_PENDING: usize = 1024;
/// Maximum number of queued outgoing messages: every request in flight, and a cancellation for each.
pub(crate) const MAX_QUEUED: usize = 2 * MAX_PENDING;
/// Maximum number of requests of the server that are answered concurrently.
const MAX_QUESTIONS: usize = 64;
/// Pause before an answer to the server is sent again if the queue is full.
const PAUSE: Duration = Duration::from_millis(100);

/// The sending side of a message stream.
pub(crate) trait Outlet: Send + Sync + 'static {
    /// Queues a message without waiting. Returns it if the queue is full.
    fn put(&self, message: String) -> Result<(), String>;
}

impl Outlet for mpsc::Sender<String> {
    fn put(&self, message: String) -> Result<(), String> {
        self.try_send(message).map_err(mpsc::error::TrySendError::into_inner)
    }
}

struct Pending {
    reply: oneshot::Sender<Result<RawJson, McpError>>,
    listener: Option<Arc<dyn Listener>>,
    /// Whether it was sent, or may have been.
    left: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The stream has ended, and the cause is being determined: nothing is sent any more.
    Ending,
    Over,
}

#[derive(Default)]
struct UnderWay {
    pending: HashMap<u64, Pending>,
    stage: Stage,
}

/// The state that callers and the reader of the stream share.
struct Desk<O> {
    outlet: O,
    under_way: Mutex<UnderWay>,
    open: AtomicBool,
}

impl<O> Desk<O> {
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request. Returns whether it is to be sent, or `None` if the stream is closed.
    fn enter(&self, id: u64, mut pending: Pending) -> Option<bool> {
        let mut under_way = self.under_way();
        let left = under_way.stage == Stage::Open;
        if under_way.stage == Stage::Over {
            return None;
        }
        // Dropped requests that send no cancellation (`initialize`, `server/discover`, `ping`) stay until answered; they are
        // removed if the table is full.
        if under_way.pending.len() >= MAX_PENDING {
            under_way.pending.retain(|_, pending| !pending.reply.is_closed());
        }
        pending.left = left;
        under_way.pending.insert(id, pending);
        Some(left)
    }

    fn take(&self, id: u64) -> Option<Pending> {
        self.under_way().pending.remove(&id)
    }
}

/// The callers' side. Dropping it closes the stream.
pub(crate) struct Callers<O> {
    desk: Arc<Desk<O>>,
    /// Limits the requests in flight.
    turns: Turns,
    _closing: DropGuard,
}

impl<O> std::fmt::Debug for Callers<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callers").field("desk", &self.desk.open).finish_non_exhaustive()
    }
}

impl<O: Outlet> Callers<O> {
    /// Creates both sides of a stream.
    pub(crate) fn new(outlet: O, inbox: Arc<dyn Inbox>) -> (Self, Mux<O>) {
        let desk = Arc::new(Desk { outlet, under_way: Mutex::default(), open: AtomicBool::new(true) });
        let closing = CancellationToken::new();
        let unneeded = closing.clone();
        let turns = Turns::new(MAX_PENDING);
        let mux = Mux { desk: Arc::clone(&desk), unneeded, inbox, questions: JoinSet::new() };
        (Self { desk, turns, _closing: closing.drop_guard() }, mux)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.desk.open.load(Ordering::Acquire)
    }

    /// Waits for a permit, sends a request, and waits for its response. `gone` creates the error if the stream is closed. A
    /// request that is dropped while waiting for the permit is never sent.
    pub(crate) fn request<'a>(
        &'a self,
        request: OutgoingRequest<'a>,
        gone: impl Fn() -> McpError + Send + 'a,
    ) -> BoxFuture<'a, Result<RawJson, McpError>> {
        Box::pin(async move {
            let _turn = self.turns.take(request.principal).await;
            let (reply, answer) = oneshot::channel();
            let (id, listener) = (request.id, request.listener.cloned());
            let left = self.desk.enter(id, Pending { reply, listener, left: false }).ok_or_else(&gone)?;
            if left {
                request.leaves();
                if self.desk.outlet.put(request.body).is_err() {
                    self.desk.take(id);
                    return Err(McpError::busy(LocalizedText::new(
                        "it does not read what it is sent",
                        "它没有读取发给它的内容",
                    )));
                }
            }
            // `initialize` may not be cancelled (2025-11-25, utilities/cancellation), and a legacy server should not receive
            // other messages before it.
            let told = !matches!(request.method, "initialize" | "server/discover" | "ping");
            let mut guard = CancelOnDrop { desk: &*self.desk, id: told.then_some(id) };
            let answer = answer.await;
            guard.id = None;
            answer.unwrap_or_else(|_| Err(if left { gone().after_sending() } else { gone() }))
        })
    }

    /// Sends a notification; it is dropped if the queue is full.
    pub(crate) fn notify(&self, body: String, gone: impl Fn() -> McpError) -> Result<(), McpError> {
        if !self.is_open() {
            return Err(gone());
        }
        let _ = self.desk.outlet.put(body);
        Ok(())
    }
}

/// Sends a cancellation if the request's future is dropped.
struct CancelOnDrop<'a, O: Outlet> {
    desk: &'a Desk<O>,
    id: Option<u64>,
}

impl<O: Outlet> Drop for CancelOnDrop<'_, O> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.desk.take(id).is_some_and(|pending| pending.left) {
            let params = RawObject::default().with("requestId", id).with("reason", "the caller went away");
            // If the queue is full, the cancellation is not sent; the response is discarded in any case.
            let _ = self.desk.outlet.put(wire::notification("notifications/cancelled", &params));
        }
    }
}

/// The reader's side of the stream.
pub(crate) struct Mux<O> {
    desk: Arc<Desk<O>>,
    unneeded: CancellationToken,
    inbox: Arc<dyn Inbox>,
    /// The tasks that answer requests of the server; aborted with the stream.
    questions: JoinSet<()>,
}

impl<O: Outlet> Mux<O> {
    /// The sending side.
    pub(crate) fn outlet(&self) -> &O {
        &self.desk.outlet
    }

    /// Cancelled when the callers' side is dropped.
    pub(crate) fn unneeded(&self) -> CancellationToken {
        self.unneeded.clone()
    }

    /// Processes one incoming message. Returns the text if it is not a message, for the stderr log of the server.
    pub(crate) fn receive(&mut self, message: &Bytes) -> Option<String> {
        if message.trim_ascii().is_empty() {
            return None;
        }
        match wire::read(message) {
            Ok(Incoming::Response { id, outcome }) => match self.desk.take(id) {
                Some(pending) => {
                    let _ = pending.reply.send(outcome);
                }
                None => self.inbox.oddity(format!("an answer to request {id}, which nobody waits for")),
            },
            Ok(Incoming::Notification { method, params }) if method == "notifications/progress" => {
                if let Some(params) = params
                    && let Some(listener) = self.listener_of(&params)
                {
                    listener.progress(&params);
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                self.inbox.notification(&method, params.as_ref(), None);
            }
            Ok(Incoming::Request { id, method, params }) => self.question(id, method, params),
            Err(NotAMessage::Noise) => {
                let text: String = String::from_utf8_lossy(message).chars().take(200).collect();
                self.inbox.oddity(format!("a line that is no message: {text}"));
                return Some(text);
            }
            Err(NotAMessage::Odd { id, detail }) => self.misread(id, detail),
        }
        None
    }

    fn question(&mut self, id: RawJson, method: String, params: Option<RawJson>) {
        while self.questions.try_join_next().is_some() {}
        if self.questions.len() >= MAX_QUESTIONS {
            let refusal = Err((-32000, "too many questions at once".to_owned()));
            let _ = self.desk.outlet.put(wire::answer(id, &refusal));
            return;
        }
        let (inbox, desk) = (Arc::clone(&self.inbox), Arc::clone(&self.desk));
        self.questions.spawn(async move {
            let outcome = inbox.request(method, params, None).await;
            let mut answer = wire::answer(id, &outcome);
            while let Err(back) = desk.outlet.put(answer) {
                answer = back;
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    fn listener_of(&self, params: &RawJson) -> Option<Arc<dyn Listener>> {
        let token = progress_token(params)?;
        self.desk.under_way().pending.get(&token)?.listener.clone()
    }

    /// An invalid response fails the request whose id it contains. Without an id it fails the only request in flight, as long
    /// as no client of the gateway has used the connection: in the handshake, and for calls of the owner. With clients it may
    /// be the late response to a cancelled request of another client, and is only logged.
    pub(crate) fn misread(&self, id: Option<u64>, detail: String) {
        let owner = {
            let pending = &mut self.desk.under_way().pending;
            let may_guess = pending.len() == 1 && !self.inbox.has_clients();
            let sole = may_guess.then(|| pending.keys().next().copied()).flatten();
            let owner = id.filter(|id| pending.contains_key(id)).or(sole);
            owner.and_then(|id| pending.remove(&id))
        };
        match owner {
            Some(pending) => {
                let _ = pending.reply.send(Err(McpError::unreadable(detail)));
            }
            None => self.inbox.oddity(format!("a message that cannot be read: {detail}")),
        }
    }

    /// Fails the request whose message was rejected; other rejected messages are only logged.
    pub(crate) fn refused(&self, message: &str, error: McpError) {
        let id = match wire::read(&Bytes::copy_from_slice(message.as_bytes())) {
            Ok(Incoming::Request { id, .. }) => id.decode().ok(),
            _ => None,
        };
        match id.and_then(|id: u64| self.desk.take(id)) {
            Some(pending) => {
                let _ = pending.reply.send(Err(error));
            }
            None => self.inbox.oddity(format!("a refusal of what it was told: {error}")),
        }
    }

    /// Marks the stream as ended: nothing is sent any more. New requests wait for the cause.
    pub(crate) fn end(&self) {
        self.desk.under_way().stage = Stage::Ending;
        self.desk.open.store(false, Ordering::Release);
    }

    /// Fails all requests after the stream is lost. Requests made after its end count as not sent.
    pub(crate) fn fail_all(&self, error: &McpError) {
        let pending = {
            let mut under_way = self.desk.under_way();
            under_way.stage = Stage::Over;
            std::mem::take(&mut under_way.pending)
        };
        for Pending { reply, left, .. } in pending.into_values() {
            let error = error.clone();
            let _ = reply.send(Err(if left { error } else { error.before_sending() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Repeat;
    use crate::transport::test_inbox::TestInbox;

    fn stream(
        room: usize,
    ) -> (Callers<mpsc::Sender<String>>, Mux<mpsc::Sender<String>>, mpsc::Receiver<String>) {
        let (outlet, sent) = mpsc::channel(room);
        let (callers, mux) = Callers::new(outlet, Arc::<TestInbox>::default());
        (callers, mux, sent)
    }

    fn asked(id: u64, method: &str) -> OutgoingRequest<'_> {
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
        }
    }

    fn gone() -> McpError {
        McpError::connect("gone")
    }

    #[tokio::test]
    async fn answers_find_who_waits_and_who_went_away_is_told_of() {
        let (callers, mut mux, mut sent) = stream(8);
        let (one, other) = (callers.request(asked(1, "m"), gone), callers.request(asked(2, "m"), gone));
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
        for (id, method, told) in [(3, "m", true), (4, "ping", false)] {
            let dropped =
                tokio::time::timeout(Duration::from_millis(1), callers.request(asked(id, method), gone));
            assert!(dropped.await.is_err());
            assert_eq!(sent.try_recv().unwrap(), format!("ask {id}"));
            assert_eq!(sent.try_recv().is_ok(), told, "{method}");
        }
        drop(callers);
        mux.unneeded().cancelled().await;
    }

    #[tokio::test]
    async fn assigns_answers_to_requests_of_clients_by_id_alone() {
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
                let (outlet, mut sent) = mpsc::channel(8);
                let inbox: Arc<dyn Inbox> =
                    Arc::new(TestInbox { has_clients: with_clients, ..TestInbox::default() });
                let (callers, mut mux) = Callers::new(outlet, inbox);
                let cancelled = tokio::time::timeout(Duration::ZERO, callers.request(asked(1, "m"), gone));
                assert!(cancelled.await.is_err());
                let answering = async {
                    while sent.recv().await.as_deref() != Some("ask 2") {}
                    mux.receive(&Bytes::from_static(text.as_bytes()));
                    mux.receive(&Bytes::from_static(br#"{"id":2,"result":{"own":2}}"#));
                };
                let (own, ()) = tokio::join!(callers.request(asked(2, "m"), gone), answering);
                if with_clients {
                    assert_eq!(own.unwrap().get(), r#"{"own":2}"#, "{text}");
                } else {
                    assert!(own.is_err(), "the only request of the owner need not wait: {text}");
                }
            }
        }
    }

    #[tokio::test]
    async fn what_is_asked_after_the_end_has_not_left() {
        let (callers, mux, mut sent) = stream(1);
        let before = callers.request(asked(1, "m"), gone);
        let full = callers.request(asked(2, "m"), gone);
        let after = async {
            mux.end();
            assert!(!callers.is_open() && callers.notify("n".to_owned(), gone).is_err());
            callers.request(asked(3, "m"), gone).await
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
        let over = callers.request(asked(4, "m"), gone).await;
        assert!(over.unwrap_err().to_string().contains("gone"));
    }
}
