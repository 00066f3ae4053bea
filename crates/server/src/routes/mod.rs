//! The HTTP routes: [`ROUTES`] lists each with its methods, its permission and its handler. A new endpoint is a module with a
//! handler and an entry in the table.

mod api;
mod exchange;
mod health;
mod login;
pub(crate) mod mcp;
mod metrics;
mod resource_metadata;
mod sse;

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use futures_util::StreamExt as _;
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use crate::access::{AccessRefusal, AccessRequest};
use crate::api_app::in_form_of;
use crate::connection::ActiveRequest;
use crate::content_encoding::reject_encoding;
use crate::request_record::{RecordedBody, RequestRecord};
use crate::responses::{
    access_denied, allow_origin, empty_response, method_not_allowed, rate_limited, shutting_down,
    text_response,
};
use crate::shared::HttpServerState;
use crate::web_app::{WebApp, WebContext};

use exchange::RouteExchange;

/// How much of an unwanted body is read before the response, in bytes and time.
const MAX_DISCARDED_BYTES: usize = 64 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// What a request needs before its handler runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// Nothing, also during shutdown. The handler sees the principal only if the request would be admitted.
    Public,
    /// A token, if tokens are configured.
    Token,
    /// A token, if tokens are configured; the request counts towards the rate limit of its principal.
    Limited,
}

type Handler = for<'a> fn(RouteExchange<'a>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// The last segment of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProfileSegment {
    /// The path is complete.
    None,
    /// The name of a profile may follow as one more segment.
    Optional,
    /// Any segments may follow; they name no profile.
    Subpaths,
}

struct Route {
    path: &'static str,
    profile: ProfileSegment,
    /// The allowed methods, as in the header `Allow`.
    methods: &'static str,
    permission: Permission,
    handler: Handler,
    /// The hint for a request with another method.
    usage: &'static str,
}

const ROUTES: &[Route] = &[
    Route {
        path: "/mcp",
        profile: ProfileSegment::Optional,
        methods: "GET, POST, DELETE",
        permission: Permission::Limited,
        handler: |exchange| Box::pin(mcp::handle(exchange)),
        usage: mcp::WRONG_METHOD,
    },
    Route {
        path: "/sse",
        profile: ProfileSegment::Optional,
        methods: "GET",
        permission: Permission::Limited,
        handler: |exchange| Box::pin(sse::open(exchange)),
        usage: "a stream of the old HTTP+SSE is opened with GET; newer clients want /mcp",
    },
    Route {
        path: "/messages",
        profile: ProfileSegment::Optional,
        methods: "POST",
        permission: Permission::Limited,
        handler: |exchange| Box::pin(sse::receive(exchange)),
        usage: "messages are sent with POST to the address that the stream of /sse names",
    },
    Route {
        path: api::PATH,
        profile: ProfileSegment::Subpaths,
        methods: "GET, POST, DELETE",
        permission: Permission::Limited,
        handler: |exchange| Box::pin(api::handle(exchange)),
        usage: "the API is used with GET, POST and DELETE",
    },
    Route {
        path: "/metrics",
        profile: ProfileSegment::None,
        methods: "GET",
        permission: Permission::Token,
        handler: |exchange| Box::pin(std::future::ready(metrics::render(&exchange))),
        usage: "metrics are read with GET",
    },
    Route {
        path: "/.well-known/oauth-protected-resource",
        profile: ProfileSegment::None,
        methods: "GET",
        permission: Permission::Public,
        handler: |exchange| Box::pin(std::future::ready(resource_metadata::describe(&exchange))),
        usage: "the metadata is read with GET",
    },
    Route {
        path: "/.well-known/oauth-protected-resource/mcp",
        profile: ProfileSegment::Optional,
        methods: "GET",
        permission: Permission::Public,
        handler: |exchange| Box::pin(std::future::ready(resource_metadata::describe(&exchange))),
        usage: "the metadata is read with GET",
    },
    Route {
        path: "/login/callback",
        profile: ProfileSegment::None,
        methods: "GET",
        permission: Permission::Public,
        handler: |exchange| Box::pin(login::callback(exchange)),
        usage: "the browser comes back here with GET",
    },
    Route {
        path: "/login",
        profile: ProfileSegment::Optional,
        methods: "GET, POST",
        permission: Permission::Public,
        handler: |exchange| Box::pin(login::link(exchange)),
        usage: "a link to log in is opened in a browser",
    },
    Route {
        path: "/healthz",
        profile: ProfileSegment::None,
        methods: "GET",
        permission: Permission::Public,
        handler: |exchange| Box::pin(std::future::ready(health::alive(&exchange))),
        usage: "the health is read with GET",
    },
    Route {
        path: "/readyz",
        profile: ProfileSegment::None,
        methods: "GET",
        permission: Permission::Public,
        handler: |exchange| Box::pin(std::future::ready(health::ready(&exchange))),
        usage: "the health is read with GET",
    },
];

impl Route {
    /// Returns the route of a path, and the profile that the path names.
    fn find(path: &str) -> Option<(&'static Self, Option<&str>)> {
        let path = path.trim_end_matches('/');
        ROUTES.iter().find_map(|route| {
            let rest = path.strip_prefix(route.path)?;
            match rest.strip_prefix('/') {
                _ if rest.is_empty() => Some((route, None)),
                Some(profile) if route.profile == ProfileSegment::Optional && !profile.contains('/') => {
                    Some((route, Some(profile)))
                }
                Some(_) if route.profile == ProfileSegment::Subpaths => Some((route, None)),
                _ => None,
            }
        })
    }

    fn allows(&self, method: &Method) -> bool {
        self.methods.split(", ").any(|allowed| allowed == method.as_str())
    }
}

/// The client of a request.
struct Peer<'a> {
    address: IpAddr,
    /// The request in progress on its connection.
    active_request: &'a ActiveRequest,
}

impl HttpServerState {
    /// Handles one request that hyper has read.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        client: SocketAddr,
        active_request: ActiveRequest,
    ) -> Response<RecordedBody> {
        let timer = self.metrics.begin(Instant::now());
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
        timer.end_with(status);
        if let Some(record) = &mut record {
            record.record_status(status);
        }
        response.map(|body| RecordedBody { body, record, _active_request: active_request })
    }

    /// Answers a request, unless its body is encoded.
    async fn respond(
        &self,
        request: Request<Body>,
        peer: Peer<'_>,
        record: Option<&mut RequestRecord>,
    ) -> Response<Body> {
        let Some(refused) = reject_encoding(&request) else {
            return self.respond_by_route(request, peer, record).await;
        };
        let is_api = Route::find(request.uri().path()).is_some_and(|(route, _)| route.path == api::PATH);
        Box::pin(discard(request.into_body())).await;
        match self.api_app.as_ref().filter(|_| is_api) {
            Some(app) => in_form_of(&**app, refused).await,
            None => refused,
        }
    }

    /// Checks the access of a request, and answers it by its route.
    async fn respond_by_route(
        &self,
        request: Request<Body>,
        Peer { address, active_request }: Peer<'_>,
        record: Option<&mut RequestRecord>,
    ) -> Response<Body> {
        if let Some(app) = self.web_app.as_ref().filter(|app| app.serves(request.uri().path())) {
            let context = WebContext::new(self, address, record);
            return self.respond_by_web_app(&**app, request, context).await;
        }
        let (parts, body) = request.into_parts();
        let target = parts.uri.authority().map(Authority::as_str);
        let (method, headers) = (&parts.method, &parts.headers);
        let found = Route::find(parts.uri.path());
        let profile = match (&self.api_app, found) {
            // Its clients name the profile in a header.
            (Some(app), Some((route, _))) if route.path == api::PATH => app.profile(headers),
            _ => found.and_then(|(_, profile)| profile),
        };
        let request = AccessRequest { headers, target, profile };
        let mut body = Some(body);
        if let Some((route, _)) = found
            && route.permission == Permission::Public
            && route.allows(method)
        {
            let verified = self.access.admit(&request).ok();
            let principal = verified.map(|verified| self.principal(verified.as_ref(), address));
            let exchange = RouteExchange {
                shared: self,
                parts: &parts,
                profile,
                principal,
                recheck: None,
                body: &mut body,
                active_request,
                record,
            };
            return (route.handler)(exchange).await;
        }
        let admitted = match method {
            // A CORS preflight request carries no token.
            &Method::OPTIONS => self.access.check_host_and_origin(headers, target).map(|()| None),
            _ => self.access.admit_or_verify(&request).await.map(|verified| {
                let principal = self.principal(verified.as_ref(), address);
                Some((principal, verified.and_then(|verified| verified.recheck)))
            }),
        };
        let elsewhere =
            matches!(admitted, Err(AccessRefusal::Authority | AccessRefusal::Host | AccessRefusal::Origin));
        let mut response = match admitted {
            _ if self.draining.load(Ordering::Acquire) => shutting_down(),
            Err(refusal) => self.refuse(refusal, profile),
            Ok(None) => empty_response(StatusCode::NO_CONTENT),
            Ok(Some((principal, recheck))) => {
                let exchange = RouteExchange {
                    shared: self,
                    parts: &parts,
                    profile,
                    principal: Some(principal),
                    recheck,
                    body: &mut body,
                    active_request,
                    record,
                };
                dispatch(found.map(|(route, _)| route), exchange).await
            }
        };
        if let Some(app) = &self.api_app
            && found.map_or_else(|| app.is_misplaced(parts.uri.path()), |(route, _)| route.path == api::PATH)
        {
            response = in_form_of(&**app, response).await;
        }
        if !elsewhere {
            allow_origin(headers, response.headers_mut());
        }
        if let Some(body) = body.filter(|body| !body.is_end_stream()) {
            Box::pin(discard(body)).await;
        }
        response
    }
}

impl HttpServerState {
    /// The response to a request without access, with a challenge if its token is the reason.
    fn refuse(&self, refusal: AccessRefusal, profile: Option<&str>) -> Response<Body> {
        let challenge = match refusal {
            AccessRefusal::Token(refusal) => Some(self.access.authenticator.challenge(profile, refusal)),
            AccessRefusal::Authority | AccessRefusal::Host | AccessRefusal::Origin => None,
        };
        access_denied(refusal, challenge.as_deref())
    }

    /// Answers a request for the web application beside the gateway.
    async fn respond_by_web_app<'a>(
        &'a self,
        app: &'a dyn WebApp,
        request: Request<Body>,
        context: WebContext<'a>,
    ) -> Response<Body> {
        if self.draining.load(Ordering::Acquire) {
            return shutting_down();
        }
        let target = request.uri().authority().map(Authority::as_str);
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
        let is_own =
            host.is_some_and(|host| app.is_own_host(host) && target.is_none_or(|target| target == host));
        let checked = if is_own { Ok(()) } else { self.access.check_host(request.headers(), target) };
        match checked {
            Ok(()) => app.respond(request, context).await,
            Err(refusal) => access_denied(refusal, None),
        }
    }
}

/// Answers a request that was admitted.
async fn dispatch(route: Option<&Route>, mut exchange: RouteExchange<'_>) -> Response<Body> {
    if let (Some(record), Some(principal)) = (&mut exchange.record, &exchange.principal) {
        record.set_principal(principal);
    }
    // Requests for unknown paths count, too.
    let is_limited = route.is_none_or(|route| route.permission == Permission::Limited);
    let permit = match exchange
        .principal
        .as_ref()
        .filter(|_| is_limited)
        .map(|principal| principal.start_request())
        .transpose()
    {
        Ok(permit) => permit,
        Err(too_fast) => return rate_limited(too_fast),
    };
    let Some(route) = route else {
        return text_response(
            StatusCode::NOT_FOUND,
            "there is nothing here: MCP clients use /mcp, OpenAI clients a base URL that ends with /v1",
        );
    };
    if !route.allows(&exchange.parts.method) {
        return method_not_allowed(route.methods, route.usage);
    }
    let response = (route.handler)(exchange).await;
    // An open stream is not a request in progress; the calls that it runs are counted separately.
    drop(permit);
    response
}

/// Reads an unwanted body, within limits: if the connection is closed while the client is still sending, the client never
/// sees the response.
async fn discard(body: Body) {
    let mut pieces = body.into_data_stream();
    let reading = async {
        let mut read = 0;
        while let Some(Ok(piece)) = pieces.next().await
            && read < MAX_DISCARDED_BYTES
        {
            read += piece.len();
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_routes_by_path() {
        for (path, expected) in [
            ("/mcp", Some(("/mcp", None))),
            ("/mcp/", Some(("/mcp", None))),
            ("/mcp/ops", Some(("/mcp", Some("ops")))),
            ("/sse/ops", Some(("/sse", Some("ops")))),
            ("/messages", Some(("/messages", None))),
            ("/metrics", Some(("/metrics", None))),
            ("/mcp/ops/more", None),
            ("/v1/responses/a/cancel", Some(("/v1", None))),
            ("/v1x", None),
            ("/messages/ops", Some(("/messages", Some("ops")))),
            ("/metrics/ops", None),
            ("/mcpx", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(Route::find(path).map(|(route, profile)| (route.path, profile)), expected, "{path}");
        }
    }

    /// A route that is public by mistake would be open to everyone: adding one is a decision to be stated here.
    #[test]
    fn only_health_probes_metadata_and_login_pages_are_public() {
        let public = ROUTES.iter().filter(|route| route.permission == Permission::Public);
        assert_eq!(
            public.map(|route| route.path).collect::<Vec<_>>(),
            [
                "/.well-known/oauth-protected-resource",
                "/.well-known/oauth-protected-resource/mcp",
                // They check the host themselves, and the key or token of the caller before a login begins.
                "/login/callback",
                "/login",
                "/healthz",
                "/readyz"
            ]
        );
    }
}
