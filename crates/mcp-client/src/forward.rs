//! Forwards requests other than tool calls to a server unchanged.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::error::Effect;
use toolhub_core::{CallerHandle, RawJson, RawObject};
use toolhub_mcp_wire::{Era, McpError};

use crate::connection::{Ask, Connection};
use crate::request_origin::RequestOrigin;
use crate::supervisor::{Purpose, Server};
use crate::transport::{Listener, Repeat};

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
    pub patience: Duration,
}

impl Server {
    /// Forwards a request, connecting if necessary, and returns the raw result.
    pub async fn pass(self: &Arc<Self>, passage: ForwardedRequest) -> Result<RawJson, McpError> {
        let server = self.instance(passage.caller.as_ref())?;
        let _in_use = server.hold(Purpose::Work);
        let mut connection = server.connection().await?;
        let began = server.mark();
        let mut result = pass_over(&connection, &passage).await;
        if let Err(McpError::SessionExpired { effect }) = &result {
            server.forget(&connection);
            // A request that may have side effects is repeated only if the server certainly did not process it.
            if *effect == Effect::None || repeat_of(&passage.method) == Repeat::Safe {
                connection = server.connection().await?;
                result = pass_over(&connection, &passage).await;
            }
        }
        let of_client = passage.caller.as_ref().is_some_and(|caller| caller.principal().is_some());
        let lost = matches!(result, Err(McpError::Lost { .. }));
        match lost && of_client && server.survives(&connection).await {
            true => server.note(began, None),
            false => server.note(began, result.as_ref().err()),
        }
        result
    }

    /// The server's capabilities, if it is connected.
    pub fn capabilities(&self) -> Option<RawObject> {
        self.lock_status().open().map(|connection| connection.greeting.capabilities.clone())
    }

    /// The server's instructions, if it is connected and has sent some.
    pub fn instructions(&self) -> Option<String> {
        self.lock_status().open().and_then(|connection| connection.greeting.instructions.clone())
    }

    /// Subscribes to a resource or unsubscribes. For a modern server, this changes the filter of the open subscription stream.
    pub async fn watch_resource(self: &Arc<Self>, uri: &str, wanted: bool) -> Result<(), McpError> {
        let _in_use = self.hold(Purpose::Work);
        let connection = self.connection().await?;
        if connection.greeting.era == Era::Modern {
            self.watched().send_if_modified(|watched| {
                if wanted { watched.insert(uri.to_owned()) } else { watched.remove(uri) }
            });
            return Ok(());
        }
        let method = if wanted { "resources/subscribe" } else { "resources/unsubscribe" };
        let passage = ForwardedRequest {
            method: method.to_owned(),
            params: RawObject::default().with("uri", uri),
            name: None,
            caller: None,
            patience: self.spec().connect_timeout,
        };
        pass_over(&connection, &passage).await.map(drop)
    }
}

/// Read-only methods. Any other is sent once, unless the server refused it before processing.
const READS: [&str; 7] = [
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "prompts/get",
    "completion/complete",
    "tasks/get",
];

fn repeat_of(method: &str) -> Repeat {
    if READS.contains(&method) { Repeat::Safe } else { Repeat::IfUnprocessed }
}

/// Forwards progress notifications to the caller.
struct Back(CallerHandle);

impl Listener for Back {
    fn leaves(&self) {}

    fn progress(&self, params: &RawJson) {
        self.0.progress(params);
    }
}

async fn pass_over(connection: &Arc<Connection>, passage: &ForwardedRequest) -> Result<RawJson, McpError> {
    let ForwardedRequest { method, params, name, caller, patience } = passage.clone();
    let origin = caller.map(RequestOrigin::new);
    let listener = origin.as_ref().map(|origin| Arc::new(Back(origin.link.clone())) as Arc<dyn Listener>);
    let name = name.map(Arc::from);
    let repeat = repeat_of(&method);
    let ask = Ask { method: method.into(), params, name, listener, origin, repeat, ..Ask::default() };
    match tokio::time::timeout(patience, connection.ask(ask)).await {
        Ok(result) => result,
        Err(_) => Err(McpError::TimedOut(patience)),
    }
}
