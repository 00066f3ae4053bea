//! Requests of sessions that live at another replica are sent there over the cluster, and those that other replicas send are served.
//!
//! Both directions are sealed with keys that the replicas derive from the session keys. A request names the credentials of its
//! principal, not its rights: the receiver decides anew who that is.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use toolhub_cluster::bus::BusError;
use toolhub_cluster::peer::{AnswerKind, PeerEnvelope, PeerParts, PeerService, Peers};
use toolhub_core::error::Effect;
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{BoxFuture, Principal};
use toolhub_mcp_gateway::{
    LinkError, ReplicaBody, ReplicaLink, ReplicaRequest, ReplicaResponse, RequestMethod, ResponseSeal,
    SessionRecord,
};

use super::Gateways;

/// The first line of a request; the body follows.
#[derive(Serialize, Deserialize)]
struct RequestHead {
    profile: String,
    method: Method,
    headers: Vec<(String, String)>,
    credentials: Credentials,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    Post,
    Get,
    Delete,
}

/// How the principal proved its identity to the replica that received the request.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Credentials {
    Local,
    Key { name: String, sha256: String },
    Token { issuer: String, subject: String, token: String },
}

impl Credentials {
    fn of(principal: &Principal) -> Option<Self> {
        Some(match &principal.origin {
            PrincipalOrigin::Local => Self::Local,
            PrincipalOrigin::Key { name } => {
                Self::Key { name: name.clone(), sha256: principal.key_sha256.as_deref()?.to_owned() }
            }
            PrincipalOrigin::Oidc { issuer, subject } => Self::Token {
                issuer: issuer.clone(),
                subject: subject.clone(),
                token: principal.token.as_ref()?.expose().to_owned(),
            },
        })
    }

    /// The principal with these credentials, which has no roles: the receiver looks up or verifies who it is.
    fn principal(self) -> Principal {
        match self {
            Self::Local => Principal::new(PrincipalOrigin::Local, PrincipalKind::Person),
            Self::Key { name, sha256 } => {
                let mut principal = Principal::of_key(&name);
                principal.key_sha256 = Some(Arc::from(sha256));
                principal
            }
            Self::Token { issuer, subject, token } => {
                Principal::new(PrincipalOrigin::Oidc { issuer, subject }, PrincipalKind::Person)
                    .with_token(&token)
            }
        }
    }
}

/// The first line of the first part of a response; JSON follows, or further parts with the events of a stream.
#[derive(Serialize, Deserialize)]
struct ResponseHead {
    status: u16,
    is_stream: bool,
}

fn write(head: &impl Serialize, body: &[u8]) -> Option<Vec<u8>> {
    // JSON text on one line: a newline inside a string is escaped.
    let mut message = serde_json::to_vec(head).ok()?;
    message.push(b'\n');
    message.extend_from_slice(body);
    Some(message)
}

fn read<H: DeserializeOwned>(message: &[u8]) -> Option<(H, &[u8])> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(message.get(..end)?).ok()?;
    Some((head, message.get(end + 1..)?))
}

fn write_request(request: &ReplicaRequest) -> Option<Vec<u8>> {
    let head = RequestHead {
        profile: request.profile.clone(),
        method: match request.method {
            RequestMethod::Post => Method::Post,
            RequestMethod::Get => Method::Get,
            RequestMethod::Delete => Method::Delete,
        },
        headers: request.headers.clone(),
        credentials: Credentials::of(&request.principal)?,
    };
    write(&head, &request.body)
}

fn read_request(message: &[u8]) -> Option<ReplicaRequest> {
    let (head, body) = read::<RequestHead>(message)?;
    Some(ReplicaRequest {
        profile: head.profile,
        method: match head.method {
            Method::Post => RequestMethod::Post,
            Method::Get => RequestMethod::Get,
            Method::Delete => RequestMethod::Delete,
        },
        headers: head.headers,
        body: Bytes::copy_from_slice(body),
        principal: Arc::new(head.credentials.principal()),
    })
}

/// Sends requests to the other replicas of the cluster.
struct PeerLink {
    peers: Peers,
    record: Arc<SessionRecord>,
}

fn link_error(error: &BusError) -> LinkError {
    match error.effect() {
        Effect::None => LinkError::Unreachable,
        Effect::Unknown => LinkError::Lost,
    }
}

impl ReplicaLink for PeerLink {
    fn send(
        &self,
        to: ReplicaId,
        request: ReplicaRequest,
    ) -> BoxFuture<'_, Result<ReplicaResponse, LinkError>> {
        Box::pin(async move {
            let seal = self.record.replica_seal().await.ok_or(LinkError::Unreachable)?;
            let message = write_request(&request).ok_or(LinkError::Unreachable)?;
            let envelope = self.peers.envelope(to).ok_or(LinkError::Unreachable)?;
            let sealed = seal.seal(&message, &envelope.context());
            let (sealed, response) = sealed.ok_or(LinkError::Unreachable)?;
            let kind = match request.method {
                RequestMethod::Get => AnswerKind::Endless,
                RequestMethod::Post | RequestMethod::Delete => AnswerKind::Bounded,
            };
            let sent = self.peers.send(&envelope, &sealed, kind).await;
            let mut answer = sent.map_err(|error| link_error(&error))?;
            let first = answer.next().await.map_err(|error| link_error(&error))?;
            let first = first.and_then(|first| response.open(0, &first)).ok_or(LinkError::Lost)?;
            let (head, body) = read::<ResponseHead>(&first).ok_or(LinkError::Lost)?;
            let body = match head.is_stream {
                false => ReplicaBody::Json(String::from_utf8(body.to_vec()).map_err(|_| LinkError::Lost)?),
                true => ReplicaBody::Events(Box::pin(stream::unfold(
                    (answer, response, 1_u64),
                    |(mut answer, response, number)| async move {
                        // The client resumes a stream that ends early.
                        let sealed = answer.next().await.ok()??;
                        let event = String::from_utf8(response.open(number, &sealed)?).ok()?;
                        Some((event, (answer, response, number + 1)))
                    },
                ))),
            };
            Ok(ReplicaResponse { status: head.status, body })
        })
    }
}

/// Serves the requests of the other replicas.
struct GatewayService {
    gateways: Weak<Gateways>,
    record: Arc<SessionRecord>,
}

impl PeerService for GatewayService {
    fn open<'a>(&'a self, envelope: &'a PeerEnvelope, sealed: Bytes) -> BoxFuture<'a, Option<PeerParts>> {
        Box::pin(async move {
            let gateways = self.gateways.upgrade()?;
            let seal = self.record.replica_seal().await?;
            let (message, response) = seal.open(&sealed, &envelope.context())?;
            Some(parts(gateways, read_request(&message)?, response))
        })
    }
}

/// The sealed parts of the response to a request, which is served when they are polled.
fn parts(gateways: Arc<Gateways>, request: ReplicaRequest, response: ResponseSeal) -> PeerParts {
    let served = async move {
        let ReplicaResponse { status, body } = gateways.serve_replica(request).await;
        let (is_stream, text, events) = match body {
            ReplicaBody::Json(text) => (false, text, stream::empty().boxed()),
            ReplicaBody::Events(events) => (true, String::new(), events),
        };
        let first = write(&ResponseHead { status, is_stream }, text.as_bytes());
        stream::iter(first).chain(events.map(String::into_bytes))
    };
    let sealed = stream::once(served).flatten().scan(0_u64, move |number, part| {
        let sealed = response.seal(*number, &part).map(Bytes::from);
        *number += 1;
        ready(sealed)
    });
    Box::pin(sealed)
}

impl Gateways {
    /// Lets the other replicas of the cluster serve the requests of sessions that live there.
    pub(super) fn link_replicas(&self) {
        if let Some(peers) = self.hub.peers() {
            let link: Arc<dyn ReplicaLink> = Arc::new(PeerLink { peers, record: Arc::clone(&self.record) });
            self.set_replica_link(&link);
        }
    }

    /// Serves the requests of other replicas of the cluster until `stop` is cancelled, and then those that have begun. Dropping the
    /// future cuts these off.
    pub async fn serve_replicas(self: &Arc<Self>, stop: CancellationToken) {
        let Some(peers) = self.hub.peers() else { return };
        let service = GatewayService { gateways: Arc::downgrade(self), record: Arc::clone(&self.record) };
        peers.serve(Arc::new(service), stop).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(principal: Principal) -> Option<ReplicaRequest> {
        let request = ReplicaRequest {
            profile: "work".to_owned(),
            method: RequestMethod::Delete,
            headers: vec![("mcp-session-id".to_owned(), "a\nb".to_owned())],
            body: Bytes::from_static(b"{}\n\n"),
            principal: Arc::new(principal),
        };
        read_request(&write_request(&request)?)
    }

    #[test]
    fn requests_name_credentials_and_no_rights() {
        let mut key = Principal::of_key("ann").with_roles(toolhub_core::Role::Owner);
        key.key_sha256 = Some("abc".into());
        let origin =
            PrincipalOrigin::Oidc { issuer: "https://idp.example".to_owned(), subject: "ben".to_owned() };
        let person = Principal::new(origin, PrincipalKind::Person);
        for principal in [Principal::local(), key, person.clone().with_token("secret")] {
            let read = sent(principal.clone()).unwrap();
            assert_eq!((read.profile.as_str(), read.method), ("work", RequestMethod::Delete));
            assert_eq!(read.headers, [("mcp-session-id".to_owned(), "a\nb".to_owned())]);
            assert_eq!(&*read.body, b"{}\n\n");
            assert_eq!(read.principal.id(), principal.id());
            assert_eq!(read.principal.key_sha256, principal.key_sha256);
            assert!(read.principal.roles.is_empty());
        }
        // Without credentials, the receiver could decide nothing.
        assert!(sent(Principal::of_key("ann")).is_none());
        assert!(sent(person).is_none());
    }
}
