//! The web console of the hub and its JSON API, part of `toolhub serve`: `/console` for people, `/api/v1` for programs. Both
//! show a principal exactly what it may see: every decision is that of the gateway.

mod address;
mod api;
mod argument_pointer;
mod asking;
mod assets;
mod browser;
mod browser_sessions;
mod event_response;
mod events;
mod folder_sessions;
mod idempotency;
mod interactive_call;
mod login_limiter;
mod openapi;
mod pages;
mod person_login;
mod problem;
mod request;
mod route;
mod shared_idempotency;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use toolhub::Gateways;
use toolhub_core::audit::{AuditAction, AuditEvent, LoginEvent};
use toolhub_core::caller::ClientResponse;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::HubStore;
use toolhub_core::{BoxFuture, Lang, Localize as _, Principal, Secret};
use toolhub_mcp_gateway::{BudgetPermit, BudgetedResource, PrincipalHandle};
use toolhub_server::{WebApp, WebContext};

pub use crate::address::{PublishedAddress, running_addresses};
pub use crate::argument_pointer::argument_pointer;
use crate::browser::{CookieKind, Cookies, Preferences, PrivateCookies};
use crate::browser_sessions::BrowserSessions;
use crate::event_response::PendingAnswers;
use crate::events::EventSource;
use crate::folder_sessions::SessionOwner;
use crate::idempotency::IdempotencyKeys;
use crate::login_limiter::LoginLimiter;
use crate::problem::Problem;
use crate::request::{AuthenticatedCaller, ConsoleContext, Credential, QueryParameters};

/// The path of the console's pages.
pub const CONSOLE_PATH: &str = "/console";
const API_PREFIX: &str = "/api/v1/";
/// The path below [`CONSOLE_PATH`] at which a one-time ticket, which follows it, opens a session.
const OPEN_PREFIX: &str = "open/";
/// What the access log shows for such a path.
const OPEN_PATH_WITHOUT_TICKET: &str = "/console/open/…";
/// Maximum time for receiving the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a body.
const MAX_BODY_BYTES: usize = 4 << 20;

/// Creates a one-time link into the console of the hub with this data folder that listens on an address. With a store that
/// replicas share, each of them accepts its ticket.
pub async fn one_time_link(
    home: &Path,
    address: SocketAddr,
    store: Option<&dyn HubStore>,
) -> io::Result<Secret> {
    let ticket = match store.filter(|store| store.is_shared()) {
        Some(store) => browser_sessions::new_shared_ticket(store).await?,
        None => folder_sessions::new_ticket(home)?,
    };
    let host = match address.ip().is_loopback() {
        true => format!("{}:{}", folder_sessions::console_host(home)?, address.port()),
        false => address.to_string(),
    };
    Ok(Secret::new(format!("http://{host}{CONSOLE_PATH}/{OPEN_PREFIX}{}", ticket.expose())))
}

/// The console and the API of a hub.
pub struct Console {
    gateways: Arc<Gateways>,
    sessions: Arc<BrowserSessions>,
    events: EventSource,
    idempotency: IdempotencyKeys,
    confirmations: Arc<PendingAnswers<bool>>,
    questions: Arc<PendingAnswers<ClientResponse>>,
    logins: LoginLimiter,
    local: Arc<Principal>,
    /// The language if a browser names none.
    lang: Lang,
    /// The host name on this machine at which sessions are accepted; `None` if it cannot be stored.
    host: Option<String>,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("gateways", &self.gateways).finish_non_exhaustive()
    }
}

impl Console {
    /// The console of these gateways.
    pub fn new(gateways: Arc<Gateways>, lang: Lang) -> Self {
        let hub = gateways.hub();
        Self {
            sessions: Arc::new(BrowserSessions::open(&hub.paths().data_dir, hub.store())),
            events: EventSource::default(),
            idempotency: IdempotencyKeys::default(),
            confirmations: Arc::default(),
            questions: Arc::default(),
            logins: LoginLimiter::default(),
            local: Arc::new(Principal::local()),
            lang,
            host: folder_sessions::console_host(&hub.paths().data_dir).ok(),
            gateways,
        }
    }

    /// Whether browsers reach the hub over HTTPS.
    fn is_https(&self) -> bool {
        let configured = || self.gateways.hub().settings().auth.resource.clone();
        self.gateways.access().public_url().or_else(configured).is_some_and(|url| url.starts_with("https://"))
    }

    /// Looks for changes to announce to open pages, while it is polled.
    pub async fn follow(&self) {
        self.events.follow(self.gateways.hub()).await;
    }

    /// Ends the event streams, so that the server can end.
    pub fn close(&self) {
        self.events.close();
    }

    async fn handle(&self, request: Request<Body>, web: WebContext<'_>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let preferences = Preferences::of(&parts.headers, self.lang);
        let path = parts.uri.path();
        if let Some(below) = path.strip_prefix(API_PREFIX) {
            let exchange = ApiRequest { parts: &parts, body, lang: preferences.lang, web: &web };
            let response = self.api(below, exchange).await;
            let mut response =
                response.unwrap_or_else(|problem| problem_response(&problem, preferences.lang));
            browser::secure(response.headers_mut());
            return response;
        }
        let mut response = self.page(&parts, preferences, &web).await;
        browser::secure(response.headers_mut());
        response
    }

    /// Responds to a request of the API.
    async fn api(&self, path: &str, exchange: ApiRequest<'_, '_>) -> Result<Response<Body>, Problem> {
        let ApiRequest { parts, body, lang, web } = exchange;
        let caller = self.caller(&parts.headers).await?.ok_or_else(Problem::unauthenticated)?;
        let (handle, _permit) = match web.start_request(&caller.principal) {
            Ok(started) => started,
            Err(refused) => return Ok(refused),
        };
        let (route, values) = match route::find(api::routes::ROUTES, &parts.method, path) {
            Ok(found) => found,
            Err(allowed) if allowed.is_empty() => {
                return Err(Problem::not_found(
                    "there is nothing here: GET /api/v1/openapi.json describes the API",
                    "此处没有内容：GET /api/v1/openapi.json 描述了 API",
                ));
            }
            Err(allowed) => {
                let allowed = allowed.join(", ");
                let detail = LocalizedText::new(format!("use {allowed}"), format!("请使用 {allowed}"));
                let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail);
                let mut response = problem_response(&problem, lang);
                if let Ok(value) = HeaderValue::from_str(&allowed) {
                    response.headers_mut().insert(header::ALLOW, value);
                }
                return Ok(response);
            }
        };
        if let Credential::Session { csrf } = &caller.credential
            && route.method.writes()
        {
            browser::check_write(&parts.headers, csrf)?;
        }
        if !route.permission.allows(&caller.principal) {
            let operation = format!("{} {}", route.method.name(), route.path);
            self.gateways.note_refused_operation(&caller.principal, &operation, path);
            return Err(Problem::forbidden(
                "the roles of this principal do not allow this",
                "该主体的角色不允许此操作",
            ));
        }
        let (body, _upload) = match route.method.writes() {
            true => read_body(&parts.headers, body, &handle).await?,
            false => (Bytes::new(), None),
        };
        let context = ConsoleContext { path: values, body, lang, ..self.context(caller, parts, handle) };
        (route.handler)(&context).await
    }

    /// The context of a request without path parameters and body.
    fn context<'a>(
        &'a self,
        caller: AuthenticatedCaller,
        parts: &'a http::request::Parts,
        handle: PrincipalHandle,
    ) -> ConsoleContext<'a> {
        ConsoleContext {
            gateways: &self.gateways,
            events: &self.events,
            idempotency: &self.idempotency,
            confirmations: &self.confirmations,
            questions: &self.questions,
            sessions: &self.sessions,
            is_https: self.is_https(),
            own_host: self.host.as_deref(),
            caller,
            handle,
            lang: self.lang,
            query: QueryParameters::parse(parts.uri.query()),
            path: Vec::new(),
            headers: &parts.headers,
            body: Bytes::new(),
        }
    }

    /// The caller of a request: the principal of its key, else that of its session. A wrong key is not replaced by a session.
    async fn caller(&self, headers: &HeaderMap) -> Result<Option<AuthenticatedCaller>, Problem> {
        if headers.get_all(header::AUTHORIZATION).iter().any(browser::is_bearer) {
            return Ok(self.key_caller(headers));
        }
        if !self.accepts_sessions(headers) {
            return Ok(None);
        }
        let Some(token) = Cookies::of(headers).session(self.is_https()) else { return Ok(None) };
        let owner =
            self.sessions.owner(token).await.map_err(|error| Problem::sessions_unavailable(&error))?;
        let principal = match owner {
            None => return Ok(None),
            Some(SessionOwner::Local) => Arc::clone(&self.local),
            Some(SessionOwner::Person(person)) => match self.gateways.access().person_principal(&person) {
                Some(principal) => Arc::new(principal),
                None => return Ok(None),
            },
        };
        let credential = Credential::Session { csrf: folder_sessions::csrf_token(token) };
        Ok(Some(AuthenticatedCaller { principal, credential }))
    }

    /// The caller of a request with a key.
    fn key_caller(&self, headers: &HeaderMap) -> Option<AuthenticatedCaller> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (value, None) = (values.next()?.to_str().ok()?, values.next()) else { return None };
        let (_, key) = value.split_once(' ')?;
        let principal = self.gateways.access().find_key(key.trim())?;
        Some(AuthenticatedCaller { principal, credential: Credential::Key })
    }

    /// Whether the host of a request may have sessions: on this machine only the name that other programs do not know.
    fn accepts_sessions(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        self.is_own_host(host) || !browser::is_loopback(host)
    }

    /// Responds to a request for a page or an asset.
    async fn page(
        &self,
        parts: &http::request::Parts,
        preferences: Preferences,
        web: &WebContext<'_>,
    ) -> Response<Body> {
        let Some(below) = parts.uri.path().strip_prefix(CONSOLE_PATH).and_then(|rest| rest.strip_prefix('/'))
        else {
            // Relative links of the page need the slash.
            return browser::redirect("console/");
        };
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let mut response = browser::plain(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        if let Some(name) = below.strip_prefix("assets/") {
            return assets::respond(name, &parts.headers);
        }
        if let Some(ticket) = below.strip_prefix(OPEN_PREFIX) {
            // A probe must not use up the ticket.
            if parts.method == Method::HEAD || !self.accepts_sessions(&parts.headers) {
                return pages::used_link(preferences);
            }
            return self.open(ticket, &parts.headers, preferences).await;
        }
        let query = QueryParameters::parse(parts.uri.query());
        if ["login", "callback"].contains(&below) && !self.logins.permits(web.client(), Instant::now()) {
            let text = preferences.lang.choose(
                "too many logins from this address: try again in a minute",
                "来自此地址的登录过多：请一分钟后重试",
            );
            return browser::plain(StatusCode::TOO_MANY_REQUESTS, text);
        }
        match below {
            "preferences" => return browser::set_preferences(&query, self.is_https()),
            "login" => return self.begin_login(parts, &query, preferences).await,
            "callback" => return self.finish_login(parts, &query, preferences).await,
            _ => {}
        }
        // Keys are for programs; only a session opens pages.
        let caller = match self.caller(&parts.headers).await {
            Ok(caller) => caller,
            Err(problem) => {
                return browser::plain(problem.status, &problem.detail.localize(preferences.lang));
            }
        };
        let session = caller.filter(|caller| matches!(caller.credential, Credential::Session { .. }));
        let Some(caller) = session else {
            return pages::login(below, preferences, &self.gateways.access().login_issuers());
        };
        let (handle, _permit) = match web.start_request(&caller.principal) {
            Ok(started) => started,
            Err(refused) => return refused,
        };
        let context = ConsoleContext { lang: preferences.lang, ..self.context(caller, parts, handle) };
        pages::respond(below, context, preferences).await
    }

    /// Redeems a ticket.
    async fn open(&self, ticket: &str, headers: &HeaderMap, preferences: Preferences) -> Response<Body> {
        match self.sessions.redeem(ticket).await {
            Ok(Some(token)) => {
                let login =
                    LoginEvent { method: "console".to_owned(), accepted: true, reason: None, address: None };
                let event = AuditEvent::now(self.local.id(), AuditAction::Login(login));
                if let Err(error) = self.gateways.hub().record_audit(event).await {
                    let _ = self.sessions.end(token.expose()).await;
                    return browser::plain(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
                }
                let mut response = browser::redirect("../");
                let cookies = PrivateCookies { request: headers, is_https: self.is_https() };
                cookies.set(response.headers_mut(), CookieKind::Session, &token);
                response
            }
            Ok(None) => pages::used_link(preferences),
            Err(error) => browser::plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                &format!("the session cannot be stored: {error}"),
            ),
        }
    }
}

/// A request of the API.
struct ApiRequest<'a, 'w> {
    parts: &'a http::request::Parts,
    body: Body,
    lang: Lang,
    web: &'a WebContext<'w>,
}

impl WebApp for Console {
    fn serves(&self, path: &str) -> bool {
        path == CONSOLE_PATH
            || path.strip_prefix(CONSOLE_PATH).is_some_and(|rest| rest.starts_with('/'))
            || path.starts_with(API_PREFIX)
    }

    fn is_own_host(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        self.host.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name))
    }

    fn loggable_path<'a>(&self, path: &'a str) -> &'a str {
        // A ticket is a secret until it is used. Queries, which may have a code, are not logged.
        let below = path.strip_prefix(CONSOLE_PATH).and_then(|rest| rest.strip_prefix('/'));
        let has_ticket = below.is_some_and(|below| below.starts_with(OPEN_PREFIX));
        if has_ticket { OPEN_PATH_WITHOUT_TICKET } else { path }
    }

    fn respond<'a>(
        &'a self,
        request: Request<Body>,
        context: WebContext<'a>,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(self.handle(request, context))
    }
}

/// Reads a body. Its length counts against the budget of its principal until the permit is dropped.
async fn read_body(
    headers: &HeaderMap,
    body: Body,
    handle: &PrincipalHandle,
) -> Result<(Bytes, Option<BudgetPermit>), Problem> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            LocalizedText::new(
                format!("the body is incomplete, or longer than {MAX_BODY_BYTES} bytes"),
                format!("请求体不完整，或超过 {MAX_BODY_BYTES} 字节"),
            ),
        )
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length = length.unwrap_or(MAX_BODY_BYTES);
    if length > MAX_BODY_BYTES {
        return Err(too_large());
    }
    let permit = handle.take(BudgetedResource::Upload, length).map_err(|_| {
        let detail = LocalizedText::new(
            "too many bytes are being uploaded at the same time (`upload_bytes` in `[serve.limits]`)",
            "同时上传的数据过多（`[serve.limits]` 的 `upload_bytes`）",
        );
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "upload-limit", detail)
    })?;
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok((bytes, Some(permit))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            LocalizedText::new("the body took too long", "接收请求体超时"),
        )),
    }
}

fn problem_response(problem: &Problem, lang: Lang) -> Response<Body> {
    let mut response = route::json_response(problem.status, &problem.body(lang));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolhub\""));
    }
    response
}
