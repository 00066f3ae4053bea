//! The state that all connections share, and the fast path of requests to the gateway.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use toolhub_core::access_record::AccessRecord;
use toolhub_core::ports::NullSink;
use toolhub_core::{EventSink, TraceContext};
use toolhub_mcp_gateway::{Gateway, HeaderLookup, Permit, Principal, Principals, Reply, RequestContext};

use crate::access::{Access, VerifiedCredentials};
use crate::connection::{ActiveRequest, Connections};
use crate::fast_path::Head;
use crate::metrics::ServerMetrics;
use crate::request_record::{RecordedBody, RequestRecord};
use crate::routes::{LegacyClients, Peer, is_batch};
use crate::service::HubService;
use crate::telemetry::Sampler;
use crate::workers::Workers;

/// The name of the principal if no token is required.
const LOCAL: &str = "local";

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) service: Arc<dyn HubService>,
    pub(crate) access: Access,
    /// The principals and their budgets.
    principals: Principals,
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
}

/// The limits of requests.
pub(crate) struct RequestLimits {
    /// The principals and their budgets.
    pub(crate) principals: Principals,
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
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.credentials.as_ref().map(|credentials| &credentials.principal)
    }
}

/// A request that passed the access check and the rate limit.
pub(crate) struct Admitted {
    principal: Principal,
    gateway: Arc<Gateway>,
    permit: Permit,
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
        let mut record = RequestRecord::open(&self.events, client, (verb, path));
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

    /// Returns the principal of that name. Without tokens there is one principal, with a budget per address.
    pub(crate) fn principal(&self, name: Option<&str>, address: IpAddr) -> Principal {
        match name {
            Some(name) => self.principals.named(name),
            None => self.principals.at(LOCAL, address),
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
        identity: &mut ConnectionIdentity,
    ) -> Option<Admitted> {
        let profile = match head.path {
            "/mcp" => None,
            other => Some(other.strip_prefix("/mcp/")?),
        };
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '%']);
        let fine = head.body.len() <= self.body_bytes
            && profile.is_none_or(plain)
            && head.valid_headers()
            && !is_batch(&head.body)
            && !self.draining.load(Ordering::Acquire);
        let principal = match &mut identity.credentials {
            Some(credentials) if head.was_admitted() => credentials.principal.clone(),
            credentials => {
                let find = |name: Option<&str>| self.principal(name, client.ip());
                self.access.admit_cached(head, credentials, find).ok()?
            }
        };
        if !fine {
            return None;
        }
        let gateway = self.service.gateway(profile)?;
        let permit = principal.start_request().ok()?;
        Some(Admitted { principal, gateway, permit })
    }

    /// Handles a request on the fast path.
    pub(crate) async fn take(
        &self,
        head: &Head<'_>,
        (admitted, began): (Admitted, Instant),
        record: Option<&mut RequestRecord>,
    ) -> Reply {
        self.metrics.begin();
        let metrics_guard =
            RequestMetricsGuard { shared: self, began, status: AccessRecord::CLIENT_CLOSED_REQUEST };
        let Admitted { principal, gateway, permit } = admitted;
        let trace = record.and_then(|record| {
            record.set_principal(&principal);
            self.trace(record, &head.body, head)
        });
        let context = RequestContext { principal: principal.clone(), trace };
        let reply = context.scope(gateway.post(head, head.body.clone(), &principal)).await;
        // An open stream is not a request in progress; the calls that it runs are counted separately.
        drop(permit);
        metrics_guard.with(match &reply {
            Reply::Body { status, .. } => *status,
            Reply::Events(_) => 200,
        });
        reply
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
