//! The state that all connections share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use toolhub_core::ports::NullSink;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::{EventSink, Principal, TraceContext};
use toolhub_mcp_gateway::{Gateway, HeaderLookup, PrincipalHandle, PrincipalTable};

use crate::access::ServerAccess;
use crate::api_app::ApiApp;
use crate::authenticator::AuthenticatedToken;
use crate::connection::Connections;
use crate::io_threads::IoThreads;
use crate::legacy_clients::LegacyClients;
use crate::metrics::ServerMetrics;
use crate::request_record::RequestRecord;
use crate::service::HubService;
use crate::telemetry::Sampler;
use crate::web_app::{Budgets, WebApp};

/// How often changed keys are looked for, to end the streams of revoked ones.
const REVOCATION_INTERVAL: Duration = Duration::from_millis(250);

/// The state that all connections share.
pub(crate) struct HttpServerState {
    pub(crate) service: Arc<dyn HubService>,
    pub(crate) access: ServerAccess,
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
    pub(crate) io_threads: Arc<IoThreads>,
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

impl HttpServerState {
    pub(crate) fn new(
        service: Arc<dyn HubService>,
        access: ServerAccess,
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
            io_threads: Arc::default(),
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

    /// Returns the handle of a verified principal. Without tokens there is one principal, with a budget per address.
    pub(crate) fn principal(
        &self,
        verified: Option<&AuthenticatedToken>,
        address: IpAddr,
    ) -> PrincipalHandle {
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
                    principal.origin == PrincipalOrigin::Local || authenticator.is_valid(principal)
                });
            }
        }
    }

    /// Returns the number of requests in progress.
    pub(crate) fn in_flight(&self) -> u64 {
        self.metrics.in_flight()
    }

    /// Returns the gateway of a profile that the principal may use.
    pub(crate) fn gateway(&self, profile: Option<&str>, principal: &PrincipalHandle) -> Option<Arc<Gateway>> {
        let may_use = principal.identity().profiles.is_none()
            || principal.identity().may_use_profile(profile.unwrap_or(self.service.default_profile()));
        if may_use { self.service.gateway(profile) } else { None }
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

impl Budgets for HttpServerState {
    fn handle_of(&self, principal: &Arc<Principal>, client: IpAddr) -> PrincipalHandle {
        match principal.origin {
            PrincipalOrigin::Local => self.principals.at(&self.local, client),
            PrincipalOrigin::Key { .. } | PrincipalOrigin::Oidc { .. } => self.principals.of(principal),
        }
    }
}
