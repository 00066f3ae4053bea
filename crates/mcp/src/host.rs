//! The tools of one MCP server as the engine sees them.

use std::sync::{Arc, Once};

use serde::Deserialize;
use tokio::time::Instant;
use toolhub_core::{
    BoxFuture, CallContext, EventKind, RawJson, Source, Tool, ToolError, ToolHost, ToolOutput,
};

use crate::asker::Asker;
use crate::connection::{Connection, Heard};
use crate::error::McpError;
use crate::supervisor::{Purpose, Server};
use crate::transport::Listener;

/// Calls tools of one server, connecting it when that is needed.
#[derive(Debug)]
pub struct McpHost {
    server: Arc<Server>,
}

impl McpHost {
    /// The host of `server`.
    pub fn new(server: Arc<Server>) -> Self {
        Self { server }
    }

    async fn try_call(
        &self,
        tool: &Tool,
        arguments: &RawJson,
        context: &CallContext,
    ) -> Result<RawJson, McpError> {
        let _in_use = self.server.hold(Purpose::Work);
        let mut connection = self.server.connection().await?;
        let asker = context.caller.clone().map(|link| Asker::new(link, Some(context.clone())));
        let asker = asker.map(|asker| asker.at(|| self.source()));
        let listener = Arc::new(Follower { context: context.clone(), left: Once::new() });
        let (began, heard) = (Instant::now(), Heard { listener, asker });
        let call = |connection: Arc<Connection>| {
            let heard = heard.clone();
            async move { connection.call_tool(&tool.definition, arguments, heard).await }
        };
        let mut result = call(Arc::clone(&connection)).await;
        // The server did not look at the request, so asking again is safe (2025-11-25, session management).
        if matches!(result, Err(McpError::SessionExpired)) {
            self.server.forget(&connection);
            connection = self.server.connection().await?;
            result = call(connection).await;
        }
        self.server.note(began, result.as_ref().err());
        result
    }
}

#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Hears of one call for its caller and for whoever follows it.
struct Follower {
    context: CallContext,
    /// That it leaves is said once, however many requests it takes.
    left: Once,
}

impl Listener for Follower {
    fn leaves(&self) {
        self.left.call_once(|| self.context.sending());
    }

    fn progress(&self, params: &RawJson) {
        if let Some(caller) = &self.context.caller {
            caller.progress(params);
        }
        if let Ok(Progress { progress, total, message }) = params.decode() {
            self.context.emit(EventKind::Progress { progress, total, message });
        }
    }
}

impl ToolHost for McpHost {
    fn source(&self) -> Source {
        Source::Server(self.server.id().clone())
    }

    fn call<'a>(
        &'a self,
        tool: &'a Tool,
        arguments: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let server = self.server.id();
            let result = self.try_call(tool, arguments, context).await;
            let raw = result.map_err(|error| error.into_tool_error(server))?;
            ToolOutput::from_raw(raw).ok_or_else(|| ToolError::Unreadable {
                server: server.clone(),
                detail: "the result is not an object".to_owned(),
            })
        })
    }
}
