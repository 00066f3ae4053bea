//! Answers come to one subscription per process. It distributes them to the requests that wait, by the last token of their
//! subject.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Message, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

/// Maximum number of frames of one request that wait to be read. Enough for the messages of a window
/// (`cluster_protocol::WINDOW_BYTES`) and the largest message after them.
const MAX_WAITING: usize = 512;

/// What arrived for a request.
#[derive(Debug)]
pub(super) enum Arrival {
    Frame(Bytes),
    NoResponders,
}

/// The requests that wait for answers.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The subject without its last token.
    prefix: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, mpsc::Sender<Arrival>>>,
}

impl Inbox {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, next: AtomicU64::new(1), waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<Arrival>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subject of all answers.
    pub(super) fn wildcard(&self) -> String {
        format!("{}.*", self.prefix)
    }

    /// Opens a slot; it is closed when it is dropped.
    pub(super) fn open(self: &Arc<Self>) -> Slot {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, arrivals) = mpsc::channel(MAX_WAITING);
        self.waiting().insert(number, sender);
        Slot { inbox: Arc::clone(self), number, arrivals }
    }

    /// Distributes the messages of a subscription until it ends.
    pub(super) async fn run(self: Arc<Self>, mut subscriber: async_nats::Subscriber) {
        while let Some(message) = subscriber.next().await {
            self.deliver(message);
        }
    }

    fn deliver(&self, message: Message) {
        let last = message.subject.rsplit('.').next();
        let Some(number) = last.and_then(|token| token.parse().ok()) else { return };
        let arrival = match message.status {
            Some(StatusCode::NO_RESPONDERS) => Arrival::NoResponders,
            _ => Arrival::Frame(message.payload),
        };
        let mut waiting = self.waiting();
        // A request whose frames are not read loses its slot, and sees a gap. It must not delay the answers to others.
        if waiting.get(&number).is_some_and(|sender| sender.try_send(arrival).is_err()) {
            waiting.remove(&number);
        }
    }
}

/// The place of one request.
#[derive(Debug)]
pub(super) struct Slot {
    inbox: Arc<Inbox>,
    number: u64,
    pub(super) arrivals: mpsc::Receiver<Arrival>,
}

impl Slot {
    /// The subject at which the answers arrive.
    pub(super) fn subject(&self) -> String {
        format!("{}.{}", self.inbox.prefix, self.number)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.inbox.waiting().remove(&self.number);
    }
}
