//! What is to be said to a client while its request runs. Most requests end without a word, so nothing is made for them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::Notify;

use super::client_handle::Question;

/// Messages that may wait on their way to a client; what is told beyond that is lost.
const WAITING: usize = 256;
/// Bytes of such messages; one is taken whatever its length.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Something for a client.
#[derive(Debug)]
pub(crate) enum QueuedMessage {
    /// A message, as it is sent.
    Message(String),
    /// A question that a modern client gets as a result.
    Question(Box<Question>),
}

#[derive(Debug, Default)]
struct State {
    words: VecDeque<QueuedMessage>,
    /// Bytes of the messages among them.
    bytes: usize,
    /// Who says them to the client, while there are none.
    waiting: Option<Waker>,
    closed: bool,
}

impl State {
    fn pop(&mut self) -> Option<QueuedMessage> {
        let word = self.words.pop_front()?;
        if let QueuedMessage::Message(text) = &word {
            self.bytes -= text.len();
        }
        Some(word)
    }
}

/// What waits to be said.
#[derive(Debug, Default)]
pub(crate) struct ClientQueue {
    state: Mutex<State>,
    closed: Notify,
}

impl ClientQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something. A client that does not read loses what it is told, and nobody waits for it.
    pub(crate) fn tell(&self, text: String) {
        let state = self.state();
        let fits = state.bytes == 0 || state.bytes.saturating_add(text.len()) <= MAX_WAITING_BYTES;
        if state.words.len() < WAITING && fits && !state.closed {
            say(state, QueuedMessage::Message(text));
        }
    }

    /// Says something that must not be lost.
    pub(crate) fn put(&self, word: QueuedMessage) {
        say(self.state(), word);
    }

    /// What is to be said next, if there is anything.
    pub(crate) fn take(&self) -> Option<QueuedMessage> {
        self.state().pop()
    }

    /// Waits for what is to be said next. One at a time waits for that.
    pub(crate) async fn next(&self) -> QueuedMessage {
        poll_fn(|context| {
            let mut state = self.state();
            match state.pop() {
                Some(word) => Poll::Ready(word),
                None => {
                    match &mut state.waiting {
                        Some(waiting) => waiting.clone_from(context.waker()),
                        nobody => *nobody = Some(context.waker().clone()),
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The client is gone: nobody hears anything any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let waiting = state.waiting.take();
        drop(state);
        drop(waiting);
        self.closed.notify_waiters();
    }

    /// Waits until the client is gone.
    pub(crate) async fn closed(&self) {
        let closed = self.closed.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if !self.state().closed {
            closed.await;
        }
    }
}

/// Adds a word, and wakes whoever waits for one.
fn say(mut state: MutexGuard<'_, State>, word: QueuedMessage) {
    if let QueuedMessage::Message(text) = &word {
        state.bytes += text.len();
    }
    state.words.push_back(word);
    let waiting = state.waiting.take();
    drop(state);
    if let Some(waiting) = waiting {
        waiting.wake();
    }
}
