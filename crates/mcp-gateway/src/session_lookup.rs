//! Finds the session of a request: here, by rebuilding it, or at another replica, which serves the request then.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolhub_core::RawJson;
use toolhub_core::shared_state::ReplicaId;
use toolhub_mcp_wire::headers::LAST_EVENT_ID;

use crate::body::ResponseBody;
use crate::budget::BudgetedResource;
use crate::header_lookup::{HeaderLookup, PROTOCOL_VERSION, SESSION_ID};
use crate::message::RequestParams;
use crate::pending_input::replica_of_state;
use crate::replica_link::{LinkError, ReplicaBody, ReplicaRequest, ReplicaResponse, RequestMethod};
use crate::reply::{HttpReply, with_permit};
use crate::rpc_error::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::session_owner::OwnerReplica;
use crate::{ABORTED, Gateway, PrincipalHandle};

/// How long a request waits for the owner of its session, if that does not receive requests.
const OWNER_TIMEOUT: Duration = Duration::from_secs(5);
const OWNER_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The headers that concern sessions.
const SESSION_HEADERS: [&str; 3] = [SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID];

/// A request as it arrived.
#[derive(Clone, Copy)]
pub(super) struct IncomingRequest<'a> {
    pub(super) headers: &'a dyn HeaderLookup,
    pub(super) principal: &'a PrincipalHandle,
    /// Whether another replica has sent it. It is not sent further.
    pub(super) is_forwarded: bool,
}

/// What another replica needs of a request beside its headers and principal.
#[derive(Debug, Clone)]
pub(super) struct RequestContent {
    pub(super) method: RequestMethod,
    pub(super) body: Bytes,
}

impl RequestContent {
    /// A request without a body.
    pub(super) fn without_body(method: RequestMethod) -> Self {
        Self { method, body: Bytes::new() }
    }
}

/// What a request needs of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// Nothing that a rebuilt session lacks.
    Request,
    /// Something that began earlier: a stream that is resumed, or a question that is answered.
    Continuation,
}

/// The response to a request that this replica does not serve with a session.
pub(super) enum EarlyReply {
    /// The response of another replica.
    Reply(HttpReply),
    /// A refusal.
    Error(u16, RpcError),
}

impl EarlyReply {
    /// The response to a request.
    pub(super) fn for_request(self, id: &RawJson) -> HttpReply {
        match self {
            Self::Reply(reply) => reply,
            Self::Error(status, error) => HttpReply::error_reply(status, Some(id), &error),
        }
    }

    /// The response to a message that is no request.
    pub(super) fn without_request(self) -> HttpReply {
        match self {
            Self::Reply(reply) => reply,
            // A client takes 200 for a message that was received. 503 would be repeated by load balancers.
            Self::Error(200, error) => HttpReply::error_reply(504, None, &error),
            Self::Error(status, error) => HttpReply::error_reply(status, None, &error),
        }
    }

    /// The refusal of a request that another replica did not answer.
    pub(super) fn of_link(error: LinkError) -> Self {
        match error {
            LinkError::Unreachable => {
                Self::unavailable("the replica that has to serve this request cannot be reached")
            }
            LinkError::Lost => {
                let why =
                    "the replica that served this request was lost; what had begun may have had its effect";
                // Not 503: load balancers would repeat the request.
                Self::Error(200, RpcError::new(ABORTED, why))
            }
        }
    }

    fn not_found() -> Self {
        Self::Error(404, RpcError::new(-32001, "there is no such session: begin with `initialize`"))
    }

    /// Nothing has happened, and the session may still exist.
    fn unavailable(why: &str) -> Self {
        Self::Error(503, RpcError::new(ABORTED, format!("{why}: nothing was done, try again")))
    }
}

impl Gateway {
    /// The session of a request. If another replica owns it, that replica serves the request.
    pub(super) async fn session_or_reply(
        self: &Arc<Self>,
        incoming: IncomingRequest<'_>,
        usage: SessionUse,
        content: RequestContent,
    ) -> Result<Arc<Session>, EarlyReply> {
        let Some(id) = incoming.headers.session() else {
            let how = "`Mcp-Session-Id` is missing: begin with `initialize`";
            return Err(EarlyReply::Error(400, RpcError::new(INVALID_REQUEST, how)));
        };
        match self.sessions.get(id, incoming.principal) {
            Some(session) => Ok(session),
            None => Box::pin(self.recover_session(id, incoming, usage, content)).await,
        }
    }

    /// The session of an id that is not in memory: served by its replica, or continued here if that has ended.
    #[cold]
    async fn recover_session(
        self: &Arc<Self>,
        id: &str,
        incoming: IncomingRequest<'_>,
        usage: SessionUse,
        content: RequestContent,
    ) -> Result<Arc<Session>, EarlyReply> {
        let principal = incoming.principal;
        let resumable = self.session_ids.verify(id, principal).await.ok_or_else(EarlyReply::not_found)?;
        if !self.session_ids.refresh(principal, &resumable.stamp).await {
            return Err(EarlyReply::unavailable("the store of the sessions cannot be read"));
        }
        if self.session_ids.is_ended(principal, &resumable.stamp) {
            return Err(EarlyReply::not_found());
        }
        if let (Some(state), Some(issuer)) = (self.session_ids.record().shared(), resumable.replica) {
            let unreadable = |_| EarlyReply::unavailable("the store of the sessions cannot be read");
            let since = Instant::now();
            loop {
                let mut owner = self.session_owners.find(&**state, id, issuer).await.map_err(unreadable)?;
                if owner == OwnerReplica::Ended {
                    // Streams and questions have ended with their replica: the client begins anew (2025-11-25, transports).
                    if usage == SessionUse::Continuation {
                        return Err(EarlyReply::not_found());
                    }
                    owner = self.session_owners.adopt(&**state, id, issuer).await.map_err(unreadable)?;
                }
                match owner {
                    OwnerReplica::This => break,
                    OwnerReplica::Other(replica) if self.link.get().is_some() && !incoming.is_forwarded => {
                        let sent = self.send_to(replica, incoming, content.clone()).await;
                        if sent.is_err() {
                            self.session_owners.forget(id);
                        }
                        match sent {
                            // Nothing has happened. A replica that ends does not receive requests for a moment before its
                            // sessions can be adopted.
                            Err(LinkError::Unreachable) if since.elapsed() < OWNER_TIMEOUT => {
                                tokio::time::sleep(OWNER_RETRY_INTERVAL).await;
                            }
                            sent => return Err(sent.map_or_else(EarlyReply::of_link, EarlyReply::Reply)),
                        }
                    }
                    // Without a link every replica serves requests; what began elsewhere cannot be continued here.
                    OwnerReplica::Other(_) if usage == SessionUse::Request && !incoming.is_forwarded => break,
                    OwnerReplica::Other(_) | OwnerReplica::Ended => {
                        return Err(EarlyReply::unavailable("another replica owns this session"));
                    }
                }
            }
        }
        self.rebuild_session(id, principal, resumable).ok_or_else(EarlyReply::not_found)
    }

    /// Sends a request to another replica, once.
    pub(super) async fn send_to(
        &self,
        replica: ReplicaId,
        incoming: IncomingRequest<'_>,
        content: RequestContent,
    ) -> Result<HttpReply, LinkError> {
        let RequestContent { method, body } = content;
        let link = self.link.get().ok_or(LinkError::Unreachable)?;
        // A stream counts against the budget of its principal here as well as at its owner replica: both keep it open.
        let permit = match method {
            RequestMethod::Get => match incoming.principal.take(BudgetedResource::Streams, 1) {
                Ok(permit) => Some(permit),
                Err(exceeded) => return Ok(HttpReply::error_reply(429, None, &exceeded.into())),
            },
            RequestMethod::Post | RequestMethod::Delete => None,
        };
        let header = |name: &&str| Some(((*name).to_owned(), incoming.headers.text(name)?.to_owned()));
        let request = ReplicaRequest {
            profile: self.session_ids.profile().to_owned(),
            method,
            headers: SESSION_HEADERS.iter().filter_map(header).collect(),
            body,
            principal: Arc::clone(incoming.principal.identity()),
        };
        let ReplicaResponse { status, body } = link.send(replica, request).await?;
        Ok(match body {
            ReplicaBody::Json(text) => {
                let body = if text.is_empty() { ResponseBody::None } else { ResponseBody::Text(text) };
                HttpReply::Body { status, body, session: None }
            }
            ReplicaBody::Events(events) => HttpReply::Events(match permit {
                Some(permit) => with_permit(permit, events),
                None => events,
            }),
        })
    }

    /// The replica at which a request waits for the input that these parameters bring; `None` if that is this one.
    pub(super) fn owner_of_input(&self, params: &RequestParams) -> Option<ReplicaId> {
        let own_replica = self.session_ids.record().shared()?.replica();
        let token = params.text("requestState")?;
        replica_of_state(&token).filter(|owner| *owner != own_replica)
    }

    /// Sends a request to the replica at which it waits for its input. Returns `None` if that replica has ended. The end is certain
    /// only after a moment, for which the request waits.
    pub(super) async fn send_input(
        &self,
        owner: ReplicaId,
        incoming: IncomingRequest<'_>,
        body: Bytes,
    ) -> Result<Option<HttpReply>, LinkError> {
        let since = Instant::now();
        loop {
            let content = RequestContent { method: RequestMethod::Post, body: body.clone() };
            match self.send_to(owner, incoming, content).await {
                Err(LinkError::Unreachable) if self.has_ended(owner).await => return Ok(None),
                Err(LinkError::Unreachable)
                    if self.link.get().is_some() && since.elapsed() < OWNER_TIMEOUT =>
                {
                    tokio::time::sleep(OWNER_RETRY_INTERVAL).await;
                }
                sent => return sent.map(Some),
            }
        }
    }

    /// Whether a replica does not run any more. If that cannot be decided, it may run.
    async fn has_ended(&self, replica: ReplicaId) -> bool {
        let Some(state) = self.session_ids.record().shared() else { return false };
        state.is_alive(replica).await.is_ok_and(|is_alive| !is_alive)
    }
}
