//! The messages for a client while its request is running. Most requests need none, so an empty queue allocates nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::{Notify, oneshot};
use toolhub_core::RawJson;
use toolhub_core::caller::ClientResponse;

/// Maximum number of queued messages; further notifications are dropped.
const MAX_QUEUED_MESSAGES: usize = 256;
/// Maximum size of the queued messages in bytes. A single message is accepted regardless of its length.
const MAX_QUEUED_BYTES: usize = 1 << 20;

/// A server request to a modern client.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
    pub(crate) reply: oneshot::Sender<ClientResponse>,
}

/// A message for a client.
#[derive(Debug)]
pub(crate) enum QueuedMessage {
    /// A serialized JSON-RPC message.
    Message(String),
    /// A server request, which a modern client receives as a result.
    ServerRequest(Box<ServerRequest>),
}

#[derive(Debug, Default)]
struct ClientQueueState {
    messages: VecDeque<QueuedMessage>,
    /// The total size of the queued messages in bytes.
    bytes: usize,
    /// The task that sends the messages, while the queue is empty.
    waker: Option<Waker>,
    closed: bool,
}

impl ClientQueueState {
    fn pop(&mut self) -> Option<QueuedMessage> {
        let message = self.messages.pop_front()?;
        if let QueuedMessage::Message(text) = &message {
            self.bytes -= text.len();
        }
        Some(message)
    }
}

/// A queue of messages for a client.
#[derive(Debug, Default)]
pub(crate) struct ClientQueue {
    state: Mutex<ClientQueueState>,
    closed: Notify,
}

impl ClientQueue {
    fn state(&self) -> MutexGuard<'_, ClientQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a notification. It is dropped if the queue is full, so that a slow client never delays the server.
    pub(crate) fn try_push(&self, text: String) {
        let state = self.state();
        let fits = state.bytes == 0 || state.bytes.saturating_add(text.len()) <= MAX_QUEUED_BYTES;
        if state.messages.len() < MAX_QUEUED_MESSAGES && fits && !state.closed {
            enqueue(state, QueuedMessage::Message(text));
        }
    }

    /// Queues a message that must not be dropped.
    pub(crate) fn push(&self, message: QueuedMessage) {
        enqueue(self.state(), message);
    }

    /// Returns the next message, if any.
    pub(crate) fn take(&self) -> Option<QueuedMessage> {
        self.state().pop()
    }

    /// Waits for the next message. Only one task may wait at a time.
    pub(crate) async fn next(&self) -> QueuedMessage {
        poll_fn(|context| {
            let mut state = self.state();
            match state.pop() {
                Some(message) => Poll::Ready(message),
                None => {
                    match &mut state.waker {
                        Some(waker) => waker.clone_from(context.waker()),
                        unset => *unset = Some(context.waker().clone()),
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Closes the queue, as the client has disconnected.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let waker = state.waker.take();
        drop(state);
        drop(waker);
        self.closed.notify_waiters();
    }

    /// Waits until the queue is closed.
    pub(crate) async fn closed(&self) {
        let closed = self.closed.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if !self.state().closed {
            closed.await;
        }
    }
}

/// Adds a message, and wakes the waiting task.
fn enqueue(mut state: MutexGuard<'_, ClientQueueState>, message: QueuedMessage) {
    if let QueuedMessage::Message(text) = &message {
        state.bytes += text.len();
    }
    state.messages.push_back(message);
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
