//! Serving: who comes is looked at, what they want is found by its path, and the end is graceful.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolhub_mcp::gateway::{Principal, secret};

use crate::door::{Door, Refusal};
use crate::error::ServeError;
use crate::mcp::{self, plain};
use crate::measures::Measures;
use crate::site::Site;
use crate::sse::OldClients;
use crate::turnstile::{Quota, TooMuch, Turnstile};

/// How long a message may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);
/// What is read of a message that is too large before it is refused, and for how long.
const DISCARDED: usize = 64 << 20;
const DISCARDING: Duration = Duration::from_secs(5);

/// How the hub is served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen.
    pub bind: SocketAddr,
    /// Who may come in.
    pub door: Door,
    /// The most that one message may have.
    pub body_bytes: usize,
    /// Requests of one caller at the same time.
    pub at_once: usize,
    /// Requests of one caller in a second; `None` for any number.
    pub per_second: Option<u32>,
    /// How long what runs may take to end when the server is stopped.
    pub drain: Duration,
}

impl ServeOptions {
    /// The usual options at an address.
    pub fn at(bind: SocketAddr) -> Self {
        Self {
            bind,
            door: Door::default(),
            body_bytes: 4 << 20,
            at_once: 1_024,
            per_second: None,
            drain: Duration::from_secs(10),
        }
    }
}

/// A server that listens.
pub struct Serving {
    listener: TcpListener,
    shared: Arc<Shared>,
    drain: Duration,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("listener", &self.listener).finish_non_exhaustive()
    }
}

struct Shared {
    site: Arc<dyn Site>,
    door: Door,
    turnstile: Turnstile,
    measures: Measures,
    old_clients: Arc<OldClients>,
    body_bytes: usize,
}

impl Serving {
    /// Begins to listen; nobody is answered yet.
    pub async fn bind(site: Arc<dyn Site>, options: ServeOptions) -> Result<Self, ServeError> {
        let address = options.bind;
        if !address.ip().is_loopback() && options.door.tokens.is_empty() {
            return Err(ServeError::OpenDoor(address));
        }
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
        let shared = Shared {
            site,
            door: options.door.at(address),
            turnstile: Turnstile::new(Quota { at_once: options.at_once, per_second: options.per_second }),
            measures: Measures::default(),
            old_clients: Arc::default(),
            body_bytes: options.body_bytes,
        };
        Ok(Self { listener, shared: Arc::new(shared), drain: options.drain })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, ServeError> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `stop`; then what runs is finished, within limits. `closing` ends what would never end by itself.
    pub async fn run(
        self,
        stop: CancellationToken,
        closing: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let router = Router::new().fallback(answer).with_state(Arc::clone(&self.shared));
        let listener = self.listener.tap_io(|connection| {
            // An answer is one small write, and is not to wait for another.
            let _ = connection.set_nodelay(true);
        });
        let stopped = stop.clone();
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(async move { stopped.cancelled().await });
        let deadline = async {
            stop.cancelled().await;
            let for_ever = async {
                closing.await;
                std::future::pending::<()>().await;
            };
            let _ = tokio::time::timeout(self.drain, for_ever).await;
        };
        tokio::select! {
            ended = serving => Ok(ended?),
            () = deadline => Ok(()),
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let began = Instant::now();
    shared.measures.begin();
    let counted = Counted { shared: &shared, began, status: 499 };
    let response = shared.respond(request).await;
    counted.with(response.status().as_u16());
    response
}

/// Counts a request, also one whose caller went away before it was answered.
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
    async fn respond(&self, request: Request) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let (path, method, headers) = (parts.uri.path(), &parts.method, &parts.headers);
        let probe = match (method, path) {
            (&Method::GET, "/healthz") => Some(Probe::Alive),
            (&Method::GET, "/readyz") => Some(Probe::Ready),
            _ => None,
        };
        if let Some(probe) = probe {
            // Probes come without a token, and then hear no more than they must.
            return self.health(probe, self.door.admit(headers).is_ok());
        }
        let admitted = match method {
            // A browser asks whether its page may ask, and shows no token for that.
            &Method::OPTIONS => self.door.check_place(headers).map(|()| None),
            _ => self.door.admit(headers).map(Some),
        };
        let mut response = match (admitted, path) {
            (Err(refusal @ (Refusal::Host | Refusal::Origin)), _) => return refused(refusal),
            (Err(refusal @ Refusal::Token), _) => refused(refusal),
            (Ok(None), _) => plain(StatusCode::NO_CONTENT),
            (Ok(Some(_)), "/metrics") if method == Method::GET => self.metrics(),
            (Ok(Some(who)), _) => self.mcp((path, parts.uri.query()), (method, headers), (body, who)).await,
        };
        allow(headers, response.headers_mut());
        response
    }

    /// What the gateway answers.
    async fn mcp(
        &self,
        (path, query): (&str, Option<&str>),
        (method, headers): (&Method, &HeaderMap),
        (body, who): (Body, Principal),
    ) -> Response<Body> {
        let (route, profile) = match path.trim_end_matches('/') {
            "/mcp" => (Route::Mcp, None),
            "/sse" => (Route::Sse, None),
            "/messages" => (Route::Messages, None),
            other => match other.strip_prefix("/mcp/") {
                Some(profile) if !profile.contains('/') => (Route::Mcp, Some(profile)),
                _ => return text(StatusCode::NOT_FOUND, "there is nothing here: MCP clients want /mcp"),
            },
        };
        let Some(gateway) = self.site.gateway(profile) else {
            return text(StatusCode::NOT_FOUND, "there is no such profile: see `[profiles]`");
        };
        let place = match self.turnstile.enter(&who) {
            Ok(place) => place,
            Err(TooMuch(wait)) => {
                let mut response = text(StatusCode::TOO_MANY_REQUESTS, "too many requests: wait a little");
                let seconds = HeaderValue::from(wait.as_secs().max(1));
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
                return response;
            }
        };
        let too_large = || {
            let most = format!("a message has at most {} KiB", self.body_bytes >> 10);
            text(StatusCode::PAYLOAD_TOO_LARGE, &most)
        };
        if body.size_hint().lower() > self.body_bytes as u64 {
            discard(body).await;
            return too_large();
        }
        // Whoever sends nothing more does not keep its place for ever.
        let Ok(body) = tokio::time::timeout(ARRIVAL, to_bytes(body, self.body_bytes)).await else {
            return text(StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time");
        };
        let Ok(body) = body else { return too_large() };
        let response = match route {
            Route::Mcp => mcp::answer(&gateway, (method, headers), body, &who).await,
            Route::Sse if method == Method::GET => match secret() {
                Some(name) => self.old_clients.open(&gateway, who, name),
                None => plain(StatusCode::INTERNAL_SERVER_ERROR),
            },
            Route::Messages if method == Method::POST => {
                let name =
                    query.and_then(|query| query.split('&').find_map(|one| one.strip_prefix("sessionId=")));
                self.old_clients.take(name.unwrap_or_default(), &who, &body).await
            }
            Route::Sse | Route::Messages => plain(StatusCode::METHOD_NOT_ALLOWED),
        };
        // A stream that stays open does not take a place for as long.
        drop(place);
        response
    }

    fn health(&self, probe: Probe, in_full: bool) -> Response<Body> {
        let health = self.site.health();
        let fine = match probe {
            Probe::Alive => true,
            Probe::Ready => health.ready,
        };
        let status = if fine { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let word = match (fine, health.degraded.is_empty()) {
            (false, _) => "not ready",
            (true, false) => "degraded",
            (true, true) => "ok",
        };
        let mut body = serde_json::json!({"status": word});
        if in_full {
            body["degraded"] = health.degraded.into();
        }
        typed(status, "application/json", body.to_string())
    }

    fn metrics(&self) -> Response<Body> {
        let mut out = String::new();
        self.measures.write(&mut out);
        self.site.measure(&mut out);
        typed(StatusCode::OK, "text/plain; version=0.0.4", out)
    }
}

/// Reads what is not wanted, within limits: whoever still sends when the connection is closed never hears why.
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

/// What a probe wants to know.
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

fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = text(refusal.status(), refusal.why());
    if refusal.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"toolhub\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Lets a web page of an allowed origin read the answer.
fn allow(asked: &HeaderMap, headers: &mut HeaderMap) {
    let Some(origin) = asked.get(header::ORIGIN).cloned() else { return };
    let lists = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, OPTIONS"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id, www-authenticate"),
        (header::VARY, "origin"),
    ];
    // Some headers bear the names of a tool's own arguments, so that no list has them all.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in lists {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
