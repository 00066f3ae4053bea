//! The hub's side of a link: compares configurations, connects, and forwards requests to one server.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use toolhub_core::error::Effect;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{BoxFuture, CallerHandle, RawJson, RawObject};
use toolhub_mcp_wire::{McpError, jsonrpc};

use super::caller::{LinkClient, ProgressForwarder, RequestCaller};
use super::control::{
    ControlAnswer, ControlCommand, ControlRequest, RestartOutcome, RestartServer, StateMessage,
};
use super::{
    FAILURE_CODE, Forwarding, HELLO_TIMEOUT, Hello, LINK_WRITE_TIMEOUT, PROTOCOL, RelayStream, RelayedError,
    Welcome,
};
use crate::connection::{Connection, McpRequest};
use crate::request_origin::RequestOrigin;
use crate::server_status::RequestPurpose;
use crate::supervisor::Server;
use crate::transport::lines::{LineReader, MAX_LINE_BYTES, ReadLine};
use crate::transport::{Repeat, RequestObserver};

/// Maximum number of links. Further clients connect to their servers themselves.
const MAX_LINKS: usize = 256;
/// Maximum number of concurrent requests per link.
const MAX_REQUESTS: usize = 1024;
/// Maximum number of queued outgoing messages per link.
const MAX_QUEUED_MESSAGES: usize = 256;
/// How long writing the remaining messages of a closing link may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

type Stream = Box<dyn RelayStream>;
type FindServer = dyn Fn(&str) -> Option<Arc<Server>> + Send + Sync;

/// Serves links to the servers of a hub.
pub struct Relay {
    find: Box<FindServer>,
    principal: Box<str>,
    /// SHA-256 of the secret that clients must send.
    secret: [u8; 32],
    links: Semaphore,
    closing: CancellationToken,
    restart: Option<Box<RestartServer>>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl Relay {
    /// Creates a relay for clients with `secret`. `find` looks a server up by its id. All clients act as `principal`.
    pub fn new(
        principal: &str,
        secret: &str,
        find: impl Fn(&str) -> Option<Arc<Server>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Box::new(find),
            principal: principal.into(),
            secret: Sha256::digest(secret).into(),
            links: Semaphore::new(MAX_LINKS),
            closing: CancellationToken::new(),
            restart: None,
        }
    }

    /// Restarts servers by this function; without it, restarts are refused.
    #[must_use]
    pub fn with_restart(
        mut self,
        restart: impl Fn(String) -> BoxFuture<'static, Option<RestartOutcome>> + Send + Sync + 'static,
    ) -> Self {
        self.restart = Some(Box::new(restart));
        self
    }

    /// Accepts no more requests; links end after their running requests.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Serves one link until it ends. Dropping the future cancels its requests.
    pub async fn serve(&self, stream: Stream) {
        let (reader, writer) = tokio::io::split(stream);
        let lines = LineReader::new(BufReader::new(reader), MAX_LINE_BYTES);
        let (out, queued) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let mut writing = pin!(write(queued, writer));
        tokio::select! {
            () = self.serve_link(lines, out) => {}
            () = &mut writing => return,
        }
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, writing).await;
    }

    async fn serve_link(
        &self,
        mut lines: LineReader<BufReader<ReadHalf<Stream>>>,
        out: mpsc::Sender<String>,
    ) {
        let Ok(ReadLine::Whole(hello)) = tokio::time::timeout(HELLO_TIMEOUT, lines.next()).await else {
            return;
        };
        let client = Arc::new(LinkClient::new(&self.principal, out));
        if let Ok(request) = serde_json::from_slice::<ControlRequest>(&hello) {
            return self.control(&client, request).await;
        }
        let permit = self.links.try_acquire();
        let admitted = match &permit {
            Ok(_) => self.admit(&hello).await,
            Err(_) => Err(LocalizedText::new("it has too many links", "它的连接过多")),
        };
        let server = match admitted {
            Ok(server) => server,
            Err(why) => {
                let refused = Welcome::Refused { en: why.localize(Lang::En), zh: why.localize(Lang::Zh) };
                return client.send(written(&refused)).await;
            }
        };
        client.send(written(&Welcome::Connecting)).await;
        // The calling process has its own breaker, so the one of this hub must not delay it.
        server.allow_retry();
        let caller = RequestCaller::new(
            Arc::clone(&client) as _,
            toolhub_mcp_wire::era::Era::Legacy,
            RawObject::default(),
        )
        .0;
        let caller = CallerHandle::new(Arc::new(caller));
        let connecting = async {
            let instance = server.instance(Some(&caller))?.into_owned();
            instance.allow_retry();
            let guard = instance.begin_request(RequestPurpose::CallerRequest);
            let connection = instance.connection().await;
            drop(guard);
            connection.map(|connection| (instance, connection))
        };
        let connected = tokio::select! {
            connected = connecting => connected,
            // A client sends nothing before the answer: input here means that it has disconnected.
            _ = lines.next() => return,
            () = self.closing.cancelled() => return,
        };
        let (instance, connection) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                let failed = Welcome::Failed { failure: RelayedError::from(&error) };
                return client.send(written(&failed)).await;
            }
        };
        client.send(written(&Welcome::ready(&connection.server_info))).await;
        let target = Arc::new(LinkTarget { server, instance, connection: Arc::downgrade(&connection) });
        drop(connection);
        self.forward(&mut lines, &client, &target).await;
    }

    /// Answers a request about servers.
    async fn control(
        &self,
        client: &LinkClient,
        ControlRequest { protocol, secret, control }: ControlRequest,
    ) {
        if let Err(why) = self.authenticate(protocol, &secret) {
            return client.send(ControlAnswer::refused(&why).line()).await;
        }
        match control {
            ControlCommand::States { servers } => {
                let matching_servers = servers.iter().filter_map(|wanted| wanted.find(&self.find));
                let servers = matching_servers.map(|server| StateMessage::of(&server)).collect();
                client.send(ControlAnswer::States { servers }.line()).await;
            }
            ControlCommand::Restart { server } => {
                let (Some(_), Some(restart)) = (server.find(&self.find), &self.restart) else {
                    return client.send(ControlAnswer::States { servers: Vec::new() }.line()).await;
                };
                client.send(ControlAnswer::Accepted.line()).await;
                if let Some(outcome) = restart(server.id).await {
                    client.send(ControlAnswer::Restarted { outcome }.line()).await;
                }
            }
        }
    }

    /// Checks the version and the secret of a client.
    fn authenticate(&self, protocol: u32, secret: &str) -> Result<(), LocalizedText> {
        if protocol != PROTOCOL {
            return Err(other_version());
        }
        // Compares digests, so that the timing reveals nothing about the secret.
        if Sha256::digest(secret)[..] != self.secret {
            return Err(LocalizedText::new("it was not shown its secret", "未出示它的密钥"));
        }
        if self.closing.is_cancelled() {
            return Err(LocalizedText::new("it is about to end", "它即将结束"));
        }
        Ok(())
    }

    /// Returns the requested server if the launch configurations are equal.
    async fn admit(&self, hello: &[u8]) -> Result<Arc<Server>, LocalizedText> {
        let hello: Hello = serde_json::from_slice(hello).map_err(|_| other_version())?;
        self.authenticate(hello.protocol, &hello.secret)?;
        let server = (self.find)(&hello.server)
            .ok_or_else(|| LocalizedText::new("it does not have this server", "它没有此服务器"))?;
        // Consent is checked here too: the files may have changed since the server was started.
        let own_identity =
            server.spec().clone().checked_launch_identity().await.map_err(|error| error.text())?;
        match own_identity.difference(&hello.identity) {
            Some(difference) => Err(difference),
            None => Ok(server),
        }
    }

    async fn forward(
        &self,
        lines: &mut LineReader<BufReader<ReadHalf<Stream>>>,
        client: &Arc<LinkClient>,
        target: &Arc<LinkTarget>,
    ) {
        let mut tasks = JoinSet::new();
        let mut running: HashMap<u64, AbortHandle> = HashMap::new();
        let mut changes = target.server.changes();
        changes.mark_unchanged();
        let mut closing = false;
        loop {
            tokio::select! {
                line = lines.next() => match line {
                    ReadLine::Whole(line) => {
                        let Some(message) = LinkMessage::read(&line) else { continue };
                        match message.classify() {
                            MessageKind::Request { id, .. } if running.len() >= MAX_REQUESTS || closing => {
                                client.send(failed(id, &expired())).await;
                            }
                            MessageKind::Request { id, method, params, forwarding } => {
                                let request = target.request(client, method, params, forwarding);
                                let (client, target) = (Arc::clone(client), Arc::clone(target));
                                let current = (self.find)(target.server.id().as_str());
                                let task = tasks.spawn(async move {
                                    client.send(match target.answer(current, request).await {
                                        Ok(result) => jsonrpc::answer(RawJson::from(id), &Ok(result)),
                                        Err(error) => failed(id, &error),
                                    }).await;
                                    id
                                });
                                running.insert(id, task);
                            }
                            MessageKind::Response(id, answer) => client.deliver_answer(id, answer),
                            MessageKind::Cancelled(id) => {
                                if let Some(task) = running.remove(&id) {
                                    task.abort();
                                }
                            }
                            MessageKind::Other => {}
                        }
                    }
                    ReadLine::TooLong(start) => {
                        if let Some(id) = jsonrpc::extract_id(&start) {
                            client.send(failed(id, &McpError::unreadable("the request is too long"))).await;
                        }
                    }
                    ReadLine::End => return,
                },
                Some(done) = tasks.join_next() => {
                    if let Ok(id) = done {
                        running.remove(&id);
                    }
                }
                Ok(()) = changes.changed() => {
                    client.notify("notifications/tools/list_changed", &RawObject::default());
                }
                () = self.closing.cancelled(), if !closing => closing = true,
            }
            if closing && tasks.is_empty() {
                return;
            }
        }
    }
}

fn other_version() -> LocalizedText {
    LocalizedText::new("it is another version of toolhub", "它是另一个版本的 toolhub")
}

/// The server of a link, and the connection that was reported to the client.
struct LinkTarget {
    server: Arc<Server>,
    /// The instance (process or session) that serves this client.
    instance: Arc<Server>,
    /// Weak: a link does not keep an idle server from being stopped.
    connection: Weak<Connection>,
}

impl LinkTarget {
    fn request(
        &self,
        client: &Arc<LinkClient>,
        method: String,
        params: RawObject,
        forwarding: Forwarding,
    ) -> McpRequest {
        let era =
            self.connection.upgrade().map_or(toolhub_mcp_wire::era::Era::Legacy, |open| open.server_info.era);
        let (caller, params) = RequestCaller::new(Arc::clone(client) as _, era, params);
        let caller = CallerHandle::new(Arc::new(caller));
        let listener: Arc<dyn RequestObserver> = Arc::new(ProgressForwarder(caller.clone()));
        McpRequest {
            method: method.into(),
            params,
            name: forwarding.name.map(Arc::from),
            arguments: None,
            headers: forwarding.headers,
            listener: Some(listener),
            origin: Some(RequestOrigin::new(caller)),
            is_of_hub: false,
            repeat: if forwarding.repeatable { Repeat::Safe } else { Repeat::IfUnprocessed },
        }
    }

    /// Sends a request over the connection of the link. If the connection is closed or the configuration has changed, nothing
    /// is sent, and the client opens another link.
    async fn answer(&self, current: Option<Arc<Server>>, request: McpRequest) -> Result<RawJson, McpError> {
        if !current.is_some_and(|current| Arc::ptr_eq(&current, &self.server)) {
            return Err(expired());
        }
        let _guard = self.instance.begin_request(RequestPurpose::CallerRequest);
        let open = self.instance.lock_status().open().cloned();
        let connection = open.zip(self.connection.upgrade()).filter(|(open, own)| Arc::ptr_eq(open, own));
        let Some((connection, _)) = connection else { return Err(expired()) };
        let began = self.instance.failure_mark();
        let result = connection.request(request).await;
        self.instance.record_relayed(&connection, began, &result).await;
        result
    }
}

/// Nothing was sent; the client has to reconnect.
fn expired() -> McpError {
    McpError::SessionExpired { effect: Effect::None }
}

/// The JSON-RPC error response for a failure.
fn failed(id: u64, error: &McpError) -> String {
    let body = RawObject::default()
        .with("code", RawJson::of(&FAILURE_CODE))
        .with("message", error.to_string())
        .with("data", RawJson::of(&RelayedError::from(error)));
    let answer = RawObject::default().with("jsonrpc", "2.0").with("id", id).with("error", body);
    jsonrpc::on_one_line(answer.into_raw().get().to_owned())
}

fn written(welcome: &Welcome) -> String {
    RawJson::of(welcome).get().to_owned()
}

/// One line from a client.
#[derive(Deserialize)]
struct LinkMessage<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorBody>,
    #[serde(default)]
    forwarding: Forwarding,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: i64,
    message: String,
}

/// A classified message.
enum MessageKind {
    Request { id: u64, method: String, params: RawObject, forwarding: Forwarding },
    Response(u64, Result<RawJson, (i64, String)>),
    Cancelled(u64),
    Other,
}

impl<'a> LinkMessage<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    fn classify(self) -> MessageKind {
        let params = self.params.map(RawJson::from);
        match (self.method, self.id) {
            (Some(method), Some(id)) => {
                let params = params.and_then(|params| params.object()).unwrap_or_default();
                MessageKind::Request { id, method, params, forwarding: self.forwarding }
            }
            (Some(method), None) if method == "notifications/cancelled" => {
                let id = params.and_then(|params| params.object()?.get("requestId")?.decode().ok());
                id.map_or(MessageKind::Other, MessageKind::Cancelled)
            }
            (None, Some(id)) => match (self.result, self.error) {
                (Some(result), _) => MessageKind::Response(id, Ok(RawJson::from(result))),
                (None, Some(error)) => MessageKind::Response(id, Err((error.code, error.message))),
                (None, None) => MessageKind::Other,
            },
            _ => MessageKind::Other,
        }
    }
}

async fn write(mut queued: mpsc::Receiver<String>, mut writer: WriteHalf<Stream>) {
    while let Some(mut message) = queued.recv().await {
        message.push('\n');
        let written = tokio::time::timeout(LINK_WRITE_TIMEOUT, writer.write_all(message.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
    let _ = writer.shutdown().await;
}
