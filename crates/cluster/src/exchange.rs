//! The side of a request that waits for its messages: reads them in order, and detects that the other side is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use toolhub_core::error::Effect;

use crate::bus::{BusError, Replies};
use crate::cluster_protocol;
use crate::liveness::{LOST_AFTER, Liveness};
use crate::replica::OpenRequest;

/// The other side must have begun a request within this time.
pub(crate) const ACCEPT_TIMEOUT: Duration = Duration::from_secs(3);
/// A request counts as lost after this time without a message about it, although the other side lives: messages were lost.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the signs of life of the other side are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The messages about one request.
pub(crate) struct RequestExchange {
    replies: Replies,
    liveness: Arc<Liveness>,
    /// The member that processes the request.
    member: String,
    sent: Instant,
    received: Instant,
    is_accepted: bool,
    /// Set once the other side has reported that the request has ended. All messages about it were received before, or are lost.
    has_ended: Arc<AtomicBool>,
}

impl RequestExchange {
    pub(crate) fn new(replies: Replies, liveness: &Arc<Liveness>, member: &str) -> Self {
        let (liveness, member, now) = (Arc::clone(liveness), member.to_owned(), Instant::now());
        let has_ended = Arc::default();
        Self { replies, liveness, member, sent: now, received: now, is_accepted: false, has_ended }
    }

    /// The messages about a request whose state is asked for at intervals.
    pub(crate) fn of(replies: Replies, open: &OpenRequest, liveness: &Arc<Liveness>, member: &str) -> Self {
        Self { has_ended: Arc::clone(&open.has_ended), ..Self::new(replies, liveness, member) }
    }

    /// From here on the request may have an effect.
    pub(crate) fn accept(&mut self) {
        self.is_accepted = true;
    }

    /// Whether the other side has begun the request.
    pub(crate) fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    /// The next message. Fails if the answer has ended, or if the other side is lost. Cancel safe.
    pub(crate) async fn next<H: DeserializeOwned>(&mut self) -> Result<(H, Bytes), BusError> {
        loop {
            // Read first: messages that were received before it was set are returned before the request counts as lost.
            let has_ended = self.has_ended.load(Ordering::Acquire);
            match self.replies.next(CHECK_INTERVAL).await {
                Ok(Some(reply)) => {
                    self.received = Instant::now();
                    return cluster_protocol::read(&reply).ok_or(BusError::Unreadable);
                }
                Ok(None) => return Err(BusError::Incomplete),
                Err(BusError::Silent(_)) if has_ended => return Err(BusError::Gap),
                Err(BusError::Silent(_)) => {
                    let of_member = self.liveness.silent_since(&self.member, self.sent).elapsed();
                    let limit = if self.is_accepted { SILENCE_TIMEOUT } else { ACCEPT_TIMEOUT };
                    if of_member > LOST_AFTER || self.received.elapsed() > limit {
                        return Err(BusError::Silent(of_member.max(self.received.elapsed())));
                    }
                }
                // What has begun is not undone by a later failure.
                Err(error) if self.is_accepted && error.effect() == Effect::None => {
                    return Err(BusError::Unexpected);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
