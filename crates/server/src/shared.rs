//! The state that all connections share, and the fast path of requests to the gateway.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use toolhub_core::access_record::AccessRecord;
use toolhub_core::ports::NullSink;
use toolhub_core::principal::Origin;
use toolhub_core::{EventSink, Principal, TraceContext};
use toolhub_mcp_gateway::{
    Gateway, HeaderLookup, Permit, PrincipalHandle, PrincipalTable, Reply, RequestContext, StepUp,
};

use crate::access::{Access, AccessRequest, Refusal, VerifiedCredentials};
use crate::api_app::ApiApp;
use crate::authenticator::{TokenRefusal, Verified};
use crate::connection::{ActiveRequest, Connections};
use crate::fast_path::Head;
use crate::metrics::ServerMetrics;
use crate::request_record::{RecordedBody, RequestRecord};
use crate::routes::{LegacyClients, Peer, is_batch};
use crate::service::HubService;
use crate::telemetry::Sampler;
use crate::web_app::{Budgets, WebApp};
use crate::workers::Workers;

/// How often changed keys are looked for, to end the streams of revoked ones.
const REVOCATION_INTERVAL: Duration = Duration::from_millis(250);

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) service: Arc<dyn HubService>,
    pub(crate) access: Access,
    /// The principals and their budgets.
    principals: PrincipalTable,
    /// The principal if no token is required.
    local: Arc<Principal>,
    pub(crate) metrics: ServerMetrics,
    pub(crate) legacy_clients: Arc<LegacyClients>,
    pub(crate) body_bytes: usize,
    /// Whether connections start on the fast path.
    pub(crate) fast_path: bool,
    pub(crate) connections: Arc<Connections>,
    pub(crate) workers: Arc<Workers>,
    /// Whether the server is shutting down: requests in progress are finished, new ones are refused.
    pub(crate) draining: AtomicBool,
    /// Receives the access records.
    pub(crate) events: Arc<dyn EventSink>,
    /// Assigns requests to traces.
    pub(crate) sampler: Option<Sampler>,
    /// Counters of lost records and spans, by name.
    pub(crate) losses: Vec<(&'static str, Arc<AtomicU64>)>,
    /// The web application beside the gateway.
    pub(crate) web_app: Option<Arc<dyn WebApp>>,
    pub(crate) api_app: Option<Arc<dyn ApiApp>>,
}

/// The limits of requests.
pub(crate) struct RequestLimits {
    /// The principals and their budgets.
    pub(crate) principals: PrincipalTable,
    /// The maximum length of a message.
    pub(crate) body_bytes: usize,
}

/// The identity that earlier requests of a connection have proven.
#[derive(Debug, Default)]
pub(crate) struct ConnectionIdentity {
    credentials: Option<VerifiedCredentials>,
}

impl ConnectionIdentity {
    /// Returns the principal of the last request.
    pub(crate) fn principal(&self) -> Option<&PrincipalHandle> {
        self.credentials.as_ref().map(|credentials| &credentials.principal)
    }

    /// Returns when the token of the last request must be verified again.
    pub(crate) fn recheck(&self) -> Option<Instant> {
        self.credentials.as_ref().and_then(VerifiedCredentials::recheck)
    }
}

/// A request that passed the access check and the rate limit.
pub(crate) struct Admitted {
    principal: PrincipalHandle,
    gateway: Arc<Gateway>,
    permit: Permit,
}

/// The result of a request on the fast path.
pub(crate) enum Taken {
    Reply(Reply),
    /// The call was refused because its token lacks scopes. Nothing was executed; hyper handles the message again and
    /// writes the challenge.
    NeedsHyper,
}

/// Counts a request, also if its client disconnects before the response.
struct RequestMetricsGuard<'a> {
    shared: &'a Shared,
    began: Instant,
    status: u16,
}

impl RequestMetricsGuard<'_> {
    fn with(mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for RequestMetricsGuard<'_> {
    fn drop(&mut self) {
        self.shared.metrics.end(self.status, self.began.elapsed());
    }
}

impl Shared {
    pub(crate) fn new(
        service: Arc<dyn HubService>,
        access: Access,
        limits: RequestLimits,
        connections: &Arc<Connections>,
    ) -> Self {
        Self {
            service,
            access,
            principals: limits.principals,
            local: Arc::new(Principal::local()),
            metrics: ServerMetrics::default(),
            legacy_clients: Arc::default(),
            body_bytes: limits.body_bytes,
            fast_path: true,
            connections: Arc::clone(connections),
            workers: Arc::default(),
            draining: AtomicBool::new(false),
            events: Arc::new(NullSink),
            sampler: None,
            losses: Vec::new(),
            web_app: None,
            api_app: None,
        }
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Handles one request that hyper has read.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        client: SocketAddr,
        active_request: ActiveRequest,
    ) -> Response<RecordedBody> {
        self.metrics.begin();
        let metrics_guard = RequestMetricsGuard {
            shared: self,
            began: Instant::now(),
            status: AccessRecord::CLIENT_CLOSED_REQUEST,
        };
        let (verb, path) = (request.method().as_str(), request.uri().path());
        let path = match &self.web_app {
            // The id of a link is for its caller only.
            _ if path.starts_with("/login/") => "/login/…",
            Some(app) => app.loggable_path(path),
            None => path,
        };
        let mut record = RequestRecord::open(&self.events, client, verb, path);
        let request = request.map(Body::new);
        let peer = Peer { address: client.ip(), active_request: &active_request };
        let response = self.respond(request, peer, record.as_deref_mut()).await;
        let status = response.status().as_u16();
        metrics_guard.with(status);
        if let Some(record) = &mut record {
            record.record_status(status);
        }
        response.map(|body| RecordedBody { body, record, _active_request: active_request })
    }

    /// Returns the handle of a verified principal. Without tokens there is one principal, with a budget per address.
    pub(crate) fn principal(&self, verified: Option<&Verified>, address: IpAddr) -> PrincipalHandle {
        match verified {
            Some(verified) => self.principals.of(&verified.principal),
            None => self.principals.at(&self.local, address),
        }
    }

    /// Ends the streams of principals whose credentials were revoked, as long as it is polled.
    pub(crate) async fn enforce_revocations(&self) {
        let authenticator = &self.access.authenticator;
        let mut version = authenticator.version();
        loop {
            tokio::time::sleep(REVOCATION_INTERVAL).await;
            if std::mem::replace(&mut version, authenticator.version()) != authenticator.version() {
                self.principals.revoke(|principal| {
                    principal.origin == Origin::Local || authenticator.is_valid(principal)
                });
            }
        }
    }

    /// Returns the number of requests in progress.
    pub(crate) fn in_flight(&self) -> u64 {
        self.metrics.in_flight()
    }

    /// Checks a request on the fast path. Returns `None` if hyper must handle it, for example because it is refused.
    pub(crate) fn admit(
        &self,
        head: &Head<'_>,
        client: SocketAddr,
        now: Instant,
        identity: &mut ConnectionIdentity,
    ) -> Option<Admitted> {
        let profile = profile_of(head)?;
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '%']);
        let fine = head.body.len() <= self.body_bytes
            && profile.is_none_or(plain)
            && head.valid_headers()
            && !is_batch(&head.body)
            && !self.draining.load(Ordering::Acquire);
        let request = AccessRequest { headers: head, target: None, profile };
        let cached = identity.credentials.as_ref().filter(|credentials| {
            (head.was_admitted() || credentials.covers(&request)) && credentials.is_current(&self.access, now)
        });
        let principal = match cached {
            Some(credentials) => credentials.principal.clone(),
            None => {
                let verified = self.access.admit(&request).ok()?;
                let principal = self.principal(verified.as_ref(), client.ip());
                let recheck = verified.and_then(|verified| verified.recheck);
                let verified = VerifiedCredentials::new(&request, &self.access, recheck, principal.clone());
                identity.credentials = Some(verified);
                principal
            }
        };
        if !fine {
            return None;
        }
        let gateway = self.gateway(profile, &principal)?;
        let permit = principal.start_request().ok()?;
        Some(Admitted { principal, gateway, permit })
    }

    /// Returns the gateway of a profile that the principal may use.
    pub(crate) fn gateway(&self, profile: Option<&str>, principal: &PrincipalHandle) -> Option<Arc<Gateway>> {
        let may_use = principal.identity().profiles.is_none()
            || principal.identity().may_use_profile(profile.unwrap_or(self.service.default_profile()));
        if may_use { self.service.gateway(profile) } else { None }
    }

    /// Verifies the token of a request on the fast path with its identity provider. Returns whether it is valid.
    pub(crate) async fn verify(&self, head: &Head<'_>) -> bool {
        let Some(profile) = profile_of(head).filter(|_| self.access.authenticator.has_providers()) else {
            return false;
        };
        let request = AccessRequest { headers: head, target: None, profile };
        // A request that needs no token, or whose token is known, is refused for another reason.
        matches!(self.access.admit(&request), Err(Refusal::Token(TokenRefusal::Invalid)))
            && self.access.admit_or_verify(&request).await.is_ok()
    }

    /// Handles a request on the fast path.
    pub(crate) async fn take(
        &self,
        head: &Head<'_>,
        admitted: Admitted,
        began: Instant,
        record: Option<&mut RequestRecord>,
    ) -> Taken {
        self.metrics.begin();
        let metrics_guard =
            RequestMetricsGuard { shared: self, began, status: AccessRecord::CLIENT_CLOSED_REQUEST };
        let Admitted { principal, gateway, permit } = admitted;
        let trace = record.and_then(|record| {
            record.set_principal(&principal);
            self.trace(record, &head.body, head)
        });
        let step_up = StepUp::of(&principal);
        let context = RequestContext { principal: principal.clone(), trace, step_up: step_up.clone() };
        let reply = context.scope(gateway.post(head, head.body.clone(), &principal)).await;
        if step_up.scopes().is_some() {
            drop(permit);
            return Taken::NeedsHyper;
        }
        // An open stream is not a request in progress; the calls that it runs are counted separately.
        drop(permit);
        metrics_guard.with(match &reply {
            Reply::Body { status, .. } => *status,
            Reply::Events(_) => 200,
        });
        Taken::Reply(reply)
    }

    /// Records the envelope of a message, and assigns the request to a trace if tracing is enabled.
    pub(crate) fn trace(
        &self,
        record: &mut RequestRecord,
        body: &[u8],
        headers: &dyn HeaderLookup,
    ) -> Option<TraceContext> {
        if body.is_empty() {
            return None;
        }
        record.record_message(body);
        self.sampler.map(|sampler| record.join_trace(sampler, headers))
    }
}

impl Budgets for Shared {
    fn handle_of(&self, principal: &Arc<Principal>, client: IpAddr) -> PrincipalHandle {
        match principal.origin {
            Origin::Local => self.principals.at(&self.local, client),
            Origin::Key { .. } | Origin::Oidc { .. } => self.principals.of(principal),
        }
    }
}

/// The profile that the path of a request to `/mcp` names. Returns `None` for another path.
pub(crate) fn profile_of<'a>(head: &Head<'a>) -> Option<Option<&'a str>> {
    match head.path {
        "/mcp" => Some(None),
        other => other.strip_prefix("/mcp/").map(Some),
    }
}
