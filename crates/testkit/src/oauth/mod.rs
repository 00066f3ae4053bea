//! A scripted authorization server and the MCP server that it protects, on one loopback port; and a browser that
//! accepts everything. Shares no code with the project's own OAuth implementation.

mod authorization;
mod browser;
mod endpoints;
mod plan;
mod protected;
mod token;

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::authorization::AuthorizationState;
pub use self::authorization::Counts;
pub use self::browser::{BrowserPage, browse};
pub use self::plan::{Iss, OAuthPlan};

/// A running pair of servers, stopped on drop.
#[derive(Debug)]
pub struct OAuthServer {
    /// The protected MCP endpoint, `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    oauth_state: Arc<OAuthState>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all requests.
#[derive(Debug)]
struct OAuthState {
    plan: OAuthPlan,
    /// `http://127.0.0.1:PORT`.
    base: String,
    authorization: Mutex<AuthorizationState>,
}

impl OAuthState {
    fn authorization(&self) -> MutexGuard<'_, AuthorizationState> {
        self.authorization.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn issuer(&self) -> String {
        format!("{}{}", self.base, self.plan.issuer_path)
    }

    fn resource(&self) -> String {
        format!("{}/mcp", self.base)
    }
}

impl OAuthServer {
    /// Starts both on a free port.
    #[must_use]
    pub fn start(plan: OAuthPlan) -> Self {
        let (started, ready) = mpsc::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
                let base = format!("http://{}", listener.local_addr().expect("an address"));
                let authorization = Mutex::new(AuthorizationState::new(&plan));
                let oauth_state = Arc::new(OAuthState { plan, base, authorization });
                started.send(Arc::clone(&oauth_state)).expect("the receiver is alive");
                tokio::select! {
                    () = stopped.cancelled() => {}
                    served = serve(listener, oauth_state) => served.expect("it serves"),
                }
            });
        });
        let oauth_state = ready.recv().expect("the server starts");
        Self { url: oauth_state.resource(), oauth_state, stop, thread: Some(thread) }
    }

    /// The request counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.oauth_state.authorization().counts.clone()
    }

    /// Violations of the specifications by the client; empty for a correct one.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.oauth_state.authorization().violations.clone()
    }

    /// All issued secrets, which must never appear in output.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.oauth_state.authorization().secrets.clone()
    }

    /// The issuer identifier of the authorization server.
    #[must_use]
    pub fn issuer(&self) -> String {
        self.oauth_state.issuer()
    }

    /// Changes the authorization servers that the protected server names.
    pub fn name_issuers(&self, issuers: &[&str]) {
        self.oauth_state.authorization().issuers =
            Some(issuers.iter().map(|&issuer| issuer.to_owned()).collect());
    }

    /// Changes the token endpoint in the metadata.
    pub fn move_tokens_to(&self, endpoint: &str) {
        self.oauth_state.authorization().token_endpoint = Some(endpoint.to_owned());
    }

    /// Expires all access tokens.
    pub fn expire_access(&self) {
        self.oauth_state.authorization().access.clear();
    }

    /// Revokes all tokens.
    pub fn revoke_all(&self) {
        let mut authorization = self.oauth_state.authorization();
        authorization.access.clear();
        authorization.refresh.clear();
    }

    /// Changes the user of the browser, who grants all following logins.
    pub fn log_in_as(&self, user: &str) {
        user.clone_into(&mut self.oauth_state.authorization().user);
    }

    /// The scopes of the last authorization request.
    #[must_use]
    pub fn last_scopes(&self) -> String {
        self.oauth_state.authorization().last_scopes.clone()
    }
}

impl Drop for OAuthServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, oauth_state: Arc<OAuthState>) -> io::Result<()> {
    axum::serve(listener, Router::new().fallback(route).with_state(oauth_state)).await
}

async fn route(
    State(oauth_state): State<Arc<OAuthState>>,
    verb: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path();
    if path == "/mcp" {
        return protected::answer(&oauth_state, &verb, &headers, &body);
    }
    if verb == Method::GET
        && let Some(document) = endpoints::document(&oauth_state, path)
    {
        return document;
    }
    match (verb.as_str(), path) {
        ("GET", "/authorize") => endpoints::authorize(&oauth_state, uri.query().unwrap_or_default()),
        ("POST", "/register") => endpoints::register(&oauth_state, &body),
        ("POST", "/token") => token::answer(&oauth_state, &headers, &body).await,
        ("POST", "/revoke") => token::revoke(&oauth_state, &body),
        _ => endpoints::status(404),
    }
}
