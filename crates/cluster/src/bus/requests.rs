//! The side of a request that answers: receives whole requests at a subject, and sends the messages of their answers.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subject};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::task::JoinSet;

use super::BusError;
use super::frame::{self, Assembly, BusFrame, LAST, MAX_MESSAGE_BYTES, MORE, UPLOAD};
use super::inbox::{Arrival, Inbox};

/// Maximum number of large requests that are received at the same time at one subject.
const MAX_UPLOADS: usize = 64;
/// How long a sender of a large request may pause.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests at a subject. Dropping it ends the subscription; requests on their way are lost, and their effect is unknown to their
/// senders.
#[derive(Debug)]
pub struct Requests {
    pub(super) subscriber: async_nats::Subscriber,
    pub(super) client: Client,
    pub(super) inbox: Arc<Inbox>,
    pub(super) piece: usize,
    pub(super) uploads: JoinSet<Option<IncomingRequest>>,
}

/// A request with the means to answer it.
#[derive(Debug)]
pub struct IncomingRequest {
    /// The message.
    pub payload: Bytes,
    /// Sends the answer.
    pub reply: ReplyWriter,
}

impl Requests {
    /// The next request; `None` after the end of the subscription. Cancel safe.
    pub async fn next(&mut self) -> Option<IncomingRequest> {
        loop {
            tokio::select! {
                message = self.subscriber.next() => match message {
                    Some(message) => {
                        if let Some(request) = self.take(message) {
                            return Some(request);
                        }
                    }
                    None => {
                        while let Some(uploaded) = self.uploads.join_next().await {
                            if let Ok(Some(request)) = uploaded {
                                return Some(request);
                            }
                        }
                        return None;
                    }
                },
                Some(uploaded) = self.uploads.join_next() => {
                    if let Ok(Some(request)) = uploaded {
                        return Some(request);
                    }
                }
            }
        }
    }

    fn take(&mut self, message: Message) -> Option<IncomingRequest> {
        let first = BusFrame::read(&message.payload).filter(|first| first.sequence == 0)?;
        let reply =
            ReplyWriter { client: self.client.clone(), subject: message.reply?, next: 0, piece: self.piece };
        if !first.has_flag(MORE) {
            return Some(IncomingRequest { payload: first.payload, reply });
        }
        if self.uploads.len() < MAX_UPLOADS {
            self.uploads.spawn(upload(Arc::clone(&self.inbox), first.payload, reply));
        }
        None
    }
}

/// Receives the rest of a large request. A request with a missing part is dropped: its sender does not get an answer, and
/// nothing is processed.
async fn upload(inbox: Arc<Inbox>, first: Bytes, mut reply: ReplyWriter) -> Option<IncomingRequest> {
    let mut slot = inbox.open();
    let mut assembly = Assembly::default();
    assembly.push(first, false).ok()?;
    reply.write(UPLOAD, slot.subject().as_bytes()).await.ok()?;
    let mut next = 1;
    loop {
        let arrival = tokio::time::timeout(UPLOAD_TIMEOUT, slot.arrivals.recv()).await.ok()??;
        let Arrival::Frame(message) = arrival else { return None };
        let piece = BusFrame::read(&message).filter(|piece| piece.sequence == next)?;
        next += 1;
        let is_complete = !piece.has_flag(MORE);
        if let Some(payload) = assembly.push(piece.payload, is_complete).ok()? {
            return Some(IncomingRequest { payload, reply });
        }
    }
}

/// Sends the messages of one answer.
#[derive(Debug)]
pub struct ReplyWriter {
    client: Client,
    subject: Subject,
    next: u32,
    piece: usize,
}

impl ReplyWriter {
    /// Sends a message; others follow.
    pub async fn send(&mut self, message: &Bytes) -> Result<(), BusError> {
        self.message(message, 0).await
    }

    /// Sends the last message.
    pub async fn finish(mut self, message: &Bytes) -> Result<(), BusError> {
        self.message(message, LAST).await
    }

    async fn message(&mut self, message: &Bytes, flags: u8) -> Result<(), BusError> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(BusError::TooLarge { bytes: message.len() });
        }
        for (piece, is_last) in frame::pieces(message, self.piece) {
            self.write(if is_last { flags } else { MORE }, &piece).await?;
        }
        Ok(())
    }

    async fn write(&mut self, flags: u8, payload: &[u8]) -> Result<(), BusError> {
        let frame = frame::write(flags, self.next, payload);
        self.next = self.next.wrapping_add(1);
        let sent = self.client.publish(self.subject.clone(), frame).await;
        sent.map_err(|error| BusError::Client(error.to_string()))
    }
}
