//! The link between replicas: a request whose session belongs to another replica is served there.
//!
//! A session has one owner replica (`session_owner`). Its streams, its questions to the client and its requests in progress are
//! there.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::Stream;
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{BoxFuture, Principal};

use crate::header_lookup::HeaderLookup;

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// A message, or a batch.
    Post,
    /// The stream of a session.
    Get,
    /// The end of a session.
    Delete,
}

/// A request for another replica. The sender has authenticated it and counted it against the budget of its principal.
#[derive(Debug, Clone)]
pub struct ReplicaRequest {
    /// The profile.
    pub profile: String,
    /// The method.
    pub method: RequestMethod,
    /// The headers that concern sessions.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The principal that made it.
    pub principal: Arc<Principal>,
}

/// The body of a response of another replica.
pub enum ReplicaBody {
    /// JSON, or nothing.
    Json(String),
    /// Serialized server-sent events. Dropping the stream cancels what the client may cancel by disconnecting.
    Events(Pin<Box<dyn Stream<Item = String> + Send>>),
}

impl fmt::Debug for ReplicaBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Json(_)) { "Json" } else { "Events" })
    }
}

/// The response of another replica.
pub struct ReplicaResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: ReplicaBody,
}

impl fmt::Debug for ReplicaResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why another replica did not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// It did not receive the request: nothing has happened.
    Unreachable,
    /// It may have received the request: what it does may take effect.
    Lost,
}

/// Sends requests to other replicas.
pub trait ReplicaLink: Send + Sync {
    /// Sends a request to a replica, at most once. Dropping the future cancels the request.
    fn send(
        &self,
        to: ReplicaId,
        request: ReplicaRequest,
    ) -> BoxFuture<'_, Result<ReplicaResponse, LinkError>>;
}

/// Headers in a request of another replica.
pub(crate) struct ForwardedHeaders(pub(crate) Vec<(String, String)>);

impl HeaderLookup for ForwardedHeaders {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(header_name, _)| header_name == name).map(|(_, value)| value.as_bytes())
    }

    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0
            .iter()
            .filter(|(header_name, _)| header_name == name)
            .any(|(_, value)| predicate(value.as_bytes()))
    }
}
