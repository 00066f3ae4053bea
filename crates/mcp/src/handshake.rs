//! Meeting a server: finding out which era it speaks, and opening a connection in it.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio_util::task::TaskTracker;
use toolhub_core::{RawJson, RawObject};

use crate::config::{StdioSpec, TransportSpec};
use crate::connection::{Ask, Channel, Connection, Greeting};
use crate::era::{Era, LEGACY, MODERN, client_info, is_modern_error, modern_meta};
use crate::error::McpError;
use crate::transport::StderrRing;
use crate::transport::http::Http;
use crate::transport::stdio::Stdio;
use crate::transport::{Inbox, OutgoingRequest, Transport};

/// How long a child may take to answer the modern probe before it is taken for a legacy server. Some never answer.
const PROBE_PATIENCE: Duration = Duration::from_secs(4);

/// Whom to meet, and what is known of them.
pub(crate) struct Meeting<'a> {
    pub(crate) transport: &'a TransportSpec,
    /// What it spoke last time.
    pub(crate) known: Option<Era>,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) tasks: &'a TaskTracker,
    /// Where the last words of a child can be read while it is being met.
    pub(crate) stderr: &'a std::sync::Mutex<StderrRing>,
}

impl Meeting<'_> {
    /// Connects. The caller sets the deadline.
    pub(crate) async fn open(&self) -> Result<Connection, McpError> {
        match self.transport {
            TransportSpec::Stdio(spec) => self.open_stdio(&spec.expanded()?).await,
            TransportSpec::Http(spec) => {
                let spec = spec.expanded()?;
                let http =
                    Arc::new(Http::new(&spec.url, &spec.headers, Arc::clone(&self.inbox), self.tasks)?);
                self.open_http(http).await
            }
            TransportSpec::Sse(_) => Err(McpError::connect(
                "the old HTTP+SSE transport is not supported yet; most servers also offer Streamable HTTP (`\"type\": \"http\"`, often at `/mcp`)",
            )),
        }
    }

    /// stdio (2026-07-28, transports/stdio: backward compatibility): probe, and fall back to `initialize`. Where
    /// the probe got no proper answer the child is started anew, since some end on what they do not know.
    async fn open_stdio(&self, spec: &StdioSpec) -> Result<Connection, McpError> {
        if self.known != Some(Era::Legacy) {
            let (channel, stderr) = self.start(spec)?;
            match tokio::time::timeout(PROBE_PATIENCE, discover(&channel)).await {
                Ok(Ok(greeting)) => return Ok(Connection::new(channel, greeting, stderr)),
                Ok(Err(error @ McpError::Rpc { code, .. })) if is_modern_error(code) => return Err(error),
                // A legacy server that answers with an error is alive and may be greeted as it is.
                Ok(Err(McpError::Rpc { .. })) => match initialize(&channel).await {
                    Ok(greeting) => return Ok(Connection::new(channel, greeting, stderr)),
                    Err(McpError::Lost { .. } | McpError::Connect { .. }) => {}
                    Err(error) => return Err(error),
                },
                Ok(Err(_)) | Err(_) => {}
            }
        }
        let (channel, stderr) = self.start(spec)?;
        match initialize(&channel).await {
            Ok(greeting) => Ok(Connection::new(channel, greeting, stderr)),
            // Slow to start and modern, or no longer as old as it was: ask once more, with all the time left.
            Err(McpError::Rpc { .. }) => {
                let (channel, stderr) = self.start(spec)?;
                let greeting = discover(&channel).await?;
                Ok(Connection::new(channel, greeting, stderr))
            }
            Err(error) => Err(error),
        }
    }

    fn start(&self, spec: &StdioSpec) -> Result<(Channel, StderrRing), McpError> {
        let stdio = Stdio::start(spec, Arc::clone(&self.inbox), self.tasks)?;
        let stderr = stdio.stderr.clone();
        *self.stderr.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = stderr.clone();
        Ok((Channel::new(Box::new(stdio)), stderr))
    }

    /// HTTP (2026-07-28, transports/streamable-http: backward compatibility).
    async fn open_http(&self, http: Arc<Http>) -> Result<Connection, McpError> {
        let channel = Channel::new(Box::new(SharedHttp(Arc::clone(&http))));
        if self.known != Some(Era::Legacy) {
            http.speak(MODERN.first().copied());
            match discover(&channel).await {
                Ok(greeting) => {
                    http.speak(Some(&greeting.version));
                    return Ok(Connection::new(channel, greeting, StderrRing::default()));
                }
                Err(error @ McpError::Rpc { code, .. }) if is_modern_error(code) => return Err(error),
                Err(error @ (McpError::Connect { .. } | McpError::Lost { .. })) => return Err(error),
                // Whoever is not let in as a stranger will not be let in by the other door.
                Err(error @ McpError::Http { status: 401 | 403, .. }) => return Err(error),
                Err(_) => {}
            }
            http.speak(None);
        }
        let greeting = match initialize_http(&channel, &http).await {
            Ok(greeting) => greeting,
            Err(McpError::Rpc { .. } | McpError::Http { status: 400 | 404, .. }) if self.known.is_some() => {
                http.speak(MODERN.first().copied());
                discover(&channel).await?
            }
            Err(error) => return Err(error),
        };
        Ok(Connection::new(channel, greeting, StderrRing::default()))
    }
}

/// The handshake needs the transport beside the channel that owns it, to tell it the version.
struct SharedHttp(Arc<Http>);

impl Transport for SharedHttp {
    fn request(&self, request: OutgoingRequest) -> toolhub_core::BoxFuture<'_, Result<RawJson, McpError>> {
        self.0.request(request)
    }

    fn notify(&self, body: String) -> toolhub_core::BoxFuture<'_, Result<(), McpError>> {
        self.0.notify(body)
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<DiscoveredMeta>,
}

#[derive(Deserialize)]
struct DiscoveredMeta {
    #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<PeerInfo>,
}

#[derive(Deserialize, Default)]
struct PeerInfo {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

impl PeerInfo {
    fn label(&self) -> String {
        format!("{} {}", self.name, self.version).trim().to_owned()
    }
}

/// Asks a modern server what it is (2026-07-28, server/discover).
async fn discover(channel: &Channel) -> Result<Greeting, McpError> {
    let version = MODERN[0];
    let ask = Ask { method: "server/discover", ..Ask::default() };
    let result = channel.ask(ask, modern_meta(version)).await?;
    let found: Discovered = result
        .decode()
        .map_err(|error| McpError::unreadable(format!("`server/discover` was answered oddly: {error}")))?;
    let Some(version) = MODERN.iter().find(|known| found.supported_versions.iter().any(|own| own == *known))
    else {
        let theirs = found.supported_versions.join(", ");
        return Err(McpError::unreadable(format!("it speaks {theirs}; we speak {}", MODERN.join(", "))));
    };
    let peer = found.meta.and_then(|meta| meta.server_info).unwrap_or_default().label();
    Ok(Greeting { era: Era::Modern, version: (*version).to_owned(), peer })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    server_info: PeerInfo,
}

/// Greets a legacy server (2025-11-25, basic/lifecycle). Never offers a modern version: servers that echo what
/// they are offered would end in a state that neither side means.
async fn hello(channel: &Channel) -> Result<Greeting, McpError> {
    let params = RawObject::default()
        .with("protocolVersion", LEGACY[0])
        .with("capabilities", RawJson::empty_object())
        .with("clientInfo", client_info());
    let ask = Ask { method: "initialize", params, ..Ask::default() };
    let result = channel.ask(ask, RawObject::default()).await?;
    let found: Initialized = result
        .decode()
        .map_err(|error| McpError::unreadable(format!("`initialize` was answered oddly: {error}")))?;
    if !LEGACY.contains(&found.protocol_version.as_str()) {
        let theirs = found.protocol_version;
        return Err(McpError::unreadable(format!(
            "it wants version `{theirs}`; we speak {}",
            LEGACY.join(", ")
        )));
    }
    Ok(Greeting { era: Era::Legacy, version: found.protocol_version, peer: found.server_info.label() })
}

async fn initialize(channel: &Channel) -> Result<Greeting, McpError> {
    let greeting = hello(channel).await?;
    channel.notify("notifications/initialized").await?;
    Ok(greeting)
}

async fn initialize_http(channel: &Channel, http: &Http) -> Result<Greeting, McpError> {
    let greeting = hello(channel).await?;
    http.speak(Some(&greeting.version));
    channel.notify("notifications/initialized").await?;
    Ok(greeting)
}
