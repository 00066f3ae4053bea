//! Forwards requests other than tool calls to a server unchanged.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::lang::LocalizedText;
use toolhub_core::{CallerHandle, RawJson, RawObject};
use toolhub_mcp_wire::{Era, McpError};

use crate::config::Credentials;
use crate::connection::{Connection, McpRequest};
use crate::request_origin::RequestOrigin;
use crate::server_status::RequestPurpose;
use crate::supervisor::Server;
use crate::transport::{Repeat, RequestObserver};

/// A request to be forwarded.
#[derive(Debug, Clone)]
pub struct ForwardedRequest {
    /// The method.
    pub method: String,
    /// The params, without `_meta`.
    pub params: RawObject,
    /// The value of the `Mcp-Name` header for modern servers: the URI of a resource, the name of a prompt.
    pub name: Option<String>,
    /// The client that sent it.
    pub caller: Option<CallerHandle>,
    /// The timeout.
    pub timeout: Duration,
}

impl Server {
    /// Forwards a request, connecting if necessary, and returns the raw result.
    pub async fn forward(self: &Arc<Self>, forwarded: ForwardedRequest) -> Result<RawJson, McpError> {
        let server = self.instance(forwarded.caller.as_ref())?;
        let _in_use = server.begin_request(RequestPurpose::CallerRequest);
        let mut connection = server.connection().await?;
        let began = server.failure_mark();
        let mut result = send_forwarded(&connection, &forwarded).await;
        if let Err(McpError::SessionExpired { effect }) = result
            && server.discard_expired(&connection, effect, repeat_of(&forwarded.method))
        {
            connection = server.connection().await?;
            result = send_forwarded(&connection, &forwarded).await;
        }
        let failure = match result.as_ref().err() {
            Some(error)
                if forwarded.caller.as_ref().is_some_and(|caller| caller.principal_id().is_some()) =>
            {
                server.counted_failure(&connection, error).await
            }
            error => error,
        };
        server.record_outcome(began, failure);
        result
    }

    /// The server's capabilities, if it is connected.
    pub fn capabilities(&self) -> Option<RawObject> {
        self.lock_status().open().map(|connection| connection.server_info.capabilities.clone())
    }

    /// The server's instructions, if it is connected and has sent some.
    pub fn instructions(&self) -> Option<String> {
        self.lock_status().open().and_then(|connection| connection.server_info.instructions.clone())
    }

    /// Subscribes to a resource or unsubscribes. For a modern server, this changes the filter of the open subscription stream.
    pub async fn watch_resource(self: &Arc<Self>, uri: &str, subscribe: bool) -> Result<(), McpError> {
        if self.spec().credentials != Credentials::Shared {
            // The connection of the hub would serve all callers.
            return Err(McpError::permanent(LocalizedText::new(
                "its resources cannot be subscribed to, since each caller has its own credentials",
                "每个调用方使用各自的凭据，因此无法订阅其资源",
            )));
        }
        let _in_use = self.begin_request(RequestPurpose::CallerRequest);
        let connection = match subscribe {
            true => self.connection().await?,
            // A subscription of a legacy server ends with its connection, so no process is started to end one.
            false => {
                let open = self.lock_status().open().cloned();
                let Some(open) = open else {
                    self.subscribed_uris().send_if_modified(|uris| uris.remove(uri));
                    return Ok(());
                };
                open
            }
        };
        if connection.server_info.era == Era::Modern {
            self.subscribed_uris().send_if_modified(|uris| {
                if subscribe { uris.insert(uri.to_owned()) } else { uris.remove(uri) }
            });
            return Ok(());
        }
        let method = if subscribe { "resources/subscribe" } else { "resources/unsubscribe" };
        let forwarded = ForwardedRequest {
            method: method.to_owned(),
            params: RawObject::default().with("uri", uri),
            name: None,
            caller: None,
            timeout: self.spec().connect_timeout,
        };
        send_forwarded(&connection, &forwarded).await.map(drop)
    }
}

/// Read-only methods. Any other is sent once, unless the server refused it before processing.
const READ_ONLY_METHODS: [&str; 7] = [
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "prompts/get",
    "completion/complete",
    "tasks/get",
];

fn repeat_of(method: &str) -> Repeat {
    if READ_ONLY_METHODS.contains(&method) { Repeat::Safe } else { Repeat::IfUnprocessed }
}

/// Forwards progress notifications to the caller.
struct ForwardProgress(CallerHandle);

impl RequestObserver for ForwardProgress {
    fn on_send(&self) {}

    fn progress(&self, params: &RawJson) {
        self.0.progress(params);
    }
}

async fn send_forwarded(
    connection: &Arc<Connection>,
    forwarded: &ForwardedRequest,
) -> Result<RawJson, McpError> {
    let ForwardedRequest { method, params, name, caller, timeout } = forwarded.clone();
    let origin = caller.map(RequestOrigin::new);
    let listener = origin
        .as_ref()
        .map(|origin| Arc::new(ForwardProgress(origin.link.clone())) as Arc<dyn RequestObserver>);
    let name = name.map(Arc::from);
    let repeat = repeat_of(&method);
    let request =
        McpRequest { method: method.into(), params, name, listener, origin, repeat, ..McpRequest::default() };
    match tokio::time::timeout(timeout, connection.request(request)).await {
        Ok(result) => result,
        Err(_) => Err(McpError::TimedOut(timeout)),
    }
}
