//! A scripted model server over HTTP, in both wire formats, on a free loopback port: returns scripted replies,
//! including malformed ones, and records requests. Shares no code with the project's own client.

mod anthropic;
mod delivery;
mod openai;
mod script;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::delivery::{Guard, deliver};
pub use self::script::{Act, CallStyle, Ending, Pacing, ScriptedReply};

/// Longer than any expected wait of a test.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Method and path.
    pub line: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON, if it is valid.
    pub body: Value,
    /// The body verbatim.
    pub text: String,
}

/// Event counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounters {
    /// Chat requests.
    pub asked: usize,
    /// Clients that disconnected before the response was complete.
    pub disconnected: usize,
}

/// A running scripted model server, stopped on drop.
#[derive(Debug)]
pub struct ModelServer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    server_state: Arc<ServerState>,
    counters: watch::Receiver<RequestCounters>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// How the action for a request is chosen.
enum Acts {
    /// One per request; the last one repeats.
    InOrder(Vec<Act>),
    /// From the body of the request.
    ByRequest(Box<dyn Fn(&Value) -> Act + Send + Sync>),
}

impl Acts {
    fn choose(&self, number: usize, body: &Value) -> Act {
        match self {
            Self::InOrder(acts) => acts.get(number).or(acts.last()).cloned().expect("the script has an act"),
            Self::ByRequest(choose) => choose(body),
        }
    }
}

impl std::fmt::Debug for Acts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InOrder(acts) => f.debug_tuple("InOrder").field(acts).finish(),
            Self::ByRequest(_) => f.write_str("ByRequest"),
        }
    }
}

/// State shared by all requests.
#[derive(Debug)]
struct ServerState {
    acts: Acts,
    models: Vec<String>,
    received: Mutex<Vec<ReceivedRequest>>,
    counters: watch::Sender<RequestCounters>,
}

impl ServerState {
    fn received(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelServer {
    /// Starts a server that performs one action per request; the last one repeats. It lists a model called `scripted`.
    #[must_use]
    pub fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::listing(&["scripted"], acts)
    }

    /// As `start`, listing these models.
    #[must_use]
    pub fn listing(models: &[&str], acts: impl IntoIterator<Item = Act>) -> Self {
        Self::serve(models, Acts::InOrder(acts.into_iter().collect()))
    }

    /// Starts a server that chooses its action from the body of each request, independent of their order.
    #[must_use]
    pub fn by_request(choose: impl Fn(&Value) -> Act + Send + Sync + 'static) -> Self {
        Self::serve(&["scripted"], Acts::ByRequest(Box::new(choose)))
    }

    fn serve(models: &[&str], acts: Acts) -> Self {
        let (sender, counters) = watch::channel(RequestCounters::default());
        let server_state = Arc::new(ServerState {
            acts,
            models: models.iter().map(|name| (*name).to_owned()).collect(),
            received: Mutex::default(),
            counters: sender,
        });
        let (started, ready) = mpsc::channel();
        let stop = CancellationToken::new();
        let (stopped, shared) = (stop.clone(), Arc::clone(&server_state));
        // On its own runtime: a test may pause the clock of its own.
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
                started.send(listener.local_addr().expect("an address")).expect("the receiver is alive");
                let app = Router::new().fallback(route).with_state(shared);
                tokio::select! {
                    () = stopped.cancelled() => {}
                    served = async { axum::serve(listener.tap_io(|stream| _ = stream.set_nodelay(true)), app).await } => served.expect("it serves"),
                }
            });
        });
        let address = ready.recv().expect("the server starts");
        Self { url: format!("http://{address}"), server_state, counters, stop, thread: Some(thread) }
    }

    /// The requests so far, including those for the model list.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.server_state.received().clone()
    }

    /// The bodies of the chat requests, in order.
    #[must_use]
    pub fn bodies(&self) -> Vec<Value> {
        let received = self.server_state.received();
        received.iter().filter(|one| one.line.starts_with("POST")).map(|one| one.body.clone()).collect()
    }

    /// Waits until `enough` is true, in real time even if the test's clock is paused.
    pub async fn wait_for(
        &self,
        enough: impl Fn(&RequestCounters) -> bool + Send + 'static,
    ) -> RequestCounters {
        let mut counters = self.counters.clone();
        let waiting = tokio::task::spawn_blocking(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let waited = tokio::time::timeout(WAIT_TIMEOUT, counters.wait_for(|now| enough(now))).await;
                *waited.expect("it happens in time").expect("the server lives")
            })
        });
        waiting.await.expect("waiting does not panic")
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    OpenAi,
    Anthropic,
}

async fn route(
    State(server_state): State<Arc<ServerState>>,
    verb: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let text = String::from_utf8_lossy(&body).into_owned();
    let line = format!("{verb} {uri}");
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    server_state.received().push(ReceivedRequest { line, headers, body: body.clone(), text });
    let wire = match (verb.as_str(), uri.path()) {
        ("POST", path) if path.ends_with("/chat/completions") => Wire::OpenAi,
        ("POST", path) if path.ends_with("/v1/messages") => Wire::Anthropic,
        ("GET", path) if path.ends_with("/models") => return models(&server_state),
        _ => return plain(404, "application/json", "{\"error\":{\"message\":\"no such path\"}}"),
    };
    let mut number = 0;
    server_state.counters.send_modify(|counters| {
        number = counters.asked;
        counters.asked += 1;
    });
    let guard = Guard::new(Arc::clone(&server_state));
    match server_state.acts.choose(number, &body) {
        Act::Reply(reply) => {
            let (kind, body) = match (wire, reply.whole) {
                (Wire::OpenAi, false) => ("text/event-stream", openai::stream(&reply)),
                (Wire::OpenAi, true) => ("application/json", openai::whole(&reply)),
                (Wire::Anthropic, false) => ("text/event-stream", anthropic::stream(&reply)),
                (Wire::Anthropic, true) => ("application/json", anthropic::whole(&reply)),
            };
            let body = deliver(body, reply.pacing, reply.ending, guard);
            Response::builder().header("content-type", kind).body(body).expect("a response")
        }
        Act::Raw { kind, body, ending } => {
            let body = deliver(body, Pacing::AtOnce, ending, guard);
            Response::builder().header("content-type", kind).body(body).expect("a response")
        }
        Act::Status { status, headers, body } => {
            guard.complete();
            let mut response = plain(status, "application/json", &body);
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().expect("a header"));
            }
            response
        }
        Act::Hang => {
            std::future::pending::<()>().await;
            drop(guard);
            unreachable!("pending never ends")
        }
    }
}

fn models(server_state: &ServerState) -> Response<Body> {
    let data: Vec<Value> =
        server_state.models.iter().map(|id| json!({"id": id, "object": "model", "type": "model"})).collect();
    plain(200, "application/json", &json!({"object": "list", "data": data}).to_string())
}

fn plain(status: u16, kind: &str, body: &str) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", kind);
    response.body(Body::from(body.to_owned())).expect("a response")
}
