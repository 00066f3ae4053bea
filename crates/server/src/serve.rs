//! The server: accepts connections, serves each in its own task, and shuts down gracefully.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::EventSink;
use toolhub_mcp_gateway::{BudgetLimits, PrincipalTable};

use crate::access::ServerAccess;
use crate::api_app::ApiApp;
use crate::connection::{ConnectionCommand, ConnectionGuard, Connections, MonitoredStream, Timeouts};
use crate::error::ServeError;
use crate::fast_path::{FastPathConnection, FastPathExit};
use crate::io_threads::{ConnectionAffinity, IoThreads};
use crate::service::HubService;
use crate::shared::{HttpServerState, RequestLimits};
use crate::shedding::Admission;
use crate::telemetry::Sampler;
use crate::web_app::WebApp;

/// Pause between attempts to accept while descriptors or memory are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The same after idle connections have been closed, which frees descriptors within milliseconds.
const SHED_RETRY_DELAY: Duration = Duration::from_millis(2);

/// Maximum size of hyper's read and write buffers in bytes, and so of a request head (twice that at most, since the buffer is read
/// once more before it counts as full): a head is buffered before its principal is known.
const MAX_BUFFER_BYTES: usize = 64 << 10;
/// Upper bound for the soft limit of file descriptors that is requested.
#[cfg(unix)]
const MAX_DESCRIPTORS: u64 = 65_536;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address to listen on.
    pub bind: SocketAddr,
    /// The access rules.
    pub access: ServerAccess,
    /// Maximum size of a message in bytes.
    pub body_bytes: usize,
    /// The budgets of a principal.
    pub limits: BudgetLimits,
    /// Maximum number of connections of one address whose first request has not arrived yet.
    pub unproven_connections: usize,
    /// Maximum time without write progress, for a client that does not read a response.
    pub write_timeout: Duration,
    /// Maximum time for receiving the head of a request.
    pub header_timeout: Duration,
    /// Whether the usual POST request is handled without hyper.
    pub fast_path: bool,
    /// Maximum time for requests in progress to finish when the server is stopped.
    pub drain: Duration,
}

impl ServeOptions {
    /// Returns the default options for an address.
    pub fn at(bind: SocketAddr) -> Self {
        Self {
            bind,
            access: ServerAccess::default(),
            body_bytes: 4 << 20,
            limits: BudgetLimits::default(),
            unproven_connections: 512,
            write_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(30),
            fast_path: true,
            drain: Duration::from_secs(10),
        }
    }
}

/// A server that listens on its address.
pub struct HubServer {
    listener: TcpListener,
    shared: HttpServerState,
    connections: Arc<Connections>,
    unproven_connections: usize,
    drain: Duration,
    notice: Duration,
}

impl std::fmt::Debug for HubServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubServer").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl HubServer {
    /// Binds the address. Connections are not accepted before [`Self::run`].
    pub async fn bind(service: Arc<dyn HubService>, options: ServeOptions) -> Result<Self, ServeError> {
        let address = options.bind;
        if !address.ip().is_loopback() && !options.access.authenticator.is_required() {
            return Err(ServeError::TokenRequired(address));
        }
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
        let timeouts = Timeouts { header: options.header_timeout, write: options.write_timeout };
        let connections = Arc::new(Connections::new(timeouts));
        #[cfg(unix)]
        raise_descriptor_limit();
        // The upload budget must have room for at least one message of the maximum size.
        let upload_bytes = options.limits.upload_bytes.max(options.body_bytes);
        let principals = PrincipalTable::new(BudgetLimits { upload_bytes, ..options.limits });
        let limits = RequestLimits { principals, body_bytes: options.body_bytes };
        let mut shared = HttpServerState::new(service, options.access.at(address), limits, &connections);
        shared.fast_path = options.fast_path;
        let unproven_connections = options.unproven_connections.max(1);
        let (drain, notice) = (options.drain, Duration::ZERO);
        Ok(Self { listener, shared, connections, unproven_connections, drain, notice })
    }

    /// Emits an access record of each request to `events`.
    #[must_use]
    pub fn with_events(mut self, events: Arc<dyn EventSink>) -> Self {
        self.shared.events = events;
        self
    }

    /// Serves an API below `/v1`.
    #[must_use]
    pub fn with_api(mut self, app: Arc<dyn ApiApp>) -> Self {
        self.shared.api_app = Some(app);
        self
    }

    /// Hosts a web application beside the gateway.
    #[must_use]
    pub fn with_web_app(mut self, app: Arc<dyn WebApp>) -> Self {
        self.shared.web_app = Some(app);
        self
    }

    /// Assigns requests to traces with this sampler.
    #[must_use]
    pub fn with_sampler(mut self, sampler: Option<Sampler>) -> Self {
        self.shared.sampler = sampler;
        self
    }

    /// Exports a counter of lost records or spans on `/metrics`.
    #[must_use]
    pub fn with_loss_counter(mut self, name: &'static str, count: Arc<AtomicU64>) -> Self {
        self.shared.losses.push((name, count));
        self
    }

    /// Answers new requests with 503 for at least this time before the server ends, so that load balancers notice it. Connections
    /// that nothing accepts any more would be reset, perhaps after their request was sent.
    #[must_use]
    pub fn with_notice(self, notice: Duration) -> Self {
        Self { notice, ..self }
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> Result<SocketAddr, ServeError> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `stop` is cancelled, then finishes the requests in progress, for at most `drain`. `closing` ends
    /// streams that would never end by themselves. Returns a handle to the connections that were still being served when
    /// the time was up.
    pub async fn run(
        self,
        stop: CancellationToken,
        closing: impl Future<Output = ()> + Send + 'static,
    ) -> Result<PendingConnections, ServeError> {
        let Self { listener, shared, connections, unproven_connections, drain, notice } = self;
        let accept = || accept(&listener, &connections, unproven_connections);
        let (shared, tasks) = (Arc::new(shared), TaskTracker::new());
        let serve_connection =
            |(stream, client, guard)| serve_connection(stream, client, Arc::clone(&shared), guard);
        let accepting = async {
            loop {
                let accepted = accept().await;
                tasks.spawn(serve_connection(accepted));
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = connections.enforce_timeouts() => {}
            () = shared.enforce_revocations() => {}
            () = accepting => {}
        }
        // Connections are still accepted while draining, so that clients, probes above all, get a 503 response. They do
        // not delay the end.
        shared.drain();
        tasks.close();
        connections.finish();
        let mut late = JoinSet::new();
        let refusing = async {
            loop {
                let accepted = accept().await;
                while late.try_join_next().is_some() {}
                late.spawn(serve_connection(accepted));
            }
        };
        let for_ever = async {
            closing.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = async { tokio::join!(tasks.wait(), tokio::time::sleep(notice)) } => {}
            () = refusing => {}
            _ = tokio::time::timeout(drain.max(notice), for_ever) => {}
        }
        Ok(PendingConnections { tasks, _io_threads: Arc::clone(&shared.io_threads) })
    }
}

/// Connections that were still being served when the drain time was up. Tasks that they started may run for as long as
/// this is kept.
#[derive(Debug)]
pub struct PendingConnections {
    tasks: TaskTracker,
    _io_threads: Arc<IoThreads>,
}

impl PendingConnections {
    /// Waits until the remaining connections have ended, at most `timeout`.
    pub async fn wait(&self, timeout: Duration) {
        let _ = tokio::time::timeout(timeout, self.tasks.wait()).await;
    }
}

/// Accepts the next connection. It is registered here, before a task is spawned for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
    max_unproven: usize,
) -> (TcpStream, SocketAddr, ConnectionGuard) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let address = client.ip().to_canonical();
                if connections.admit(address, max_unproven, max_connections()) == Admission::Refused {
                    continue;
                }
                // A response is one small write, which Nagle's algorithm must not delay.
                let _ = stream.set_nodelay(true);
                return (stream, client, connections.register(address));
            }
            Err(error) if is_peer_error(&error) => {}
            // Out of descriptors or memory: idle connections are closed to make room for the next one.
            Err(_) => {
                let pause = if connections.shed() > 0 { SHED_RETRY_DELAY } else { ACCEPT_RETRY_DELAY };
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Raises the soft limit of file descriptors to the hard limit: many systems start programs with 1,024, which the
/// connections of a single client can exhaust.
#[cfg(unix)]
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(MAX_DESCRIPTORS, |hard| hard.min(MAX_DESCRIPTORS));
    if limit.current.is_some_and(|soft| soft < most) {
        limit.current = Some(most);
        // If this fails, the server works with fewer connections.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Returns the maximum number of connections. One eighth of the descriptors is left for MCP servers and files. The limit
/// may change at run time.
#[cfg(unix)]
fn max_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit - limit / 8).unwrap_or(usize::MAX)).max(1)
}

#[cfg(not(unix))]
fn max_connections() -> usize {
    usize::MAX
}

/// Returns whether accepting failed because of that one connection, so that the next may succeed.
fn is_peer_error(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

/// Serves a connection on an I/O thread until it ends or should return to the main runtime.
async fn on_io_thread(stream: TcpStream, fast_path: &FastPathConnection<'_>) -> FastPathExit {
    let Some(io_thread) = fast_path.shared.io_threads.register() else {
        return FastPathExit::OtherRuntime(stream);
    };
    let Ok(stream) = stream.into_std() else { return FastPathExit::Closed };
    let (shared, state) = (Arc::clone(fast_path.shared), Arc::clone(fast_path.state));
    let (client, waker) = (fast_path.client, fast_path.waker.clone());
    let serving = async move {
        let Ok(stream) = TcpStream::from_std(stream) else { return FastPathExit::Closed };
        let fast_path = FastPathConnection { shared: &shared, client, state: &state, waker };
        fast_path.serve(stream, ConnectionAffinity::on_io_thread()).await.with(TcpStream::into_std)
    };
    io_thread.run(serving).await.unwrap_or(FastPathExit::Closed).with(TcpStream::from_std)
}

/// Serves one connection until it ends.
async fn serve_connection(
    mut stream: TcpStream,
    client: SocketAddr,
    shared: Arc<HttpServerState>,
    guard: ConnectionGuard,
) {
    let state = &guard.state;
    let fast_path =
        FastPathConnection { shared: &shared, client, state, waker: Waker::from(Arc::clone(state)) };
    let (stream, before) = loop {
        if !shared.fast_path {
            break (stream, Bytes::new());
        }
        let exit = match fast_path.serve(stream, shared.io_threads.initial_affinity()).await {
            FastPathExit::OtherRuntime(stream) => Box::pin(on_io_thread(stream, &fast_path)).await,
            exit => exit,
        };
        match exit {
            FastPathExit::Closed => return,
            FastPathExit::Hyper(stream, before) => break (stream, Bytes::from(before)),
            FastPathExit::OtherRuntime(returned) => stream = returned,
        }
    };
    let stream = TokioIo::new(MonitoredStream { before, stream, state: Arc::clone(state) });
    let service = service_fn(|request| {
        let (shared, active_request, waker) = (Arc::clone(&shared), state.active_request(), &fast_path.waker);
        async move {
            let mut answer = pin!(shared.answer(request, client, active_request));
            let answer = poll_fn(|_| match state.take_woken() {
                true => answer.as_mut().poll(&mut Context::from_waker(waker)),
                false => Poll::Pending,
            });
            Ok::<_, Infallible>(answer.await)
        }
    });
    let mut served =
        pin!(http1::Builder::new().max_buf_size(MAX_BUFFER_BYTES).serve_connection(stream, service));
    let mut finishing = false;
    poll_fn(|context| {
        let command = state.command(context);
        if command == ConnectionCommand::Abort {
            return Poll::Ready(());
        }
        // The result is ignored: each request has been recorded on its own. Bytes that have already arrived are processed
        // before the connection may end.
        let over = served.as_mut().poll(context).map(drop);
        if over.is_ready() || command == ConnectionCommand::Continue || finishing {
            return over;
        }
        finishing = true;
        served.as_mut().graceful_shutdown();
        served.as_mut().poll(context).map(drop)
    })
    .await;
}
