//! Runs a server for other processes: connects to it here, and forwards their requests over the connection.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolhub_core::caller::ClientResponse;
use toolhub_core::error::Effect;
use toolhub_core::{BoxFuture, CallerHandle, RawJson, RawObject};
use toolhub_mcp_wire::{Era, McpError};

use crate::connection::{Connection, McpRequest};
use crate::relay::{Forwarding, Peer, ProgressForwarder, RelayedError, RequestCaller, Welcome};
use crate::request_origin::RequestOrigin;
use crate::server_status::RequestPurpose;
use crate::supervisor::Server;
use crate::transport::{Repeat, RequestObserver};

/// One instance of a server that this process runs for others. All its callers share its connection.
#[derive(Debug)]
pub struct ServedServer {
    server: Arc<Server>,
    current: Mutex<Current>,
}

/// The connection that was reported last, with its number.
#[derive(Debug, Default)]
struct Current {
    number: u64,
    connection: Weak<Connection>,
}

/// A request of another process.
#[derive(Debug)]
pub struct ServedRequest {
    /// The number of the connection that it is for, as [`ServedServer::open`] returned it.
    pub connection: u64,
    /// The JSON-RPC message.
    pub message: Vec<u8>,
    /// `RemoteRequest::forwarding`.
    pub forwarding: RawJson,
    /// The principal that it is sent for.
    pub principal: Option<String>,
    /// The client behind it, by a number that is unique in the cluster; `None` for requests of a hub itself.
    pub client: Option<u64>,
}

/// The other process, during one request.
pub trait RemoteClient: Send + Sync {
    /// Sends a notification. It may be dropped.
    fn notify(&self, method: &str, params: &RawObject);

    /// Sends a request of the server, and returns the answer of the client.
    fn ask<'a>(&'a self, method: &'a str, params: Option<&'a RawJson>) -> BoxFuture<'a, ClientResponse>;
}

impl ServedServer {
    /// Serves `server`, which is not connected yet.
    pub fn new(server: Arc<Server>) -> Self {
        Self { server, current: Mutex::default() }
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Whether it is connected, connecting, or has a request in flight.
    pub fn is_in_use(&self) -> bool {
        self.server.is_in_use()
    }

    /// Connects if necessary. Returns the number of the connection and the server's description of itself, or the failure.
    pub async fn open(&self) -> Result<(u64, RawJson), RawJson> {
        // The calling process has its own breaker, so the one of this process must not delay it.
        self.server.allow_retry();
        let guard = self.server.begin_request(RequestPurpose::CallerRequest);
        let connected = self.server.connection().await;
        drop(guard);
        let connection = connected.map_err(|error| report(&error))?;
        let number = {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            if !current.connection.upgrade().is_some_and(|current| Arc::ptr_eq(&current, &connection)) {
                *current = Current { number: current.number + 1, connection: Arc::downgrade(&connection) };
            }
            current.number
        };
        Ok((number, RawJson::of(&Welcome::ready(&connection.server_info))))
    }

    /// Forwards a request. Nothing is sent if the connection is not the one that it is for. Dropping the future cancels the
    /// request.
    pub async fn request(
        &self,
        request: ServedRequest,
        client: Arc<dyn RemoteClient>,
    ) -> Result<RawJson, RawJson> {
        let connection = self.connection(request.connection).ok_or_else(|| report(&expired()))?;
        let request = read(request, client, connection.server_info.era).map_err(|error| report(&error))?;
        let server = &self.server;
        let _guard = server.begin_request(RequestPurpose::CallerRequest);
        let began = server.failure_mark();
        let result = connection.request(request).await;
        server.record_relayed(&connection, began, &result).await;
        result.map_err(|error| report(&error))
    }

    /// The connection with this number, if it is still open.
    fn connection(&self, number: u64) -> Option<Arc<Connection>> {
        let reported = {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            current.connection.upgrade().filter(|_| current.number == number)?
        };
        let open = self.server.lock_status().open().cloned();
        open.filter(|open| Arc::ptr_eq(open, &reported))
    }
}

fn report(error: &McpError) -> RawJson {
    RawJson::of(&RelayedError::from(error))
}

/// Nothing was sent; the other process has to connect again.
fn expired() -> McpError {
    McpError::SessionExpired { effect: Effect::None }
}

#[derive(Deserialize)]
struct ServedMessage<'a> {
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

fn read(request: ServedRequest, client: Arc<dyn RemoteClient>, era: Era) -> Result<McpRequest, McpError> {
    let unreadable = |error: serde_json::Error| {
        // Nothing was sent to the server.
        McpError::connect(format!("a message between the processes of the cluster cannot be read: {error}"))
    };
    let ServedMessage { method, params } = serde_json::from_slice(&request.message).map_err(unreadable)?;
    let forwarding: Forwarding = request.forwarding.decode().map_err(unreadable)?;
    let params = params.map(RawJson::from).and_then(|params| params.object()).unwrap_or_default();
    let is_of_hub = request.client.is_none() && request.principal.is_none();
    let number = request.client.unwrap_or_default();
    let peer = ServedPeer { client, number, principal: request.principal };
    let (caller, params) = RequestCaller::new(Arc::new(peer), era, params);
    let caller = CallerHandle::new(Arc::new(caller));
    let listener: Arc<dyn RequestObserver> = Arc::new(ProgressForwarder(caller.clone()));
    Ok(McpRequest {
        method: method.into(),
        params,
        name: forwarding.name.map(Arc::from),
        arguments: None,
        headers: forwarding.headers,
        listener: Some(listener),
        origin: Some(RequestOrigin::new(caller)),
        is_of_hub,
        repeat: if forwarding.repeatable { Repeat::Safe } else { Repeat::IfUnprocessed },
    })
}

/// The caller behind a request.
struct ServedPeer {
    client: Arc<dyn RemoteClient>,
    number: u64,
    principal: Option<String>,
}

impl Peer for ServedPeer {
    fn number(&self) -> u64 {
        self.number
    }

    fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    fn notify(&self, method: &str, params: &RawObject) {
        self.client.notify(method, params);
    }

    fn ask<'a>(&'a self, method: &'a str, params: Option<&'a RawJson>) -> BoxFuture<'a, ClientResponse> {
        self.client.ask(method, params)
    }
}
