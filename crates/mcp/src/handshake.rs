//! Meeting a server: finding out which era it speaks, and opening a connection in it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;
use toolhub_core::lang::{Lang, Say as _, Text};
use toolhub_core::{BoxFuture, RawJson};

use crate::config::{HttpSpec, Permitted, ServerSpec, StdioSpec, TransportSpec};
use crate::connection::{Ask, Channel, Connection, Greeting};
use crate::era::{Era, LEGACY, MODERN, UNSUPPORTED_VERSION, is_modern_error};
use crate::error::McpError;
use crate::initialize::{discover, hello, modern_meta, offered, supported};
use crate::oauth::Authorizer;
use crate::relay::{Dialed, Dialer, Hello};
use crate::server_requests::ServerRequests;
use crate::transport::http::Http;
use crate::transport::relay::{self, NoLink, Relayed};
use crate::transport::sse::Sse;
use crate::transport::stdio::Stdio;
use crate::transport::{Inbox, OutgoingRequest, Repeat, StderrRing, Transport};

/// How long the probe alone is waited for before a `ping` follows it.
const PROBE_ALONE: Duration = Duration::from_secs(1);
/// How long after the answer to a later request the answer to the probe may still come.
const STRAGGLING: Duration = Duration::from_millis(500);

/// Whom to meet, and what is known of them.
pub(crate) struct Connector<'a> {
    pub(crate) spec: &'a ServerSpec,
    /// Opens links to hubs that run already.
    pub(crate) relay: Option<&'a dyn Dialer>,
    /// What it spoke last time.
    pub(crate) known: Option<Era>,
    pub(crate) server_requests: Arc<ServerRequests>,
    /// Has the tokens that an HTTP server may want.
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) tasks: &'a TaskTracker,
    /// Where the last words of a child can be read while it is being met.
    pub(crate) stderr: &'a Mutex<StderrRing>,
    /// Whether to listen to what the server says unasked.
    pub(crate) listen: bool,
    /// How long connecting may take.
    pub(crate) patience: Duration,
}

/// What the modern probe tells.
enum Probe {
    Modern(Greeting),
    /// It answered, and not as a modern server does.
    Legacy,
    /// It did not answer, or ended.
    Silent(McpError),
}

impl Connector<'_> {
    /// Connects. The caller sets the deadline.
    pub(crate) async fn open(&self) -> Result<Connection, McpError> {
        if let Some(connection) = self.open_relayed().await? {
            return Ok(connection);
        }
        let opened = match &self.spec.transport {
            TransportSpec::Stdio(spec) => self.open_stdio(spec).await,
            TransportSpec::Http(spec) => self.open_http(&spec.permitted(&self.spec.consent)?).await,
            TransportSpec::Sse(spec) => self.open_sse(&spec.permitted(&self.spec.consent)?).await,
        };
        opened.map_err(|error| self.blame_the_setting(error))
    }

    /// Uses the connection of a hub that runs already, if it would connect in the same way; `None` if there is none. A server
    /// that may not be started here is not used there either.
    async fn open_relayed(&self) -> Result<Option<Connection>, McpError> {
        let Some(dialer) = self.relay else { return Ok(None) };
        let Ok(identity) = self.spec.launch_identity() else { return Ok(None) };
        let server = &self.spec.id;
        for Dialed { stream, secret } in dialer.dial().await {
            let hello = Hello::new(&secret, server.as_str(), identity.clone());
            match relay::open(stream, &hello, server).await {
                Ok(link) => {
                    self.server_requests.note_relay(Text::new(
                        "uses the connection of the running `toolhub serve`",
                        "使用正在运行的 `toolhub serve` 的连接",
                    ));
                    let greeting = link.greeting.clone();
                    let relayed = Relayed::new(link, server.clone(), self.inbox(), self.tasks);
                    let channel = Channel::new(Box::new(relayed), &self.server_requests);
                    return Ok(Some(self.greeted(channel, greeting, StderrRing::default())));
                }
                Err(NoLink::Failed(error)) => return Err(error),
                Err(NoLink::Unusable(why)) => {
                    let why = |lang| why.say(lang);
                    self.server_requests.note_relay(Text::new(
                        format!("does not use the running `toolhub serve`: {}", why(Lang::En)),
                        format!("不使用正在运行的 `toolhub serve`：{}", why(Lang::Zh)),
                    ));
                }
            }
        }
        Ok(None)
    }

    /// Who is met in one era only, and answers as if they knew nothing of it, may well be of the other one.
    fn blame_the_setting(&self, error: McpError) -> McpError {
        let odd = matches!(
            error,
            McpError::Rpc { .. }
                | McpError::Unreadable { .. }
                | McpError::TooDeep { .. }
                | McpError::Http { status: 400 | 404 | 405, .. }
        );
        match self.spec.era {
            Some(era) if odd => McpError::hopeless(Text::new(
                format!("it was met with `era = \"{era}\"`, which it may not speak: {error}"),
                format!("按 `era = \"{era}\"` 连接，但它可能不支持：{error}"),
            )),
            _ => error,
        }
    }

    fn inbox(&self) -> Arc<dyn Inbox> {
        Arc::clone(&self.server_requests) as Arc<dyn Inbox>
    }

    fn greeted(&self, channel: Channel, greeting: Greeting, stderr: StderrRing) -> Connection {
        Connection::new(channel, greeting, stderr, Arc::clone(&self.server_requests))
    }

    /// Greets a server as a modern one. Who refuses our version and offers it in the same breath is asked once more.
    async fn discover(&self, channel: &Channel) -> Result<Greeting, McpError> {
        let found = discover(channel, &self.server_requests).await;
        match &found {
            Err(McpError::Rpc { code: UNSUPPORTED_VERSION, data, .. })
                if offered(data.as_ref(), &MODERN).is_some() =>
            {
                discover(channel, &self.server_requests).await
            }
            _ => found,
        }
    }

    /// Asks whether the server is modern. An error that only a modern server gives is its last word, unless it
    /// offers a legacy version with it.
    async fn probe(&self, channel: &Channel) -> Result<Probe, McpError> {
        match self.discover(channel).await {
            Ok(greeting) => Ok(Probe::Modern(greeting)),
            Err(McpError::Rpc { code, message, data }) if is_modern_error(code) => {
                if offered(data.as_ref(), &LEGACY).is_some() {
                    return Ok(Probe::Legacy);
                }
                let message = match supported(data.as_ref()) {
                    theirs if theirs.is_empty() => message,
                    theirs => format!("{message}: it speaks {}", theirs.join(", ")),
                };
                Err(McpError::Rpc { code, message, data })
            }
            Err(error @ (McpError::Lost { .. } | McpError::Connect { .. } | McpError::TimedOut(_))) => {
                Ok(Probe::Silent(error))
            }
            // Whoever is not let in as a stranger will not be let in by the other door.
            Err(
                error @ (McpError::Http { status: 401 | 403 | 429 | 503, .. } | McpError::LoginNeeded { .. }),
            ) => Err(error),
            Err(_) => Ok(Probe::Legacy),
        }
    }

    /// stdio (2026-07-28, transports/stdio: backward compatibility): probe, and fall back to `initialize`. Where
    /// the probe got no answer the child is started anew, since some end on what they do not know.
    async fn open_stdio(&self, spec: &StdioSpec) -> Result<Connection, McpError> {
        if let Some(era) = self.spec.era {
            let (channel, stderr) = self.start(spec)?;
            let greeting = match era {
                Era::Modern => self.discover(&channel).await?,
                Era::Legacy => self.initialize(&channel).await?,
            };
            return Ok(self.greeted(channel, greeting, stderr));
        }
        if self.known != Some(Era::Legacy) {
            let (channel, stderr) = self.start(spec)?;
            if let Some(greeting) = self.greet_child(&channel).await? {
                return Ok(self.greeted(channel, greeting, stderr));
            }
        }
        let (channel, stderr) = self.start(spec)?;
        match self.initialize_or_discover(&channel).await {
            Ok(greeting) => Ok(self.greeted(channel, greeting, stderr)),
            // Slow to start and modern, or no longer as old as it was: ask once more, with all the time left.
            Err(McpError::Rpc { .. }) => {
                let (channel, stderr) = self.start(spec)?;
                let greeting = discover(&channel, &self.server_requests).await?;
                Ok(self.greeted(channel, greeting, stderr))
            }
            Err(error) => Err(error),
        }
    }

    /// Greets a child of an unknown era: with the probe, and a `ping` behind it after a moment. Some legacy servers never
    /// answer what they do not know; but every server answers a ping, if only with an error, also before it is greeted. So
    /// one that answers the ping and not the probe is probably legacy, and one that answers neither is still starting, for
    /// half of the time that connecting may take. After either, `initialize` follows, and the first of both to be answered
    /// counts: a process that lives is not started again, since first runs of `npx` and `uvx` take their time. The ping says
    /// that it is of the modern era: servers of both eras would take one that does not for a legacy client's.
    ///
    /// `None` if the child ended: it has to be started again.
    async fn greet_child(&self, channel: &Channel) -> Result<Option<Greeting>, McpError> {
        let probe = self.probe(channel);
        let ping = async {
            tokio::time::sleep(PROBE_ALONE).await;
            let ping = Ask { method: "ping".into(), repeat: Repeat::Safe, ..Ask::default() };
            match channel.ask(&ping, modern_meta(&self.server_requests)).await {
                Ok(_) | Err(McpError::Rpc { .. }) => tokio::time::sleep(STRAGGLING).await,
                // The probe fails in the same way.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::pin!(probe);
        let (probed, doubtful) = tokio::select! {
            biased;
            probed = &mut probe => (Some(probed?), false),
            () = ping => (None, false),
            () = tokio::time::sleep(self.patience / 2) => (None, true),
        };
        let refused = match probed {
            Some(Probe::Modern(greeting)) => return Ok(Some(greeting)),
            Some(Probe::Silent(_)) => return Ok(None),
            Some(Probe::Legacy) => self.initialize_or_discover(channel).await,
            None => self.initialize_beside(&mut probe, channel, doubtful).await,
        };
        match refused {
            Ok(greeting) => Ok(Some(greeting)),
            Err(McpError::Lost { .. } | McpError::Connect { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends `initialize` while the probe is still unanswered. A late answer to the probe counts as one in time does. An era
    /// that is doubtful is determined anew at the next start.
    async fn initialize_beside(
        &self,
        mut probe: impl Future<Output = Result<Probe, McpError>> + Unpin,
        channel: &Channel,
        doubtful: bool,
    ) -> Result<Greeting, McpError> {
        // `initialized` is sent once it is certain that no modern answer came first.
        let hello = hello(channel, &self.server_requests);
        tokio::pin!(hello);
        let answered = tokio::select! {
            biased;
            probed = &mut probe => match probed? {
                Probe::Modern(greeting) => return Ok(greeting),
                Probe::Legacy => hello.await.map(|greeting| (greeting, false)),
                Probe::Silent(error) => return Err(error),
            },
            answered = &mut hello => answered.map(|greeting| (greeting, doubtful)),
        };
        match answered {
            Ok((greeting, doubtful)) => {
                channel.notify("notifications/initialized").await?;
                Ok(Greeting { doubtful, ..greeting })
            }
            Err(error) => self.discover_instead(channel, error).await,
        }
    }

    /// Greets a server as a legacy one; one that refuses and names a modern version is greeted as a modern one.
    async fn initialize_or_discover(&self, channel: &Channel) -> Result<Greeting, McpError> {
        match self.initialize(channel).await {
            Ok(greeting) => Ok(greeting),
            Err(error) => self.discover_instead(channel, error).await,
        }
    }

    /// Greets a server as a modern one that refused `initialize`, if it names a modern version with the refusal.
    async fn discover_instead(&self, channel: &Channel, refusal: McpError) -> Result<Greeting, McpError> {
        match &refusal {
            McpError::Rpc { data, .. } if offered(data.as_ref(), &MODERN).is_some() => {
                discover(channel, &self.server_requests).await
            }
            _ => Err(refusal),
        }
    }

    fn start(&self, spec: &StdioSpec) -> Result<(Channel, StderrRing), McpError> {
        // Each start is checked: the files may have changed since the last one.
        let stdio = Stdio::start(&spec.permitted(&self.spec.consent)?, self.inbox(), self.tasks)?;
        let stderr = stdio.stderr.clone();
        *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = stderr.clone();
        Ok((Channel::new(Box::new(stdio), &self.server_requests), stderr))
    }

    async fn initialize(&self, channel: &Channel) -> Result<Greeting, McpError> {
        let greeting = hello(channel, &self.server_requests).await?;
        channel.notify("notifications/initialized").await?;
        Ok(greeting)
    }

    /// HTTP (2026-07-28, transports/streamable-http: backward compatibility): modern, then `initialize`, then the
    /// old transport.
    async fn open_http(&self, spec: &Permitted<HttpSpec>) -> Result<Connection, McpError> {
        let http = Arc::new(Http::new(spec, self.authorizer.clone(), self.inbox(), self.tasks)?);
        let channel = Channel::new(Box::new(SharedHttp(Arc::clone(&http))), &self.server_requests);
        if self.spec.era == Some(Era::Modern) {
            http.speak(MODERN.first().copied());
            let greeting = self.discover(&channel).await?;
            return Ok(self.greeted(channel, greeting, StderrRing::default()));
        }
        if self.spec.era.or(self.known) != Some(Era::Legacy) {
            http.speak(MODERN.first().copied());
            match self.probe(&channel).await? {
                Probe::Modern(greeting) => {
                    http.speak(Some(&greeting.version));
                    return Ok(self.greeted(channel, greeting, StderrRing::default()));
                }
                Probe::Silent(error @ McpError::Connect { .. }) => return Err(error),
                Probe::Legacy | Probe::Silent(_) => http.speak(None),
            }
        }
        let refused = match self.initialize_http(&channel, &http).await {
            Ok(greeting) => return Ok(self.greeted(channel, greeting, StderrRing::default())),
            Err(error) => error,
        };
        match refused {
            McpError::Rpc { ref data, .. }
                if self.spec.era.is_none()
                    && (self.known.is_some() || offered(data.as_ref(), &MODERN).is_some()) =>
            {
                http.speak(MODERN.first().copied());
                let greeting = discover(&channel, &self.server_requests).await?;
                Ok(self.greeted(channel, greeting, StderrRing::default()))
            }
            McpError::Http { status: 400 | 404 | 405, .. } => {
                // Its own words are the better ones where the old transport is not there either.
                self.open_sse(spec).await.map_err(|error| match error {
                    McpError::LoginNeeded { .. } => error,
                    _ => refused,
                })
            }
            error => Err(error),
        }
    }

    async fn initialize_http(&self, channel: &Channel, http: &Arc<Http>) -> Result<Greeting, McpError> {
        let greeting = hello(channel, &self.server_requests).await?;
        http.speak(Some(&greeting.version));
        if http.has_session() {
            self.server_requests.in_flight.join_session();
        }
        channel.notify("notifications/initialized").await?;
        if self.listen {
            http.listen();
        }
        Ok(greeting)
    }

    /// The old HTTP+SSE (2024-11-05), which only legacy servers speak.
    async fn open_sse(&self, spec: &Permitted<HttpSpec>) -> Result<Connection, McpError> {
        if self.spec.era == Some(Era::Modern) {
            return Err(McpError::hopeless(Text::new(
                "nobody is modern over `sse`: take `era = \"modern\"` away, or use `\"type\": \"http\"`",
                "`sse` 没有 modern 版本：请去掉 `era = \"modern\"`，或改用 `\"type\": \"http\"`",
            )));
        }
        let sse = Sse::open(spec, self.authorizer.clone(), self.inbox(), self.tasks).await?;
        // Its stream is the session.
        self.server_requests.in_flight.join_session();
        let channel = Channel::new(Box::new(sse), &self.server_requests);
        let greeting = self.initialize(&channel).await?;
        Ok(self.greeted(channel, greeting, StderrRing::default()))
    }
}

/// The handshake needs the transport beside the channel that owns it, to tell it the version.
struct SharedHttp(Arc<Http>);

impl Drop for SharedHttp {
    fn drop(&mut self) {
        self.0.end_session();
    }
}

impl Transport for SharedHttp {
    fn request<'a>(&'a self, request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        self.0.request(request)
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        self.0.notify(body)
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }
}
