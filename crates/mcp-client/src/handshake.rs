//! Connects to a server: detects its protocol era and opens a connection.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_client_config::{HttpSpec, StdioSpec, TransportSpec};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{BoxFuture, RawJson};
use toolhub_mcp_wire::era::{LEGACY, MODERN, UNSUPPORTED_VERSION, is_modern_error};
use toolhub_mcp_wire::{Era, McpError};
use toolhub_oauth::Authorizer;

use crate::config::{NeedsConsent as _, PermittedSpec, ServerSpec, permitted_stdio};
use crate::connection::{Channel, Connection, McpRequest, ServerInfo};
use crate::initialize::{find_supported, modern_meta, send_discover, send_initialize, supported_versions};
use crate::relay::{Dialer, Hello, HubStream};
use crate::remote::{RemoteInbox, RemoteServers};
use crate::server_requests::ServerRequests;
use crate::transport::http::Http;
use crate::transport::relay::{self, LinkError, RelayTransport};
use crate::transport::remote::RemoteTransport;
use crate::transport::sse::Sse;
use crate::transport::stdio::Stdio;
use crate::transport::{OutgoingRequest, Repeat, ServerMessageHandler, StderrRing, Transport};

/// How long to wait for the probe before a `ping` is sent too.
const PING_DELAY: Duration = Duration::from_secs(1);
/// How long to wait for the answer to the probe after a later request has been answered.
const LATE_PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The parameters of a connection attempt.
pub(crate) struct Connector<'a> {
    pub(crate) spec: &'a ServerSpec,
    /// Dials hubs that are already running.
    pub(crate) relay: Option<&'a dyn Dialer>,
    /// Connects to servers that other processes of a cluster run.
    pub(crate) remote: Option<&'a dyn RemoteServers>,
    /// Of an instance of a caller: a digest of the caller.
    pub(crate) owner: Option<&'a str>,
    /// Cancelled if its process is to be killed.
    pub(crate) killed: &'a CancellationToken,
    /// The era detected last time.
    pub(crate) known_era: Option<Era>,
    pub(crate) server_requests: Arc<ServerRequests>,
    /// Provides access tokens for HTTP servers.
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) tasks: &'a TaskTracker,
    /// Set to the stderr buffer of the child during the handshake.
    pub(crate) stderr: &'a Mutex<StderrRing>,
    /// Whether to keep a stream open for unsolicited messages of the server.
    pub(crate) listen: bool,
    /// The connect timeout.
    pub(crate) timeout: Duration,
}

/// The result of the modern probe.
enum Probe {
    Modern(ServerInfo),
    /// It answered, but not as a modern server.
    Legacy,
    /// It did not answer, or exited.
    Silent(McpError),
}

impl Connector<'_> {
    /// Connects. The caller applies the timeout.
    pub(crate) async fn open(&self) -> Result<Connection, McpError> {
        if let Some(remote) = self.remote.filter(|remote| remote.runs(self.spec)) {
            return self.open_remote(remote).await;
        }
        if let Some(connection) = self.open_relayed().await? {
            return Ok(connection);
        }
        let opened = match &self.spec.transport {
            TransportSpec::Stdio(spec) => self.open_stdio(spec).await,
            TransportSpec::Http(spec) => self.open_http(&spec.permitted(&self.spec.consent)?).await,
            TransportSpec::Sse(spec) => self.open_sse(&spec.permitted(&self.spec.consent)?).await,
        };
        opened.map_err(|error| self.explain_configured_era(error))
    }

    /// Uses the instance that another process of the cluster runs.
    async fn open_remote(&self, remote: &dyn RemoteServers) -> Result<Connection, McpError> {
        let opened = remote.open(self.spec, self.owner, RemoteInbox(self.inbox())).await?;
        let (transport, server_info) = RemoteTransport::new(opened, self.spec.id.clone(), self.inbox())?;
        let channel = Channel::new(Box::new(transport), &self.server_requests);
        Ok(self.new_connection(channel, server_info, StderrRing::default()))
    }

    /// Uses the connection of a hub that is already running and has the same launch configuration; `None` if there is none. A
    /// server that may not be started here is not used through another hub either.
    async fn open_relayed(&self) -> Result<Option<Connection>, McpError> {
        let Some(dialer) = self.relay else { return Ok(None) };
        let streams = dialer.dial().await;
        if streams.is_empty() {
            return Ok(None);
        }
        let Ok(identity) = self.spec.clone().checked_launch_identity().await else { return Ok(None) };
        let server = &self.spec.id;
        for HubStream { stream, secret } in streams {
            let hello = Hello::new(&secret, server.as_str(), identity.clone());
            match relay::open(stream, &hello, server).await {
                Ok(link) => {
                    self.server_requests.emit_relay_note(LocalizedText::new(
                        "uses the connection of the running `toolhub serve`",
                        "使用正在运行的 `toolhub serve` 的连接",
                    ));
                    let server_info = link.server_info.clone();
                    let relayed = RelayTransport::new(link, server.clone(), self.inbox(), self.tasks);
                    let channel = Channel::new(Box::new(relayed), &self.server_requests);
                    return Ok(Some(self.new_connection(channel, server_info, StderrRing::default())));
                }
                Err(LinkError::Failed(error)) => return Err(error),
                Err(LinkError::Unusable(why)) => {
                    let why = |lang| why.localize(lang);
                    self.server_requests.emit_relay_note(LocalizedText::new(
                        format!("does not use the running `toolhub serve`: {}", why(Lang::En)),
                        format!("不使用正在运行的 `toolhub serve`：{}", why(Lang::Zh)),
                    ));
                }
            }
        }
        Ok(None)
    }

    /// If `era` is configured and the server answers with a protocol error, the setting may be wrong: names it in the error.
    fn explain_configured_era(&self, error: McpError) -> McpError {
        let is_protocol_error = matches!(
            error,
            McpError::Rpc { .. }
                | McpError::Unreadable { .. }
                | McpError::TooDeep { .. }
                | McpError::Http { status: 400 | 404 | 405, .. }
        );
        match self.spec.era {
            Some(era) if is_protocol_error => McpError::permanent(LocalizedText::new(
                format!("it was met with `era = \"{era}\"`, which it may not speak: {error}"),
                format!("按 `era = \"{era}\"` 连接，但它可能不支持：{error}"),
            )),
            _ => error,
        }
    }

    fn inbox(&self) -> Arc<dyn ServerMessageHandler> {
        Arc::clone(&self.server_requests) as Arc<dyn ServerMessageHandler>
    }

    fn new_connection(&self, channel: Channel, server_info: ServerInfo, stderr: StderrRing) -> Connection {
        Connection::new(channel, server_info, stderr, Arc::clone(&self.server_requests))
    }

    /// Sends `server/discover`. If the server rejects our version but lists it as supported, sends it once more.
    async fn discover(&self, channel: &Channel) -> Result<ServerInfo, McpError> {
        let discovery = send_discover(channel, &self.server_requests).await;
        match &discovery {
            Err(McpError::Rpc { code: UNSUPPORTED_VERSION, data, .. })
                if find_supported(data.as_ref(), &MODERN).is_some() =>
            {
                send_discover(channel, &self.server_requests).await
            }
            _ => discovery,
        }
    }

    /// Probes whether the server is modern. An error code that only modern servers use is final, unless the error lists a
    /// legacy version.
    async fn probe(&self, channel: &Channel) -> Result<Probe, McpError> {
        match self.discover(channel).await {
            Ok(server_info) => Ok(Probe::Modern(server_info)),
            Err(McpError::Rpc { code, message, data }) if is_modern_error(code) => {
                if find_supported(data.as_ref(), &LEGACY).is_some() {
                    return Ok(Probe::Legacy);
                }
                let message = match supported_versions(data.as_ref()) {
                    theirs if theirs.is_empty() => message,
                    theirs => format!("{message}: it supports {}", theirs.join(", ")),
                };
                Err(McpError::Rpc { code, message, data })
            }
            Err(error @ (McpError::Lost { .. } | McpError::Connect { .. } | McpError::TimedOut(_))) => {
                Ok(Probe::Silent(error))
            }
            // Authentication errors and overload apply to the legacy handshake as well.
            Err(
                error @ (McpError::Http { status: 401 | 403 | 429 | 503, .. } | McpError::LoginNeeded { .. }),
            ) => Err(error),
            Err(_) => Ok(Probe::Legacy),
        }
    }

    /// stdio (2026-07-28, transports/stdio: backward compatibility): sends the probe, then falls back to `initialize`. If the
    /// child exits without an answer, it is started again, since some servers exit on unknown methods.
    async fn open_stdio(&self, spec: &StdioSpec) -> Result<Connection, McpError> {
        if let Some(era) = self.spec.era {
            let (channel, stderr) = self.start(spec).await?;
            let server_info = match era {
                Era::Modern => self.discover(&channel).await?,
                Era::Legacy => self.initialize(&channel).await?,
            };
            return Ok(self.new_connection(channel, server_info, stderr));
        }
        if self.known_era != Some(Era::Legacy) {
            let (channel, stderr) = self.start(spec).await?;
            if let Some(server_info) = self.detect_era(&channel).await? {
                return Ok(self.new_connection(channel, server_info, stderr));
            }
        }
        let (channel, stderr) = self.start(spec).await?;
        match self.initialize_or_discover(&channel).await {
            Ok(server_info) => Ok(self.new_connection(channel, server_info, stderr)),
            // The server is modern but slow to start, or has been updated: probes once more, with the remaining time.
            Err(McpError::Rpc { .. }) => {
                let (channel, stderr) = self.start(spec).await?;
                let server_info = send_discover(&channel, &self.server_requests).await?;
                Ok(self.new_connection(channel, server_info, stderr))
            }
            Err(error) => Err(error),
        }
    }

    /// Handshake with a child of unknown era: sends the probe and, after `PING_DELAY`, a `ping`. Some legacy servers never
    /// answer unknown methods, but every server answers a ping, at least with an error, also before initialization. A server
    /// that answers only the ping is probably legacy; one that answers neither counts as still starting, for half of the
    /// connect timeout. In both cases `initialize` follows, and the first answer counts. A running process is not restarted,
    /// since first runs of `npx` and `uvx` are slow. The ping carries modern `_meta`: servers of both eras would take one
    /// without it for that of a legacy client.
    ///
    /// Returns `None` if the child exited and has to be started again.
    async fn detect_era(&self, channel: &Channel) -> Result<Option<ServerInfo>, McpError> {
        let probe = self.probe(channel);
        let ping = async {
            tokio::time::sleep(PING_DELAY).await;
            let ping = McpRequest { method: "ping".into(), repeat: Repeat::Safe, ..McpRequest::default() };
            match channel.request(&ping, modern_meta(&self.server_requests)).await {
                Ok(_) | Err(McpError::Rpc { .. }) => tokio::time::sleep(LATE_PROBE_TIMEOUT).await,
                // The probe fails in the same way.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::pin!(probe);
        let (probed, era_uncertain) = tokio::select! {
            biased;
            probed = &mut probe => (Some(probed?), false),
            () = ping => (None, false),
            () = tokio::time::sleep(self.timeout / 2) => (None, true),
        };
        let refused = match probed {
            Some(Probe::Modern(server_info)) => return Ok(Some(server_info)),
            Some(Probe::Silent(_)) => return Ok(None),
            Some(Probe::Legacy) => self.initialize_or_discover(channel).await,
            None => self.initialize_during_probe(&mut probe, channel, era_uncertain).await,
        };
        match refused {
            Ok(server_info) => Ok(Some(server_info)),
            Err(McpError::Lost { .. } | McpError::Connect { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends `initialize` while the probe is unanswered. A late answer to the probe still counts. A doubtful era is detected
    /// again at the next start.
    async fn initialize_during_probe(
        &self,
        mut probe: impl Future<Output = Result<Probe, McpError>> + Unpin,
        channel: &Channel,
        era_uncertain: bool,
    ) -> Result<ServerInfo, McpError> {
        // `notifications/initialized` is sent only when no modern answer came first.
        let hello = send_initialize(channel, &self.server_requests);
        tokio::pin!(hello);
        let answered = tokio::select! {
            biased;
            probed = &mut probe => match probed? {
                Probe::Modern(server_info) => return Ok(server_info),
                Probe::Legacy => hello.await.map(|server_info| (server_info, false)),
                Probe::Silent(error) => return Err(error),
            },
            answered = &mut hello => answered.map(|server_info| (server_info, era_uncertain)),
        };
        match answered {
            Ok((server_info, era_uncertain)) => {
                channel.notify("notifications/initialized").await?;
                Ok(ServerInfo { era_uncertain, ..server_info })
            }
            Err(error) => self.fall_back_to_discover(channel, error).await,
        }
    }

    /// Sends `initialize`, and `server/discover` if the server rejects it and lists a modern version.
    async fn initialize_or_discover(&self, channel: &Channel) -> Result<ServerInfo, McpError> {
        match self.initialize(channel).await {
            Ok(server_info) => Ok(server_info),
            Err(error) => self.fall_back_to_discover(channel, error).await,
        }
    }

    /// Sends `server/discover` if the error to `initialize` lists a modern version, otherwise returns that error.
    async fn fall_back_to_discover(
        &self,
        channel: &Channel,
        refusal: McpError,
    ) -> Result<ServerInfo, McpError> {
        match &refusal {
            McpError::Rpc { data, .. } if find_supported(data.as_ref(), &MODERN).is_some() => {
                send_discover(channel, &self.server_requests).await
            }
            _ => Err(refusal),
        }
    }

    async fn start(&self, spec: &StdioSpec) -> Result<(Channel, StderrRing), McpError> {
        // Checked at every start: the files may have changed.
        let permitted = permitted_stdio(spec, &self.spec.consent).await?;
        let stdio = Stdio::start(&permitted, self.inbox(), self.tasks, self.killed)?;
        let stderr = stdio.stderr.clone();
        *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = stderr.clone();
        Ok((Channel::new(Box::new(stdio), &self.server_requests), stderr))
    }

    async fn initialize(&self, channel: &Channel) -> Result<ServerInfo, McpError> {
        let server_info = send_initialize(channel, &self.server_requests).await?;
        channel.notify("notifications/initialized").await?;
        Ok(server_info)
    }

    /// HTTP (2026-07-28, transports/streamable-http: backward compatibility): tries the modern protocol, then `initialize`,
    /// then HTTP+SSE.
    async fn open_http(&self, spec: &PermittedSpec<HttpSpec>) -> Result<Connection, McpError> {
        let http = Arc::new(Http::new(spec, self.authorizer.clone(), self.inbox(), self.tasks)?);
        let channel = Channel::new(Box::new(SharedHttp(Arc::clone(&http))), &self.server_requests);
        if self.spec.era == Some(Era::Modern) {
            http.set_protocol_version(MODERN.first().copied());
            let server_info = self.discover(&channel).await?;
            return Ok(self.new_connection(channel, server_info, StderrRing::default()));
        }
        if self.spec.era.or(self.known_era) != Some(Era::Legacy) {
            http.set_protocol_version(MODERN.first().copied());
            match self.probe(&channel).await? {
                Probe::Modern(server_info) => {
                    http.set_protocol_version(Some(&server_info.version));
                    return Ok(self.new_connection(channel, server_info, StderrRing::default()));
                }
                Probe::Silent(error @ McpError::Connect { .. }) => return Err(error),
                Probe::Legacy | Probe::Silent(_) => http.set_protocol_version(None),
            }
        }
        let refused = match self.initialize_http(&channel, &http).await {
            Ok(server_info) => return Ok(self.new_connection(channel, server_info, StderrRing::default())),
            Err(error) => error,
        };
        match refused {
            McpError::Rpc { ref data, .. }
                if self.spec.era.is_none()
                    && (self.known_era.is_some() || find_supported(data.as_ref(), &MODERN).is_some()) =>
            {
                http.set_protocol_version(MODERN.first().copied());
                let server_info = send_discover(&channel, &self.server_requests).await?;
                Ok(self.new_connection(channel, server_info, StderrRing::default()))
            }
            McpError::Http { status: 400 | 404 | 405, .. } => {
                // If HTTP+SSE fails too, the first error is the more useful one.
                self.open_sse(spec).await.map_err(|error| match error {
                    McpError::LoginNeeded { .. } => error,
                    _ => refused,
                })
            }
            error => Err(error),
        }
    }

    async fn initialize_http(&self, channel: &Channel, http: &Arc<Http>) -> Result<ServerInfo, McpError> {
        let server_info = send_initialize(channel, &self.server_requests).await?;
        http.set_protocol_version(Some(&server_info.version));
        if http.has_session() {
            self.server_requests.in_flight.join_session();
        }
        channel.notify("notifications/initialized").await?;
        if self.listen {
            http.listen();
        }
        Ok(server_info)
    }

    /// Opens the HTTP+SSE transport (2024-11-05), which only legacy servers offer.
    async fn open_sse(&self, spec: &PermittedSpec<HttpSpec>) -> Result<Connection, McpError> {
        if self.spec.era == Some(Era::Modern) {
            return Err(McpError::permanent(LocalizedText::new(
                "no server over `sse` is modern: remove `era = \"modern\"`, or use `\"type\": \"http\"`",
                "`sse` 没有 modern 版本：请去掉 `era = \"modern\"`，或改用 `\"type\": \"http\"`",
            )));
        }
        let sse = Sse::open(spec, self.authorizer.clone(), self.inbox(), self.tasks).await?;
        // The SSE stream is the session.
        self.server_requests.in_flight.join_session();
        let channel = Channel::new(Box::new(sse), &self.server_requests);
        let server_info = self.initialize(&channel).await?;
        Ok(self.new_connection(channel, server_info, StderrRing::default()))
    }
}

/// Shares the transport between the channel that owns it and the handshake, which sets the protocol version.
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
