//! Requests of commands about the servers of a running hub: their live state, and a restart. A server is meant only if both sides
//! have the same entry for it in the same file: a project may configure another server under the same name.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWriteExt as _, BufReader};
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::duration_millis;
use toolhub_core::{BoxFuture, Lang, Localize as _, RawJson};
use toolhub_mcp_wire::Era;

use super::{HELLO_TIMEOUT, HubStream, PROTOCOL};
use crate::config::ServerSpec;
use crate::server_status::ServerState;
use crate::supervisor::Server;
use crate::transport::lines::{LineReader, MAX_LINE_BYTES, ReadLine};

/// How long a restart may take.
const RESTART_TIMEOUT: Duration = Duration::from_secs(600);

/// The first message of a command that opens no link.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ControlRequest {
    pub(super) protocol: u32,
    pub(super) secret: String,
    pub(super) control: ControlCommand,
}

/// What a command requests.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(super) enum ControlCommand {
    /// The states of these servers.
    States { servers: Vec<EntryId> },
    /// The restart of a server.
    Restart { server: EntryId },
}

/// A server and the digest of its entry.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EntryId {
    pub(super) id: String,
    entry: String,
}

impl EntryId {
    fn of(spec: &ServerSpec) -> Self {
        Self { id: spec.id.to_string(), entry: spec.entry_digest() }
    }

    /// The server of the hub, if its entry is the same.
    pub(super) fn find(&self, find: impl Fn(&str) -> Option<Arc<Server>>) -> Option<Arc<Server>> {
        find(&self.id).filter(|server| server.spec().entry_digest() == self.entry)
    }
}

/// The answers of the hub.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum ControlAnswer {
    Refused {
        en: String,
        zh: String,
    },
    States {
        servers: Vec<StateMessage>,
    },
    /// The server is being restarted; another answer follows.
    Accepted,
    Restarted {
        outcome: RestartOutcome,
    },
}

impl ControlAnswer {
    pub(super) fn refused(why: &LocalizedText) -> Self {
        Self::Refused { en: why.localize(Lang::En), zh: why.localize(Lang::Zh) }
    }

    pub(super) fn line(&self) -> String {
        RawJson::of(self).get().to_owned()
    }
}

/// The state of a server as a message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StateMessage {
    id: String,
    connected: Option<ConnectedMessage>,
    failed: Option<LocalizedText>,
    /// The remaining time in milliseconds and the number of failures, if the circuit is open.
    circuit_open: Option<(u64, u32)>,
    restarts: u32,
    stderr: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ConnectedMessage {
    era: String,
    version: String,
    peer: String,
}

impl StateMessage {
    pub(super) fn of(server: &Server) -> Self {
        let mut message = Self {
            id: server.id().to_string(),
            connected: None,
            failed: None,
            circuit_open: None,
            restarts: server.restarts(),
            stderr: server.stderr_tail(),
        };
        match server.status() {
            ServerState::Idle => {}
            ServerState::Connected { era, version, peer } => {
                message.connected = Some(ConnectedMessage { era: era.name().to_owned(), version, peer });
            }
            ServerState::Failed(cause) => message.failed = Some(cause),
            ServerState::CircuitOpen { cause, retry_in, failures } => {
                message.failed = Some(cause);
                message.circuit_open = Some((duration_millis(retry_in), failures));
            }
        }
        message
    }

    fn into_live(self) -> Option<LiveServer> {
        let state = match (self.connected, self.failed, self.circuit_open) {
            (Some(ConnectedMessage { era, version, peer }), _, _) => {
                ServerState::Connected { era: era.parse::<Era>().ok()?, version, peer }
            }
            (None, Some(cause), Some((millis, failures))) => {
                ServerState::CircuitOpen { cause, retry_in: Duration::from_millis(millis), failures }
            }
            (None, Some(cause), None) => ServerState::Failed(cause),
            (None, None, _) => ServerState::Idle,
        };
        Some(LiveServer { id: self.id, state, restarts: self.restarts, stderr: self.stderr })
    }
}

/// The state of a server at a running hub.
#[derive(Debug, Clone)]
pub struct LiveServer {
    /// Its id.
    pub id: String,
    /// The state of its connection.
    pub state: ServerState,
    /// How often it was restarted.
    pub restarts: u32,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
}

/// The outcome of a restart.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartOutcome {
    /// The server works.
    Works {
        /// The number of its tools.
        tools: usize,
        /// The era of MCP that it speaks.
        era: String,
        /// Its name and version.
        peer: String,
        /// The negotiated version of MCP.
        version: Option<String>,
        /// The tools that were left out, each with the reason.
        skipped: Vec<LocalizedText>,
    },
    /// The server does not work.
    Failed {
        /// The cause and the next step.
        text: LocalizedText,
        /// The cause.
        brief: LocalizedText,
        /// The kind of the error.
        kind: String,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
}

/// Restarts a server of a hub by its id. Returns `None` if there is no such server.
pub(super) type RestartServer = dyn Fn(String) -> BoxFuture<'static, Option<RestartOutcome>> + Send + Sync;

/// Sends a request and reads the answers.
struct ControlExchange {
    reader: LineReader<BufReader<tokio::io::ReadHalf<Box<dyn super::RelayStream>>>>,
    /// Kept open until the last answer.
    _writer: tokio::io::WriteHalf<Box<dyn super::RelayStream>>,
}

impl ControlExchange {
    async fn begin(
        stream: HubStream,
        control: ControlCommand,
    ) -> Result<(Self, ControlAnswer), LocalizedText> {
        let request = ControlRequest { protocol: PROTOCOL, secret: stream.secret, control };
        let mut line = RawJson::of(&request).get().to_owned();
        line.push('\n');
        let (reader, mut writer) = tokio::io::split(stream.stream);
        let mut reader = LineReader::new(BufReader::new(reader), MAX_LINE_BYTES);
        let answer = async {
            writer.write_all(line.as_bytes()).await.ok()?;
            next(&mut reader).await
        };
        let answer = tokio::time::timeout(HELLO_TIMEOUT, answer).await.map_err(|_| silent())?;
        match answer.ok_or_else(ended)? {
            ControlAnswer::Refused { en, zh } => Err(LocalizedText::new(en, zh)),
            answer => Ok((Self { reader, _writer: writer }, answer)),
        }
    }
}

fn silent() -> LocalizedText {
    LocalizedText::new("it does not answer", "它没有响应")
}

fn ended() -> LocalizedText {
    LocalizedText::new("it ended", "它已结束")
}

async fn next(
    reader: &mut LineReader<BufReader<tokio::io::ReadHalf<Box<dyn super::RelayStream>>>>,
) -> Option<ControlAnswer> {
    match reader.next().await {
        ReadLine::Whole(line) => serde_json::from_slice(&line).ok(),
        ReadLine::TooLong(_) | ReadLine::End => None,
    }
}

/// Requests the states of servers from a hub. Those that it does not have, or has with another entry, are missing in the result.
pub async fn live_servers(
    stream: HubStream,
    specs: &[&ServerSpec],
) -> Result<Vec<LiveServer>, LocalizedText> {
    let servers = specs.iter().map(|spec| EntryId::of(spec)).collect();
    match ControlExchange::begin(stream, ControlCommand::States { servers }).await?.1 {
        ControlAnswer::States { servers } => {
            Ok(servers.into_iter().filter_map(StateMessage::into_live).collect())
        }
        _ => Err(silent()),
    }
}

/// Requests the restart of a server from a hub. Returns `None` if it does not have the server, or has it with another entry.
pub async fn restart_at_hub(
    stream: HubStream,
    spec: &ServerSpec,
) -> Result<Option<RestartOutcome>, LocalizedText> {
    let control = ControlCommand::Restart { server: EntryId::of(spec) };
    let (mut exchange, answer) = ControlExchange::begin(stream, control).await?;
    match answer {
        ControlAnswer::Accepted => {}
        // Nothing was restarted.
        ControlAnswer::States { .. } => return Ok(None),
        _ => return Err(silent()),
    }
    let outcome = tokio::time::timeout(RESTART_TIMEOUT, next(&mut exchange.reader)).await;
    match outcome.map_err(|_| silent())?.ok_or_else(ended)? {
        ControlAnswer::Restarted { outcome } => Ok(Some(outcome)),
        _ => Err(ended()),
    }
}
