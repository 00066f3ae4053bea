//! Messages between the processes of a cluster, over NATS: requests whose answers are several messages in order, and events.
//!
//! Messages are delivered at most once. A request is never sent a second time: [`BusError::effect`] says whether it may have been
//! processed. Only certain failures have the effect `none`: nothing subscribes to the subject, or nothing was sent.

mod error;
mod frame;
mod inbox;
mod replies;
mod requests;
mod subject;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event as ClientEvent};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use error::BusError;
use frame::{MAX_MESSAGE_BYTES, MAX_PIECE_BYTES, MORE};
use inbox::Inbox;
pub use replies::Replies;
pub use requests::{IncomingRequest, ReplyWriter, Requests};
pub use subject::subject_token;

/// How long the receiver of a large request may take until it requests the rest.
const UPLOAD_START_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of the pings that notice a NATS server that hangs.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest pause between connection attempts.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// How long [`Bus::connect`] waits for the connection. Later, it is established in the background.
const FIRST_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a message of a connection to itself is waited for.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(2);
/// The second token of the subjects of answers.
const INBOX: &str = "inbox";
/// Begins the JWT in a file with credentials.
const JWT_MARK: &str = "-----BEGIN NATS USER JWT-----";
/// The first letters of the seed of a user's NKey.
const USER_SEED: &str = "SU";
/// What NATS adds to the payload of a message.
const OVERHEAD_BYTES: usize = 1024;

/// How to reach the NATS servers.
#[derive(Clone)]
pub struct BusOptions {
    /// The URLs of the servers: `nats://` or `tls://`.
    pub servers: Vec<String>,
    /// The first token of all subjects.
    pub prefix: String,
    /// A file with credentials: a JWT and its NKey seed, or an NKey seed alone.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates of the authorities that sign the servers' certificates; those of the system without it.
    pub authorities: Option<PathBuf>,
    /// The name of the connection at the server.
    pub name: String,
}

impl std::fmt::Debug for BusOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // URLs may contain passwords.
        f.debug_struct("BusOptions").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A connection to NATS. Clones share it.
#[derive(Debug, Clone)]
pub struct Bus(Arc<BusState>);

#[derive(Debug)]
struct BusState {
    client: Client,
    prefix: String,
    inbox: Arc<Inbox>,
    /// The number of connections so far.
    connections: watch::Receiver<u64>,
    /// The task that distributes answers; aborted with the last clone.
    _tasks: JoinSet<()>,
}

impl Bus {
    /// Connects. If no server can be reached, the connection is established later, in the background; until then, nothing is
    /// sent. Fails if the options are invalid.
    pub async fn connect(options: BusOptions) -> Result<Self, BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::Client(error.to_string());
        let (connected, connections) = watch::channel(0);
        let connected = Arc::new(connected);
        let mut nats = ConnectOptions::new()
            .name(&options.name)
            .event_callback(move |event| {
                let connected = Arc::clone(&connected);
                async move {
                    if matches!(event, ClientEvent::Connected) {
                        connected.send_modify(|count| *count += 1);
                    }
                }
            })
            // Answers too are below the prefix, so that a user of the NATS server needs no permission beside it.
            .custom_inbox_prefix(format!("{}.{INBOX}", options.prefix))
            .retry_on_initial_connect()
            .ping_interval(PING_INTERVAL)
            .connection_timeout(CONNECT_TIMEOUT)
            .reconnect_delay_callback(|attempts| {
                MAX_RECONNECT_DELAY.min(Duration::from_millis(
                    u64::try_from(attempts).unwrap_or(u64::MAX).saturating_mul(50),
                ))
            });
        if let Some(file) = &options.credentials {
            nats = with_credentials(nats, file).await.map_err(|error| {
                BusError::Client(format!("the credentials in `{}` cannot be read: {error}", file.display()))
            })?;
        }
        if let Some(file) = &options.authorities {
            nats = nats.add_root_certificates(file.clone());
        }
        let client = nats.connect(options.servers).await.map_err(|error| failed(&error))?;
        let connected = async {
            while client.connection_state() != State::Connected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_CONNECT_TIMEOUT, connected).await;
        let inbox = Arc::new(Inbox::new(client.new_inbox()));
        let subscriber = client.subscribe(inbox.wildcard()).await.map_err(|error| failed(&error))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&inbox).run(subscriber));
        Ok(Self(Arc::new(BusState { client, prefix: options.prefix, inbox, connections, _tasks: tasks })))
    }

    /// Whether there is a connection to a server.
    pub fn is_connected(&self) -> bool {
        self.0.client.connection_state() == State::Connected
    }

    /// Changes with each new connection: messages on the last one may have been lost.
    pub fn connections(&self) -> watch::Receiver<u64> {
        self.0.connections.clone()
    }

    /// The subject of these tokens, with the prefix of the cluster.
    pub fn subject(&self, tokens: &[&str]) -> String {
        let mut subject = self.0.prefix.clone();
        for token in tokens {
            subject.push('.');
            subject.push_str(token);
        }
        subject
    }

    /// The largest payload of one message.
    fn piece_bytes(&self) -> usize {
        let of_server = self.0.client.max_payload().saturating_sub(OVERHEAD_BYTES);
        MAX_PIECE_BYTES.min(of_server.max(OVERHEAD_BYTES))
    }

    /// Sends a request. Dropping the answer does not cancel it.
    pub async fn request(&self, subject: &str, message: Bytes) -> Result<Replies, BusError> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(BusError::TooLarge { bytes: message.len() });
        }
        // The client queues messages while it reconnects. They would be processed long after their sender has given up.
        if !self.is_connected() {
            return Err(BusError::Disconnected);
        }
        let client = &self.0.client;
        let slot = self.0.inbox.open();
        let reply = slot.subject();
        let mut replies = Replies::new(slot);
        let mut pieces = frame::pieces(&message, self.piece_bytes());
        #[expect(clippy::expect_used, reason = "`pieces` returns at least one")]
        let (first, is_last) = pieces.next().expect("a piece");
        let first = frame::write(if is_last { 0 } else { MORE }, 0, &first);
        let sent = client.publish_with_reply(subject.to_owned(), reply, first).await;
        sent.map_err(|error| BusError::Client(error.to_string()))?;
        if !is_last {
            let upload = replies.upload_subject(UPLOAD_START_TIMEOUT).await?;
            for (sequence, (piece, is_last)) in (1..).zip(pieces) {
                let piece = frame::write(if is_last { 0 } else { MORE }, sequence, &piece);
                let sent = client.publish(upload.clone(), piece).await;
                // Without its last piece the request is not processed.
                sent.map_err(|error| BusError::Client(error.to_string()))?;
            }
        }
        Ok(replies)
    }

    /// Receives the requests at a subject. Of several receivers with the same queue, one receives each request.
    pub async fn serve(&self, subject: &str, queue: Option<&str>) -> Result<Requests, BusError> {
        let client = self.0.client.clone();
        let subscribed = match queue {
            Some(queue) => client.queue_subscribe(subject.to_owned(), queue.to_owned()).await,
            None => client.subscribe(subject.to_owned()).await,
        };
        let subscriber = subscribed.map_err(|error| BusError::Client(error.to_string()))?;
        // The subject is published only after the server knows the subscription.
        if self.is_connected() {
            self.await_server().await?;
        }
        let (inbox, piece) = (Arc::clone(&self.0.inbox), self.piece_bytes());
        Ok(Requests { subscriber, client, inbox, piece, uploads: JoinSet::new() })
    }

    /// Waits until the server has processed what this connection has sent so far, by a message to itself: the server processes
    /// the messages of a connection in order, and `flush` only writes them. After a timeout the work goes on.
    async fn await_server(&self) -> Result<(), BusError> {
        let client = &self.0.client;
        let failed = |error: String| BusError::Client(error);
        let probe = client.new_inbox();
        let mut own = client.subscribe(probe.clone()).await.map_err(|error| failed(error.to_string()))?;
        client.publish(probe, Bytes::new()).await.map_err(|error| failed(error.to_string()))?;
        let _ = tokio::time::timeout(ROUND_TRIP_TIMEOUT, own.next()).await;
        Ok(())
    }

    /// Publishes an event. Without a connection it is dropped.
    pub async fn publish(&self, subject: &str, message: Bytes) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Disconnected);
        }
        if message.len() > self.piece_bytes() {
            return Err(BusError::TooLarge { bytes: message.len() });
        }
        let sent = self.0.client.publish(subject.to_owned(), message).await;
        sent.map_err(|error| BusError::Client(error.to_string()))
    }

    /// Receives the events at a subject, which may contain wildcards.
    pub async fn subscribe(&self, subject: &str) -> Result<BusEvents, BusError> {
        let subscribed = self.0.client.subscribe(subject.to_owned()).await;
        subscribed.map(BusEvents).map_err(|error| BusError::Client(error.to_string()))
    }

    /// Ends the connection: from here on everything fails.
    #[cfg(test)]
    pub(crate) async fn close(&self) {
        let _ = self.0.client.drain().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// Waits until the server has all that was sent, at most for `limit`.
    pub async fn flush(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.0.client.flush()).await;
    }
}

/// Adds the credentials in a file.
async fn with_credentials(options: ConnectOptions, file: &Path) -> std::io::Result<ConnectOptions> {
    let text = tokio::fs::read_to_string(file).await?;
    if text.contains(JWT_MARK) {
        return options.credentials(&text);
    }
    let seed = text.lines().map(str::trim).find(|line| line.starts_with(USER_SEED));
    let seed =
        seed.ok_or_else(|| std::io::Error::other("it has neither a JWT nor the NKey seed of a user"))?;
    Ok(options.nkey(seed.to_owned()))
}

/// The events at a subject.
#[derive(Debug)]
pub struct BusEvents(async_nats::Subscriber);

impl BusEvents {
    /// The next event; `None` after the end of the connection. Cancel safe.
    pub async fn next(&mut self) -> Option<BusEvent> {
        let message = self.0.next().await?;
        Some(BusEvent { subject: message.subject.to_string(), payload: message.payload })
    }
}

/// An event.
#[derive(Debug, Clone)]
pub struct BusEvent {
    /// The subject to which it was published.
    pub subject: String,
    /// The message.
    pub payload: Bytes,
}
