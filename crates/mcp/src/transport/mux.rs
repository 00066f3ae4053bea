//! Many requests over one stream of messages: pairs answers with requests, whatever carries the messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use toolhub_core::lang::Text;
use toolhub_core::{BoxFuture, RawJson, RawObject};

use super::{Inbox, Listener, OutgoingRequest, progress_token};
use crate::error::McpError;
use crate::wire::{self, Incoming, NotAMessage};

/// Requests under way at most; others wait for their turn.
const MAX_PENDING: usize = 1024;
/// Messages that may wait to be sent: every request under way, and as many that tell of its end.
pub(crate) const MAX_QUEUED: usize = 2 * MAX_PENDING;
/// Questions of the server's that are answered at the same time.
const MAX_QUESTIONS: usize = 64;

type Reply = oneshot::Sender<Result<RawJson, McpError>>;

/// What a caller wants of the actor that owns the stream.
pub(crate) enum Command {
    Request { id: u64, body: String, reply: Reply, listener: Option<Arc<dyn Listener>> },
    Cancel { id: u64 },
    Send { body: String },
}

/// The callers' side: sends commands to the actor.
#[derive(Debug)]
pub(crate) struct Callers {
    commands: mpsc::Sender<Command>,
    /// As many as may be under way; who comes first is first.
    turns: Semaphore,
    open: Arc<AtomicBool>,
}

impl Callers {
    /// The callers' side, what the actor receives, and the flag the actor lowers when it ends.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Command>, Arc<AtomicBool>) {
        let (commands, inbound) = mpsc::channel(MAX_QUEUED);
        let (turns, open) = (Semaphore::new(MAX_PENDING), Arc::new(AtomicBool::new(true)));
        (Self { commands, turns, open: Arc::clone(&open) }, inbound, open)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Waits for a turn, sends a request, and waits for its answer; `gone` tells why nobody is there to take it. One
    /// that is dropped before it had its turn was never sent.
    pub(crate) fn request<'a>(
        &'a self,
        request: OutgoingRequest,
        gone: impl Fn() -> McpError + Send + 'a,
    ) -> BoxFuture<'a, Result<RawJson, McpError>> {
        Box::pin(async move {
            let _turn = self.turns.acquire().await.map_err(|_| gone())?;
            let place = self.commands.reserve().await.map_err(|_| gone())?;
            request.leaves();
            let (reply, answer) = oneshot::channel();
            let OutgoingRequest { id, method, body, listener, .. } = request;
            place.send(Command::Request { id, body, reply, listener });
            // Initialize may not be cancelled (2025-11-25, utilities/cancellation), and before it nothing else
            // should be said to a legacy server either.
            let told = !matches!(&*method, "initialize" | "server/discover" | "ping");
            let mut guard = CancelOnDrop { commands: &self.commands, id: told.then_some(id) };
            let answer = answer.await;
            guard.id = None;
            answer.unwrap_or_else(|_| Err(gone()))
        })
    }

    pub(crate) async fn notify(&self, body: String, gone: impl Fn() -> McpError) -> Result<(), McpError> {
        self.commands.send(Command::Send { body }).await.map_err(|_| gone())
    }
}

/// Tells the actor when a request's caller went away.
struct CancelOnDrop<'a> {
    commands: &'a mpsc::Sender<Command>,
    id: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // With the queue full the server is not told; the answer is dropped all the same.
            let _ = self.commands.try_send(Command::Cancel { id });
        }
    }
}

struct Pending {
    reply: Reply,
    listener: Option<Arc<dyn Listener>>,
}

/// The actor's side: what is under way.
pub(crate) struct Mux {
    pending: HashMap<u64, Pending>,
    outbound: mpsc::Sender<String>,
    inbox: Arc<dyn Inbox>,
    /// Answers to the server's own questions that are being found; they end with the stream.
    questions: JoinSet<()>,
}

impl Mux {
    pub(crate) fn new(outbound: mpsc::Sender<String>, inbox: Arc<dyn Inbox>) -> Self {
        Self { pending: HashMap::new(), outbound, inbox, questions: JoinSet::new() }
    }

    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Request { id, body, reply, listener } => {
                // Who went away while the queue was full could not say so.
                if self.pending.len() >= MAX_PENDING {
                    self.pending.retain(|_, pending| !pending.reply.is_closed());
                }
                if self.outbound.try_send(body).is_err() {
                    let _ = reply.send(Err(McpError::busy(Text::new(
                        "it does not read what it is sent",
                        "它没有读取发给它的内容",
                    ))));
                    return;
                }
                self.pending.insert(id, Pending { reply, listener });
            }
            Command::Cancel { id } => {
                if self.pending.remove(&id).is_some() {
                    let params =
                        RawObject::default().with("requestId", id).with("reason", "the caller went away");
                    let _ = self.outbound.try_send(wire::notification("notifications/cancelled", &params));
                }
            }
            Command::Send { body } => {
                let _ = self.outbound.try_send(body);
            }
        }
    }

    /// Takes one message in; gives back what is none, for those who keep a server's last words.
    pub(crate) fn receive(&mut self, message: &Bytes) -> Option<String> {
        if message.trim_ascii().is_empty() {
            return None;
        }
        match wire::read(message) {
            Ok(Incoming::Response { id, outcome }) => match self.pending.remove(&id) {
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
            let _ = self.outbound.try_send(wire::answer(id, &refusal));
            return;
        }
        let (inbox, outbound) = (Arc::clone(&self.inbox), self.outbound.clone());
        self.questions.spawn(async move {
            let outcome = inbox.request(method, params, None).await;
            let _ = outbound.send(wire::answer(id, &outcome)).await;
        });
    }

    fn listener_of(&self, params: &RawJson) -> Option<&Arc<dyn Listener>> {
        let token = progress_token(params)?;
        self.pending.get(&token)?.listener.as_ref()
    }

    /// An answer that cannot be read fails the call it belongs to; with one call under way that is plain enough.
    pub(crate) fn misread(&mut self, id: Option<u64>, detail: String) {
        let sole = (self.pending.len() == 1).then(|| self.pending.keys().next().copied()).flatten();
        let owner = id.filter(|id| self.pending.contains_key(id)).or(sole);
        match owner.and_then(|id| self.pending.remove(&id)) {
            Some(pending) => {
                let _ = pending.reply.send(Err(McpError::unreadable(detail)));
            }
            None => self.inbox.oddity(format!("a message that cannot be read: {detail}")),
        }
    }

    /// A message that was not taken fails the call it was to begin; nobody waits for the others.
    pub(crate) fn refused(&mut self, message: &str, error: McpError) {
        let id = match wire::read(&Bytes::copy_from_slice(message.as_bytes())) {
            Ok(Incoming::Request { id, .. }) => id.decode().ok(),
            _ => None,
        };
        match id.and_then(|id: u64| self.pending.remove(&id)) {
            Some(pending) => {
                let _ = pending.reply.send(Err(error));
            }
            None => self.inbox.oddity(format!("a refusal of what it was told: {error}")),
        }
    }

    /// The stream is lost: so is every answer. What was queued but never looked at has not left.
    pub(crate) fn fail_all(&mut self, error: &McpError, commands: &mut mpsc::Receiver<Command>) {
        for (_, pending) in self.pending.drain() {
            let _ = pending.reply.send(Err(error.clone()));
        }
        commands.close();
        while let Ok(command) = commands.try_recv() {
            if let Command::Request { reply, .. } = command {
                let _ = reply.send(Err(error.clone().before_sending()));
            }
        }
    }
}
