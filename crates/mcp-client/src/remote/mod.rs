//! Servers that run in other processes of a cluster: the port through which this process reaches them, and the side that runs them
//! ([`ServedServer`]). Supervision, listings, routing and records stay with the calling process; messages keep the form of the
//! server's era. How requests travel is up to the implementation of the port.

mod served;

use std::sync::Arc;

use toolhub_core::caller::ClientResponse;
use toolhub_core::{BoxFuture, RawJson, ServerId};
use toolhub_mcp_wire::McpError;

pub use served::{RemoteClient, ServedRequest, ServedServer};

use crate::config::ServerSpec;
use crate::relay::RelayedError;
use crate::transport::ServerMessageHandler;

/// Opens connections to servers that other processes run.
pub trait RemoteServers: Send + Sync {
    /// Whether a server is run by other processes. Otherwise this process connects to it.
    fn runs(&self, spec: &ServerSpec) -> bool;

    /// Connects to an instance of a server: the one of a principal, or the shared one if `owner` is `None`.
    fn open<'a>(
        &'a self,
        spec: &'a ServerSpec,
        owner: Option<&'a str>,
        inbox: RemoteInbox,
    ) -> BoxFuture<'a, Result<RemoteConnection, McpError>>;
}

/// A connection to a server that another process runs.
pub struct RemoteConnection {
    /// The server's description of itself, as [`ServedServer::open`] returned it.
    pub description: RawJson,
    /// Sends requests.
    pub link: Arc<dyn RemoteLink>,
}

impl std::fmt::Debug for RemoteConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteConnection").finish_non_exhaustive()
    }
}

/// Sends requests to a server that another process runs. Dropping it ends the connection.
pub trait RemoteLink: Send + Sync {
    /// Sends a request and waits for its result. Dropping the future cancels the request.
    fn request<'a>(
        &'a self,
        request: RemoteRequest<'a>,
        events: &'a dyn RemoteEvents,
    ) -> BoxFuture<'a, Result<RawJson, RemoteFailure>>;

    /// Whether it is still usable.
    fn is_open(&self) -> bool;
}

/// A request for a server that another process runs.
#[derive(Debug)]
pub struct RemoteRequest<'a> {
    /// The JSON-RPC message.
    pub message: String,
    /// What [`ServedServer::request`] needs beside it, as JSON.
    pub forwarding: RawJson,
    /// The principal it is sent for.
    pub principal: Option<&'a str>,
    /// The number of the client that caused it; `None` for requests of the hub itself.
    pub client: Option<u64>,
}

/// Why there is no result.
#[derive(Debug)]
pub enum RemoteFailure {
    /// The request failed on the way.
    Error(McpError),
    /// What [`ServedServer::request`] returned.
    Reported(RawJson),
}

/// Receives what happens during a request.
pub trait RemoteEvents: Send + Sync {
    /// Called when the request is sent: from here on it may take effect.
    fn on_send(&self);

    /// Receives a notification of the server that belongs to the request.
    fn notification(&self, method: &str, params: Option<&RawJson>);

    /// Answers a request of the server that belongs to the request.
    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse>;
}

/// Receives notifications of a server that belong to no request.
#[derive(Clone)]
pub struct RemoteInbox(pub(crate) Arc<dyn ServerMessageHandler>);

impl RemoteInbox {
    /// Receives a notification.
    pub fn notification(&self, method: &str, params: Option<&RawJson>) {
        self.0.notification(method, params, None);
    }
}

impl std::fmt::Debug for RemoteInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteInbox").finish_non_exhaustive()
    }
}

/// The error that [`ServedServer::open`] or [`ServedServer::request`] reported.
pub fn reported_error(failure: &RawJson, server: &ServerId) -> McpError {
    match failure.decode::<RelayedError>() {
        Ok(failure) => failure.into_error(server),
        Err(error) => McpError::unreadable(format!("a failure of the worker: {error}")),
    }
}

/// How a process that runs a server reports that the request was cut off and may have been processed.
pub fn cut_off(cause: toolhub_core::lang::LocalizedText) -> RawJson {
    RawJson::of(&RelayedError::from(&McpError::Lost { cause, stderr: Vec::new(), exit: None }))
}
