//! Request handling: access check, routing by path, and the responses that are not MCP messages.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use toolhub_core::access_record::AccessRecord;
use toolhub_core::ports::NullSink;
use toolhub_core::{EventSink, TraceContext};
use toolhub_mcp::gateway::{
    Gateway, HeaderLookup, Permit, Principal, Principals, Reply, RequestContext, TooFast, secret,
};

use crate::access::{Access, Refusal, Shown};
use crate::body::{self, Unfit};
use crate::connection::{Answering, Connections};
use crate::fast_path::Head;
use crate::mcp::{self, not_so, plain};
use crate::metrics::ServerMetrics;
use crate::metrics_text::{Kind, MetricsText};
use crate::request_record::{Outgoing, RequestRecord};
use crate::service::HubService;
use crate::sse::OldClients;
use crate::telemetry::Sampler;
use crate::workers::Workers;

/// How much of an unwanted body is read before the response, in bytes and time.
const DISCARDED: usize = 64 << 20;
const DISCARDING: Duration = Duration::from_secs(5);
/// The name of the principal if no token is required.
const LOCAL: &str = "local";

/// The state that all connections share.
pub(crate) struct Shared {
    site: Arc<dyn HubService>,
    door: Access,
    /// The principals and their budgets.
    principals: Principals,
    measures: ServerMetrics,
    old_clients: Arc<OldClients>,
    body_bytes: usize,
    connections: Arc<Connections>,
    pub(crate) workers: Arc<Workers>,
    /// Whether the server is shutting down: requests in progress are finished, new ones are refused.
    draining: AtomicBool,
    /// Receives the access records.
    pub(crate) events: Arc<dyn EventSink>,
    /// Assigns requests to traces.
    pub(crate) sampler: Option<Sampler>,
    /// Counters of lost records and spans, by name.
    pub(crate) losses: Vec<(&'static str, Arc<AtomicU64>)>,
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

/// A request whose principal is known and whose body may be incomplete.
struct Entering<'a> {
    who: Principal,
    body: &'a mut Option<Body>,
    answering: &'a Answering,
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
        self.shared.measures.end(self.status, self.began.elapsed());
    }
}

impl Shared {
    pub(crate) fn new(
        site: Arc<dyn HubService>,
        (door, principals, body_bytes): (Access, Principals, usize),
        connections: &Arc<Connections>,
    ) -> Self {
        Self {
            site,
            door,
            principals,
            measures: ServerMetrics::default(),
            old_clients: Arc::default(),
            body_bytes,
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
        self.measures.begin();
        let counted = Counted { shared: self, began: Instant::now(), status: AccessRecord::GONE };
        let (verb, path) = (request.method().as_str(), request.uri().path());
        let mut account = RequestRecord::open(&self.events, client, (verb, path));
        let made = (client.ip(), &answering);
        let response = self.respond(request.map(Body::new), made, account.as_deref_mut()).await;
        let status = response.status().as_u16();
        counted.with(status);
        if let Some(account) = &mut account {
            account.answered(status);
        }
        response.map(|body| Outgoing { body, account, _answering: answering })
    }

    /// Returns the principal of that name. Without tokens there is one principal, with a budget per address.
    fn principal(&self, name: Option<&str>, address: IpAddr) -> Principal {
        match name {
            Some(name) => self.principals.named(name),
            None => self.principals.at(LOCAL, address),
        }
    }

    /// Returns the number of requests in progress.
    pub(crate) fn under_way(&self) -> u64 {
        self.measures.under_way()
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
                self.door.admit_again(head, shown, find).ok()?
            }
        };
        if !fine {
            return None;
        }
        let gateway = self.site.gateway(profile)?;
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
        self.measures.begin();
        let counted = Counted { shared: self, began, status: AccessRecord::GONE };
        let Admitted { who, gateway, permit } = admitted;
        let trace = account.and_then(|account| {
            account.made_by(&who);
            self.placed(account, &head.body, head)
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
    fn placed(
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

    async fn respond(
        &self,
        request: Request<Body>,
        (address, answering): (IpAddr, &Answering),
        account: Option<&mut RequestRecord>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.authority().map(Authority::as_str);
        let (path, method, headers) = (parts.uri.path(), &parts.method, &parts.headers);
        let probe = match (method, path) {
            (&Method::GET, "/healthz") => Some(Probe::Alive),
            (&Method::GET, "/readyz") => Some(Probe::Ready),
            _ => None,
        };
        if let Some(probe) = probe {
            // Probes carry no token, and then get only the status.
            return self.health(probe, self.door.admit(headers, target).is_ok());
        }
        let admitted = match method {
            // A CORS preflight request carries no token.
            &Method::OPTIONS => self.door.check_place(headers, target).map(|()| None),
            _ => self.door.admit(headers, target).map(|name| Some(self.principal(name, address))),
        };
        let elsewhere = matches!(admitted, Err(Refusal::Authority | Refusal::Host | Refusal::Origin));
        let mut body = Some(body);
        let mut response = match (admitted, path) {
            _ if self.draining.load(Ordering::Acquire) => ending(),
            (Err(refusal), _) => refused(refusal),
            (Ok(None), _) => plain(StatusCode::NO_CONTENT),
            (Ok(Some(_)), "/metrics") if method == Method::GET => self.metrics(),
            (Ok(Some(who)), _) => {
                let entering = Entering { who, body: &mut body, answering };
                self.mcp(&parts, entering, account).await
            }
        };
        if !elsewhere {
            allow(headers, response.headers_mut());
        }
        if let Some(body) = body.filter(|body| !body.is_end_stream()) {
            Box::pin(discard(body)).await;
        }
        response
    }

    /// Handles a request to the gateway.
    async fn mcp(
        &self,
        parts: &Parts,
        Entering { who, body, answering }: Entering<'_>,
        mut account: Option<&mut RequestRecord>,
    ) -> Response<Body> {
        let (path, query) = (parts.uri.path(), parts.uri.query());
        let (method, headers) = (&parts.method, &parts.headers);
        if let Some(account) = &mut account {
            account.made_by(&who);
        }
        // Every request counts, also those for unknown paths.
        let permit = match who.enter() {
            Ok(permit) => permit,
            Err(too_fast) => return slower(too_fast),
        };
        let (route, profile) = match path.trim_end_matches('/') {
            "/mcp" => (Route::Mcp, None),
            "/sse" => (Route::Sse, None),
            "/messages" => (Route::Messages, None),
            other => match other.strip_prefix("/mcp/") {
                Some(profile) if !profile.contains('/') => (Route::Mcp, Some(profile)),
                _ => match other.strip_prefix("/sse/") {
                    Some(profile) if !profile.contains('/') => (Route::Sse, Some(profile)),
                    _ => return text(StatusCode::NOT_FOUND, "there is nothing here: MCP clients want /mcp"),
                },
            },
        };
        let Some(gateway) = self.site.gateway(profile) else {
            let known =
                self.site.profiles().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return text(StatusCode::NOT_FOUND, &format!("there is no such profile here; there are {known}"));
        };
        let too_large = || {
            let most = format!("a message has at most {} KiB", self.body_bytes >> 10);
            text(StatusCode::PAYLOAD_TOO_LARGE, &most)
        };
        let hint = body.as_ref().map(Body::size_hint).unwrap_or_default();
        if hint.lower() > self.body_bytes as u64 {
            return too_large();
        }
        let received = match body {
            Some(coming) => body::receive(coming, self.body_bytes, &who, answering).await,
            None => Ok(Bytes::new()),
        };
        let message = match received {
            Ok(message) => message,
            Err(Unfit::TooLong) => return too_large(),
            Err(Unfit::Broken) => {
                *body = None;
                return text(StatusCode::BAD_REQUEST, "the message broke off");
            }
            Err(Unfit::Late) => {
                // The connection is closed after this response.
                *body = None;
                return text(StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time");
            }
            Err(Unfit::NoRoom(exhausted)) => {
                return later(StatusCode::SERVICE_UNAVAILABLE, &exhausted.to_string());
            }
        };
        *body = None;
        let body = message;
        // Each message of a batch counts.
        if is_batch(&body)
            && let Err(too_fast) = who.spend_batch(messages_in(&body))
        {
            return slower(too_fast);
        }
        let trace = account.as_deref_mut().and_then(|account| self.placed(account, &body, headers));
        let asking = RequestContext { principal: who.clone(), trace };
        let answering = async {
            match route {
                Route::Mcp => mcp::answer(&gateway, (method, headers), (body, &who), account).await,
                Route::Sse if method == Method::GET => match secret() {
                    Some(name) => self.old_clients.open(&gateway, &who, name),
                    None => plain(StatusCode::INTERNAL_SERVER_ERROR),
                },
                Route::Messages if method == Method::POST => {
                    if let Some(refused) = mcp::refused_encoding(headers) {
                        return refused;
                    }
                    let name = query
                        .and_then(|query| query.split('&').find_map(|one| one.strip_prefix("sessionId=")));
                    Box::pin(self.old_clients.take(name.unwrap_or_default(), &who, &body)).await
                }
                Route::Sse => {
                    not_so("GET", "a stream of the old HTTP+SSE is opened with GET; newer clients want /mcp")
                }
                Route::Messages => {
                    not_so("POST", "messages are sent with POST to the address that the stream of /sse names")
                }
            }
        };
        let response = asking.takes(answering).await;
        // An open stream is not a request in progress; the calls that it runs are counted separately.
        drop(permit);
        response
    }

    fn health(&self, probe: Probe, in_full: bool) -> Response<Body> {
        let health = self.site.health();
        let draining = self.draining.load(Ordering::Acquire);
        let fine = match probe {
            Probe::Alive => true,
            Probe::Ready => health.ready && !draining,
        };
        let status = if fine { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let word = match (fine, health.degraded.is_empty()) {
            _ if draining => "draining",
            (false, _) => "not ready",
            (true, false) => "degraded",
            (true, true) => "ok",
        };
        let mut body = serde_json::json!({"status": word});
        if in_full {
            body["degraded"] = health.degraded.into();
        }
        let mut response = typed(status, "application/json", body.to_string());
        if draining {
            last(&mut response);
        }
        response
    }

    fn metrics(&self) -> Response<Body> {
        let mut out = MetricsText::default();
        self.measures.write(&mut out);
        out.family("toolhub_http_connections", Kind::Gauge, "Connections that are open.")
            .value(self.connections.len());
        out.family(
            "toolhub_http_lane_connections",
            Kind::Gauge,
            "Connections that one thread serves, as there is a crowd.",
        )
        .value(self.workers.len());
        for (name, count) in &self.losses {
            let help = format!("What could not be kept: {}.", name.replace('_', " "));
            out.family(&format!("toolhub_{name}_lost_total"), Kind::Counter, &help)
                .value(count.load(Ordering::Relaxed));
        }
        self.site.measure(&mut out);
        typed(StatusCode::OK, "text/plain; version=0.0.4", out.into_text())
    }
}

/// Reads an unwanted body, within limits: if the connection is closed while the client is still sending, the client never
/// sees the response.
async fn discard(body: Body) {
    let mut pieces = body.into_data_stream();
    let reading = async {
        let mut read = 0;
        while let Some(Ok(piece)) = pieces.next().await
            && read < DISCARDED
        {
            read += piece.len();
        }
    };
    let _ = tokio::time::timeout(DISCARDING, reading).await;
}

/// The kind of a health probe.
#[derive(Clone, Copy)]
enum Probe {
    Alive,
    Ready,
}

enum Route {
    Mcp,
    Sse,
    Messages,
}

fn text(status: StatusCode, text: &str) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The response to requests during shutdown.
fn ending() -> Response<Body> {
    let mut response = later(StatusCode::SERVICE_UNAVAILABLE, "the gateway is ending and takes nothing new");
    last(&mut response);
    response
}

/// Returns whether a body is a JSON-RPC batch.
fn is_batch(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Returns the number of messages in a batch. An invalid batch counts as one message, which is refused later.
fn messages_in(batch: &[u8]) -> usize {
    serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(batch).map_or(1, |all| all.len())
}

/// The 429 response to a principal that exceeds its rate limit, with the time to wait.
fn slower(TooFast { setting, wait }: TooFast) -> Response<Body> {
    let why = match wait {
        Some(_) => {
            format!("too many requests: wait as long as `Retry-After` says (`{setting}` in `[serve]`)")
        }
        None => format!(
            "this batch has more messages than may be sent in a second (`{setting}` in `[serve]`): send smaller ones"
        ),
    };
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, &why);
    let seconds = wait.unwrap_or(Duration::from_secs(1)).as_millis().div_ceil(1_000).max(1);
    let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// A refusal that may be retried after one second.
pub(crate) fn later(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = text(status, why);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Closes the connection after this response.
fn last(response: &mut Response<Body>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = text(refusal.status(), refusal.why());
    if refusal.status() == StatusCode::UNAUTHORIZED {
        // RFC 6750, section 3.1: a challenge for a request without a token carries no error code.
        let challenge = HeaderValue::from_static(match refusal {
            Refusal::WrongToken => "Bearer realm=\"toolhub\", error=\"invalid_token\"",
            _ => "Bearer realm=\"toolhub\"",
        });
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Adds the CORS headers that let a web page of an allowed origin read the response.
fn allow(asked: &HeaderMap, headers: &mut HeaderMap) {
    let Some(origin) = asked.get(header::ORIGIN).cloned() else { return };
    let lists = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, OPTIONS"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id, www-authenticate"),
        (header::VARY, "origin"),
    ];
    // Some headers carry the names of tool arguments (`Mcp-Param-…`), so that no fixed list covers them.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in lists {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
