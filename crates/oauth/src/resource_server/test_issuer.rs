//! A small issuer on a loopback port with metadata, keys and introspection; a clock that tests advance; and a verifier with both.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::Secret;
use url::form_urlencoded::parse;

use super::clock::Clock;
use super::settings::{IntrospectionClient, ResourceServer, TrustedIssuer};
use super::test_keys::{TestKey, merge};
use super::token_error::TokenErrorKind;
use super::verifier::{TokenVerifier, VerifiedToken};

pub(super) const HUB: &str = "https://hub.example";
pub(super) const AUDIENCE: &str = "https://hub.example/mcp/office";

/// A clock that stands still until it is advanced.
pub(super) struct TestClock {
    start: Instant,
    passed: Mutex<Duration>,
    /// How far the wall clock was set forward.
    set: Mutex<Duration>,
}

impl TestClock {
    pub(super) fn advance(&self, seconds: u64) {
        *self.passed.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// Sets the wall clock forward.
    pub(super) fn set_forward(&self, seconds: u64) {
        *self.set.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// The wall time in seconds.
    pub(super) fn now(&self) -> u64 {
        self.wall_time().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }
}

impl Clock for TestClock {
    fn wall_time(&self) -> SystemTime {
        UNIX_EPOCH
            + Duration::from_secs(1_800_000_000)
            + *self.passed.lock().unwrap()
            + *self.set.lock().unwrap()
    }

    fn monotonic(&self) -> Instant {
        self.start + *self.passed.lock().unwrap()
    }
}

/// What the issuer serves, and what it has received.
#[derive(Default)]
pub(super) struct IssuerState {
    /// The key set.
    pub(super) keys: Vec<Value>,
    /// Changes to the metadata.
    pub(super) metadata: Value,
    /// Whether connections are closed without a response.
    pub(super) is_away: bool,
    /// Delay of every response.
    pub(super) delay: Duration,
    /// Redirects by path, with their status.
    pub(super) redirects: HashMap<&'static str, (u16, String)>,
    /// Introspection responses by token; others are inactive.
    pub(super) tokens: HashMap<String, Value>,
    /// The status of introspection responses, if not 200.
    pub(super) introspection_status: Option<u16>,
    /// Connections, also those that were closed without a response.
    pub(super) connections: usize,
    /// Requests of the key set.
    pub(super) key_requests: usize,
    /// Introspection requests: the header `Authorization` and the form.
    pub(super) introspections: Vec<(String, Vec<(String, String)>)>,
    /// The ID token of token responses.
    pub(super) id_token: String,
    /// Token requests: the header `Authorization` and the form.
    pub(super) token_requests: Vec<(String, Vec<(String, String)>)>,
    /// Paths that are none of the issuer's.
    pub(super) unexpected: Vec<String>,
}

/// A running issuer, stopped on drop.
pub(super) struct TestIssuer {
    pub(super) url: String,
    state: Arc<Mutex<IssuerState>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl TestIssuer {
    pub(super) fn start() -> Self {
        let state = Arc::new(Mutex::new(IssuerState { metadata: json!({}), ..IssuerState::default() }));
        let (stop, (sender, receiver)) = (CancellationToken::new(), mpsc::channel());
        let (served, stopped) = (Arc::clone(&state), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let url = format!("http://{}/realm", listener.local_addr().unwrap());
                sender.send(url.clone()).unwrap();
                let tasks = TaskTracker::new();
                while let Some(Ok((stream, _))) = stopped.run_until_cancelled(listener.accept()).await {
                    tasks.spawn(serve(stream, Arc::clone(&served), url.clone()));
                }
            });
        });
        Self { url: receiver.recv().unwrap(), state, stop, thread: Some(thread) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, IssuerState> {
        self.state.lock().unwrap()
    }
}

impl Drop for TestIssuer {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Answers one request.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<IssuerState>>, issuer: String) {
    let (delay, is_away) = {
        let mut state = state.lock().unwrap();
        state.connections += 1;
        (state.delay, state.is_away)
    };
    if is_away {
        return;
    }
    let Some(request) = read_request(&mut stream).await else { return };
    let (status, body) = respond(&mut state.lock().unwrap(), &issuer, &request);
    let location = if (300..400).contains(&status) { format!("location: {body}\r\n") } else { String::new() };
    tokio::time::sleep(delay).await;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{location}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

struct Request {
    path: String,
    authorization: String,
    form: Vec<(String, String)>,
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut received = Vec::new();
    loop {
        if stream.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8(received.clone()).ok()?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let found = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        if body.len() < header("content-length").map_or(0, |length| length.parse().unwrap()) {
            continue;
        }
        let form = parse(body.as_bytes()).into_owned().collect();
        let path = head.split(' ').nth(1)?.to_owned();
        return Some(Request { path, authorization: header("authorization").unwrap_or_default(), form });
    }
}

fn respond(state: &mut IssuerState, issuer: &str, request: &Request) -> (u16, String) {
    let Request { path, authorization, form } = request;
    if let Some(redirect) = state.redirects.get(path.as_str()) {
        return redirect.clone();
    }
    match path.as_str() {
        "/realm/.well-known/openid-configuration" => {
            let document = json!({
                "issuer": issuer,
                "jwks_uri": format!("{issuer}/keys"),
                "introspection_endpoint": format!("{issuer}/introspect"),
                "authorization_endpoint": format!("{issuer}/auth?tenant=1"),
                "token_endpoint": format!("{issuer}/token"),
            });
            (200, merge(&document, &state.metadata).to_string())
        }
        "/realm/keys" => {
            state.key_requests += 1;
            (200, json!({"keys": state.keys}).to_string())
        }
        "/realm/token" => {
            state.token_requests.push((authorization.clone(), form.clone()));
            let body = json!({"access_token": "a", "token_type": "Bearer", "id_token": state.id_token});
            (200, body.to_string())
        }
        "/realm/introspect" => {
            state.introspections.push((authorization.clone(), form.clone()));
            let token = form.iter().find(|(name, _)| name == "token").map(|(_, token)| token.as_str());
            let answer = token.and_then(|token| state.tokens.get(token)).cloned();
            (
                state.introspection_status.unwrap_or(200),
                answer.unwrap_or(json!({"active": false})).to_string(),
            )
        }
        path if path.starts_with("/.well-known/") => (404, String::new()),
        other => {
            state.unexpected.push(other.to_owned());
            (404, String::new())
        }
    }
}

/// An issuer with one Ed25519 key, and a verifier that trusts it.
pub(super) struct Fixture {
    pub(super) issuer: TestIssuer,
    pub(super) clock: Arc<TestClock>,
    pub(super) key: TestKey,
    pub(super) tasks: TaskTracker,
    pub(super) verifier: TokenVerifier,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with_settings(|_| {})
    }

    /// Verifies by introspection.
    pub(super) fn with_introspection() -> Self {
        Self::with_settings(|issuer| {
            issuer.introspection = Some(IntrospectionClient {
                client_id: "hub:1".to_owned(),
                client_secret: Secret::new("se cret%"),
                endpoint: None,
            });
        })
    }

    pub(super) fn with_settings(change: impl FnOnce(&mut TrustedIssuer)) -> Self {
        let issuer = TestIssuer::start();
        let key = TestKey::ed25519("one");
        issuer.state().keys = vec![key.jwk()];
        let mut settings = TrustedIssuer::new(&issuer.url);
        change(&mut settings);
        let clock =
            Arc::new(TestClock { start: Instant::now(), passed: Mutex::default(), set: Mutex::default() });
        let tasks = TaskTracker::new();
        let settings = ResourceServer { resource: HUB.to_owned(), issuers: vec![settings] };
        let verifier =
            TokenVerifier::with_clock(&settings, &tasks, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        Self { issuer, clock, key, tasks, verifier }
    }

    /// The claims of a valid token, which lives for ten minutes, with changes.
    pub(super) fn claims(&self, changes: &Value) -> Value {
        let now = self.clock.now();
        let claims = json!({
            "iss": self.issuer.url, "aud": [AUDIENCE], "sub": "ann", "client_id": "editor", "scope": "tools",
            "iat": now, "exp": now + 600, "jti": "1",
        });
        merge(&claims, changes)
    }

    /// A valid token.
    pub(super) fn token(&self) -> String {
        self.key.sign(&self.claims(&json!({})))
    }

    pub(super) async fn verify(&self, token: &str) -> Result<VerifiedToken, TokenErrorKind> {
        self.verifier.verify(token, AUDIENCE).await.map_err(|error| error.kind)
    }

    /// Asserts that a token is refused for this reason.
    pub(super) async fn assert_refused(&self, token: &str, kind: TokenErrorKind) {
        assert_eq!(self.verify(token).await.map(drop), Err(kind), "{token}");
    }

    /// Asserts that a token is accepted.
    pub(super) async fn assert_accepted(&self, token: &str) {
        assert_eq!(self.verify(token).await.map(drop), Ok(()), "{token}");
    }

    /// Waits until fetches in the background have ended.
    pub(super) async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}
