//! Requests of one replica to another: each is sent at most once, and answered by parts in order. The contents are opaque here; who
//! seals them binds them to the [`PeerEnvelope`].

mod serve;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolhub_core::RawJson;
use toolhub_core::error::Effect;
use toolhub_core::shared_state::ReplicaId;

pub use serve::{PeerParts, PeerService};

use crate::bus::BusError;
use crate::clock::millis;
use crate::cluster_protocol::{self, PROTOCOL, REPORT_BYTES, Subjects, WAITING_INTERVAL};
use crate::exchange::{ACCEPT_TIMEOUT, RequestExchange};
use crate::replica::OpenRequest;
use crate::replica::{Replica, ReplicaState, member_id};

/// How often a running request is reported to its sender.
const RUNNING_INTERVAL: Duration = WAITING_INTERVAL;

/// How long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// As long as its request takes.
    Bounded,
    /// As long as its receiver likes: a stream of events. The places of these are apart from those of the others.
    Endless,
}

/// What identifies a request between replicas. It travels unencrypted beside the sealed contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEnvelope {
    protocol: u32,
    /// Identifies the request. The receiver processes none twice.
    id: String,
    /// The sender.
    from: String,
    /// The receiver.
    to: String,
    /// When the receiver must have begun, by the clock of the database in milliseconds since 1970.
    begin_by: i64,
}

impl PeerEnvelope {
    /// The bytes to which the contents of the request and of its answer must be bound.
    pub fn context(&self) -> Vec<u8> {
        RawJson::of(self).get().as_bytes().to_vec()
    }
}

/// A message to a replica at its own subject.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PeerMessage {
    /// A request; the body is its sealed content.
    Request {
        envelope: PeerEnvelope,
        /// Whether the sender sends `Waiting` while it waits.
        #[serde(default)]
        renewed: bool,
        /// Whether the answer may take as long as its receiver likes.
        #[serde(default)]
        stream: bool,
    },
    /// The sender does not wait any more.
    Cancel { id: String },
    /// See [`cluster_protocol::AwaitedRequests`].
    Waiting { ids: Vec<String> },
    /// What the sender has taken of the answer altogether, as the sum of [`cluster_protocol::window_cost`].
    Taken { id: String, cost: u64 },
}

/// A message of the answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PeerReply {
    /// The request was not processed and never will be.
    Refused,
    /// From here on the request may take effect.
    Accepted,
    /// The request still runs.
    Running,
    /// A part of the answer; the body is its sealed content.
    Part,
    /// The answer is complete.
    End,
}

/// The other replicas of the cluster. Clones share the connection.
#[derive(Clone)]
pub struct Peers {
    shared: Arc<ReplicaState>,
    own: ReplicaId,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Replica {
    /// The other replicas.
    pub fn peers(&self) -> Peers {
        Peers { shared: Arc::clone(&self.shared), own: self.own }
    }
}

impl Peers {
    /// The envelope of a new request; `None` if the clock of the database is not known yet.
    pub fn envelope(&self, to: ReplicaId) -> Option<PeerEnvelope> {
        let now = self.shared.member.clock.now()?;
        Some(PeerEnvelope {
            protocol: PROTOCOL,
            id: self.shared.new_request_id(),
            from: self.own.to_string(),
            to: to.to_string(),
            begin_by: now.saturating_add(millis(ACCEPT_TIMEOUT)),
        })
    }

    /// Sends a request, at most once. [`BusError::effect`] of any error says whether it may have been processed.
    pub async fn send(
        &self,
        envelope: &PeerEnvelope,
        sealed: &[u8],
        kind: AnswerKind,
    ) -> Result<PeerAnswer, BusError> {
        let shared = &self.shared;
        let subject = Subjects(&shared.bus).replica(&envelope.to);
        let (envelope, stream) = (envelope.clone(), kind == AnswerKind::Endless);
        let member = member_id(&envelope.to);
        let open = OpenRequest::new(shared, subject, &envelope.id);
        let message =
            cluster_protocol::write(&PeerMessage::Request { envelope, renewed: true, stream }, sealed);
        // Before the request is sent: dropping this future may happen after that.
        let mut answer = PeerAnswer {
            shared: Arc::clone(shared),
            open,
            exchange: None,
            taken: 0,
            reported: 0,
            is_over: false,
        };
        match shared.bus.request(&answer.open.subject, message).await {
            Ok(replies) => {
                answer.exchange = Some(RequestExchange::of(replies, &answer.open, &shared.liveness, &member));
            }
            Err(error) => {
                answer.is_over = true;
                return Err(error);
            }
        }
        Ok(answer)
    }
}

/// The answer to a request. Dropping it before its end cancels the request.
pub struct PeerAnswer {
    shared: Arc<ReplicaState>,
    open: OpenRequest,
    exchange: Option<RequestExchange>,
    /// Bytes of the parts so far, and those that were reported to the sender of the parts.
    taken: u64,
    reported: u64,
    is_over: bool,
}

impl std::fmt::Debug for PeerAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerAnswer").field("id", &self.open.id).finish_non_exhaustive()
    }
}

impl PeerAnswer {
    /// The next part; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BusError> {
        if self.is_over {
            return Ok(None);
        }
        loop {
            let Some(exchange) = &mut self.exchange else { return Ok(None) };
            let (reply, body) = match exchange.next::<PeerReply>().await {
                Ok(message) => message,
                Err(error) => {
                    // What may run is cancelled.
                    self.is_over = error.effect() == Effect::None;
                    self.exchange = None;
                    return Err(error);
                }
            };
            match reply {
                PeerReply::Refused if !exchange.is_accepted() => {
                    self.is_over = true;
                    return Err(BusError::Refused);
                }
                PeerReply::Refused => {
                    self.is_over = true;
                    return Err(BusError::Unexpected);
                }
                PeerReply::Accepted => exchange.accept(),
                // A report may have been lost.
                PeerReply::Running if self.taken > 0 => self.report().await,
                PeerReply::Running => exchange.accept(),
                PeerReply::Part => {
                    exchange.accept();
                    self.taken = self.taken.saturating_add(cluster_protocol::window_cost(&body));
                    if self.taken - self.reported >= REPORT_BYTES {
                        self.report().await;
                    }
                    return Ok(Some(body));
                }
                PeerReply::End => {
                    self.is_over = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Reports how much was taken, so that further parts are sent.
    async fn report(&mut self) {
        self.reported = self.taken;
        let message = PeerMessage::Taken { id: self.open.id.to_string(), cost: self.taken };
        // It has no answer. It is sent again if it is lost.
        let _ = self.shared.bus.request(&self.open.subject, cluster_protocol::write(&message, b"")).await;
    }
}

impl Drop for PeerAnswer {
    fn drop(&mut self) {
        if !self.is_over {
            let cancel = PeerMessage::Cancel { id: self.open.id.to_string() };
            self.shared.send_later(self.open.subject.clone(), cluster_protocol::write(&cancel, b""));
        }
    }
}
