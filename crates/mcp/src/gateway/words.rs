//! What is to be said to a client while its request runs. Most requests end without a word, so nothing is made for them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::link::Question;

/// Messages that may wait on their way to a client; what is told beyond that is lost.
const WAITING: usize = 256;

/// Something for a client.
#[derive(Debug)]
pub(crate) enum Word {
    /// A message, as it is sent.
    Message(String),
    /// A question that a modern client gets as a result.
    Question(Box<Question>),
}

#[derive(Debug, Default)]
struct State {
    words: VecDeque<Word>,
    closed: bool,
}

/// What waits to be said.
#[derive(Debug, Default)]
pub(crate) struct Words {
    state: Mutex<State>,
    said: Notify,
    closed: Notify,
}

impl Words {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something. A client that does not read loses what it is told, and nobody waits for it.
    pub(crate) fn tell(&self, text: String) {
        let mut state = self.state();
        if state.words.len() < WAITING && !state.closed {
            state.words.push_back(Word::Message(text));
            drop(state);
            self.said.notify_one();
        }
    }

    /// Says something that must not be lost.
    pub(crate) fn put(&self, word: Word) {
        self.state().words.push_back(word);
        self.said.notify_one();
    }

    /// What is to be said next, if there is anything.
    pub(crate) fn take(&self) -> Option<Word> {
        self.state().words.pop_front()
    }

    /// Waits for what is to be said next.
    pub(crate) async fn next(&self) -> Word {
        loop {
            let said = self.said.notified();
            if let Some(word) = self.take() {
                return word;
            }
            said.await;
        }
    }

    /// The client is gone: nobody hears anything any more.
    pub(crate) fn close(&self) {
        self.state().closed = true;
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
