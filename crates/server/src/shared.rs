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

use crate::access::{Access, Shown};
use crate::connection::{Answering, Connections};
use crate::fast_path::Head;
use crate::metrics::ServerMetrics;
use crate::request_record::{Outgoing, RequestRecord};
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
pub(crate) struct Familiar {
    shown: Option<Shown>,
}

impl Familiar {
    /// Returns the principal of the last request.
    pub(crate) fn who(&self) -> Option<&Principal> {
        self.shown.as_ref().map(|shown| &shown.who)
    }
}

/// A request that passed the access check and the rate limit.
pub(crate) struct Admitted {
    who: Principal,
    gateway: Arc<Gateway>,
    permit: Permit,
}

/// Counts a request, also if its client disconnects before the response.
struct Counted<'a> {
    shared: &'a Shared,
    began: Instant,
    status: u16,
}

impl Counted<'_> {
    fn with(mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for Counted<'_> {
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
        answering: Answering,
    ) -> Response<Outgoing> {
        self.metrics.begin();
        let counted =
            Counted { shared: self, began: Instant::now(), status: AccessRecord::CLIENT_CLOSED_REQUEST };
        let (verb, path) = (request.method().as_str(), request.uri().path());
        let mut account = RequestRecord::open(&self.events, client, (verb, path));
        let request = request.map(Body::new);
        let peer = Peer { address: client.ip(), answering: &answering };
        let response = self.respond(request, peer, account.as_deref_mut()).await;
        let status = response.status().as_u16();
        counted.with(status);
        if let Some(account) = &mut account {
            account.answered(status);
        }
        response.map(|body| Outgoing { body, account, _answering: answering })
    }

    /// Returns the principal of that name. Without tokens there is one principal, with a budget per address.
    pub(crate) fn principal(&self, name: Option<&str>, address: IpAddr) -> Principal {
        match name {
            Some(name) => self.principals.named(name),
            None => self.principals.at(LOCAL, address),
        }
    }

    /// Returns the number of requests in progress.
    pub(crate) fn under_way(&self) -> u64 {
        self.metrics.under_way()
    }

    /// Checks a request on the fast path. Returns `None` if hyper must handle it, for example because it is refused.
    pub(crate) fn admits(
        &self,
        head: &Head<'_>,
        client: SocketAddr,
        familiar: &mut Familiar,
    ) -> Option<Admitted> {
        let profile = match head.path {
            "/mcp" => None,
            other => Some(other.strip_prefix("/mcp/")?),
        };
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '%']);
        let fine = head.body.len() <= self.body_bytes
            && profile.is_none_or(plain)
            && head.fits()
            && !is_batch(&head.body)
            && !self.draining.load(Ordering::Acquire);
        let who = match &mut familiar.shown {
            Some(shown) if head.was_admitted() => shown.who.clone(),
            shown => {
                let find = |name: Option<&str>| self.principal(name, client.ip());
                self.access.admit_again(head, shown, find).ok()?
            }
        };
        if !fine {
            return None;
        }
        let gateway = self.service.gateway(profile)?;
        let permit = who.enter().ok()?;
        Some(Admitted { who, gateway, permit })
    }

    /// Handles a request on the fast path.
    pub(crate) async fn take(
        &self,
        head: &Head<'_>,
        (admitted, began): (Admitted, Instant),
        account: Option<&mut RequestRecord>,
    ) -> Reply {
        self.metrics.begin();
        let counted = Counted { shared: self, began, status: AccessRecord::CLIENT_CLOSED_REQUEST };
        let Admitted { who, gateway, permit } = admitted;
        let trace = account.and_then(|account| {
            account.made_by(&who);
            self.trace(account, &head.body, head)
        });
        let asking = RequestContext { principal: who.clone(), trace };
        let reply = asking.takes(gateway.post(head, head.body.clone(), &who)).await;
        // An open stream is not a request in progress; the calls that it runs are counted separately.
        drop(permit);
        counted.with(match &reply {
            Reply::Body { status, .. } => *status,
            Reply::Events(_) => 200,
        });
        reply
    }

    /// Records the envelope of a message, and assigns the request to a trace if tracing is enabled.
    pub(crate) fn trace(
        &self,
        account: &mut RequestRecord,
        body: &[u8],
        headers: &dyn HeaderLookup,
    ) -> Option<TraceContext> {
        if body.is_empty() {
            return None;
        }
        account.says(body);
        self.sampler.map(|sampler| account.joins(sampler, headers))
    }
}
