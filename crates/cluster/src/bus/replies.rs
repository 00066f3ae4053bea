//! The side of a request that asks: receives the messages of the answer in order.

use std::time::Duration;

use bytes::Bytes;

use super::BusError;
use super::frame::{Assembly, BusFrame, LAST, MORE, UPLOAD};
use super::inbox::{Arrival, Slot};

/// The answer to a request: one or several messages. Dropping it discards what still arrives.
#[derive(Debug)]
pub struct Replies {
    slot: Slot,
    next: u32,
    assembly: Assembly,
    is_over: bool,
}

impl Replies {
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, next: 0, assembly: Assembly::default(), is_over: false }
    }

    /// The next message; `None` after the last one. An error ends the answer. Cancel safe.
    ///
    /// `limit` is how long the other side may be silent.
    pub async fn next(&mut self, limit: Duration) -> Result<Option<Bytes>, BusError> {
        if self.is_over {
            return Ok(None);
        }
        loop {
            let frame = self.frame(limit).await?;
            self.is_over = frame.has_flag(LAST) && !frame.has_flag(MORE);
            let is_complete = !frame.has_flag(MORE);
            match self.assembly.push(frame.payload, is_complete) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(bytes) => {
                    self.is_over = true;
                    return Err(BusError::AnswerTooLarge { bytes });
                }
            }
        }
    }

    /// Waits for the subject to which the rest of the request is to be sent.
    pub(super) async fn upload_subject(&mut self, limit: Duration) -> Result<String, BusError> {
        match self.frame(limit).await {
            Ok(frame) if frame.has_flag(UPLOAD) => {
                String::from_utf8(frame.payload.to_vec()).map_err(|_| BusError::NotTaken)
            }
            Err(error @ BusError::NoResponders) => Err(error),
            // The receiver has only a part of the request.
            Ok(_) | Err(_) => Err(BusError::NotTaken),
        }
    }

    async fn frame(&mut self, limit: Duration) -> Result<BusFrame, BusError> {
        let arrival = tokio::time::timeout(limit, self.slot.arrivals.recv()).await;
        let frame = match arrival {
            Err(_) => Err(BusError::Silent(limit)),
            Ok(None) => Err(BusError::Gap),
            Ok(Some(Arrival::NoResponders)) => Err(BusError::NoResponders),
            Ok(Some(Arrival::Frame(message))) => match BusFrame::read(&message) {
                Some(frame) if frame.sequence == self.next => Ok(frame),
                Some(_) => Err(BusError::Gap),
                None => Err(BusError::Unreadable),
            },
        };
        match frame {
            Ok(frame) => {
                self.next = self.next.wrapping_add(1);
                Ok(frame)
            }
            Err(error) => {
                // Silence may end; the caller decides whether it waits on.
                self.is_over = !matches!(error, BusError::Silent(_));
                Err(error)
            }
        }
    }
}
