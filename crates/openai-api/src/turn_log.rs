//! The output of a running turn: the turn feeds it with events, and the connection of the client reads its frames.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use crate::chat::assembler::ChatAssembler;
use crate::error::ApiError;
use crate::responses::assembler::ResponseAssembler;
use crate::turn_event::{TurnEnd, TurnEvent};

/// The object that is being built.
#[derive(Debug)]
pub(crate) enum Assembler {
    Response(ResponseAssembler),
    Chat(ChatAssembler),
}

impl Assembler {
    fn feed(&mut self, event: TurnEvent) {
        match self {
            Self::Response(response) => response.feed(event),
            Self::Chat(chat) => chat.feed(event),
        }
    }

    fn next_frame(&mut self) -> Option<String> {
        match self {
            Self::Response(response) => response.next_frame(),
            Self::Chat(chat) => chat.next_frame(),
        }
    }
}

/// The output of a turn.
#[derive(Debug)]
pub(crate) struct TurnLog {
    assembler: Mutex<Assembler>,
    changed: Notify,
}

impl TurnLog {
    pub(crate) fn new(assembler: Assembler) -> Self {
        Self { assembler: Mutex::new(assembler), changed: Notify::new() }
    }

    pub(crate) fn feed(&self, event: TurnEvent) {
        self.lock().feed(event);
        self.changed.notify_one();
    }

    /// The parts of the stream that were not read yet, as one text.
    pub(crate) fn frames(&self) -> Option<String> {
        let mut assembler = self.lock();
        let mut frames = assembler.next_frame()?;
        while let Some(next) = assembler.next_frame() {
            frames.push_str(&next);
        }
        Some(frames)
    }

    /// Waits until something was fed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ends the output, and returns the final object.
    pub(crate) fn finish(&self, end: &TurnEnd, now: u64) -> Result<Value, ApiError> {
        match &mut *self.lock() {
            Assembler::Response(response) => Ok(response.finish(end, now)),
            Assembler::Chat(chat) => chat.finish(end),
        }
    }

    /// Reads the response.
    pub(crate) fn with_response<T>(&self, read: impl FnOnce(&ResponseAssembler) -> T) -> Option<T> {
        match &*self.lock() {
            Assembler::Response(response) => Some(read(response)),
            Assembler::Chat(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Assembler> {
        self.assembler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
