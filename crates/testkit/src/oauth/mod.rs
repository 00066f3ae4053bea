//! A scripted authorization server and the MCP server that it protects, on one loopback port; and a browser that
//! accepts everything. Shares no code with the project's own OAuth implementation.

mod answers;
mod browser;
mod ledger;
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

pub use self::browser::{Visited, browse};
pub use self::ledger::Counts;
use self::ledger::Ledger;
pub use self::plan::{Iss, OAuthPlan};

/// A running pair of servers, stopped on drop.
#[derive(Debug)]
pub struct OAuthServer {
    /// The protected MCP endpoint, `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    stage: Arc<Stage>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all requests.
#[derive(Debug)]
struct Stage {
    plan: OAuthPlan,
    /// `http://127.0.0.1:PORT`.
    base: String,
    ledger: Mutex<Ledger>,
}

impl Stage {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
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
                let ledger = Mutex::new(Ledger::new(&plan));
                let stage = Arc::new(Stage { plan, base, ledger });
                started.send(Arc::clone(&stage)).expect("somebody waits");
                tokio::select! {
                    () = stopped.cancelled() => {}
                    served = serve(listener, stage) => served.expect("it serves"),
                }
            });
        });
        let stage = ready.recv().expect("the server starts");
        Self { url: stage.resource(), stage, stop, thread: Some(thread) }
    }

    /// The request counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.stage.ledger().counts.clone()
    }

    /// Violations of the specifications by the client; empty for a correct one.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        self.stage.ledger().complaints.clone()
    }

    /// All issued secrets, which must never appear in output.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.stage.ledger().secrets.clone()
    }

    /// The issuer identifier of the authorization server.
    #[must_use]
    pub fn issuer(&self) -> String {
        self.stage.issuer()
    }

    /// Changes the authorization servers that the protected server names.
    pub fn name_issuers(&self, issuers: &[&str]) {
        self.stage.ledger().issuers = Some(issuers.iter().map(|&issuer| issuer.to_owned()).collect());
    }

    /// Changes the token endpoint in the metadata.
    pub fn move_tokens_to(&self, endpoint: &str) {
        self.stage.ledger().token_endpoint = Some(endpoint.to_owned());
    }

    /// Expires all access tokens.
    pub fn expire_access(&self) {
        self.stage.ledger().access.clear();
    }

    /// Revokes all tokens.
    pub fn revoke_all(&self) {
        let mut ledger = self.stage.ledger();
        ledger.access.clear();
        ledger.refresh.clear();
    }

    /// The scopes of the last authorization request.
    #[must_use]
    pub fn last_scopes(&self) -> String {
        self.stage.ledger().last_scopes.clone()
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

async fn serve(listener: TcpListener, stage: Arc<Stage>) -> io::Result<()> {
    axum::serve(listener, Router::new().fallback(route).with_state(stage)).await
}

async fn route(
    State(stage): State<Arc<Stage>>,
    verb: Method,
    uri: Uri,
    (headers, body): (HeaderMap, Bytes),
) -> Response {
    let path = uri.path();
    if path == "/mcp" {
        return protected::answer(&stage, &verb, &headers, &body);
    }
    if verb == Method::GET
        && let Some(document) = answers::document(&stage, path)
    {
        return document;
    }
    match (verb.as_str(), path) {
        ("GET", "/authorize") => answers::authorize(&stage, uri.query().unwrap_or_default()),
        ("POST", "/register") => answers::register(&stage, &body),
        ("POST", "/token") => token::answer(&stage, &headers, &body).await,
        ("POST", "/revoke") => token::revoke(&stage, &body),
        _ => answers::status(404),
    }
}
