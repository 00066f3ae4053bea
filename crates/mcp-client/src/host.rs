//! Implements the engine's `ToolHost` for one MCP server.

use std::sync::Arc;

use toolhub_core::{BoxFuture, CallContext, RawJson, Source, Tool, ToolError, ToolHost, ToolOutput};
use toolhub_mcp_wire::McpError;

use crate::connection::{CallOptions, Connection};
use crate::hub_members::without_hub_members;
use crate::request_origin::{ProgressForwarder, RequestOrigin};
use crate::server_status::FailureMark;
use crate::supervisor::Server;
use crate::transport::Repeat;

/// Calls tools of one server, connecting if necessary.
#[derive(Debug)]
pub struct McpHost {
    server: Arc<Server>,
}

impl McpHost {
    /// Creates the host of `server`.
    pub fn new(server: Arc<Server>) -> Self {
        Self { server }
    }

    async fn try_call(
        &self,
        tool: &Tool,
        arguments: &RawJson,
        context: &CallContext,
    ) -> Result<RawJson, McpError> {
        let server = self.server.instance(context.caller.as_ref())?;
        let (in_use, ready) = server.begin_call();
        let (connection, began) = match ready {
            Some(ready) => ready,
            None => Box::pin(connect_and_mark(&server)).await?,
        };
        let forwarder = Arc::new(ProgressForwarder::new(context.clone()));
        let origin = context.caller.as_ref();
        let origin = origin.map(|link| RequestOrigin::for_call(link.clone(), &forwarder, || self.source()));
        let repeat = if tool.hints().may_repeat() { Repeat::Safe } else { Repeat::IfUnprocessed };
        let options = CallOptions { listener: forwarder, origin, repeat };
        let mut result = connection.call_tool(&tool.definition, arguments, &options).await;
        if let Err(McpError::SessionExpired { effect }) = result
            && server.discard_expired(&connection, effect, repeat)
        {
            // Rarely used futures are boxed, to keep the common one small.
            result = Box::pin(async {
                let connection = server.connection().await?;
                connection.call_tool(&tool.definition, arguments, &options).await
            })
            .await;
        }
        let failure = match result.as_ref().err() {
            Some(error) if context.caller.as_ref().is_some_and(|caller| caller.principal_id().is_some()) => {
                Box::pin(server.counted_failure(&connection, error)).await
            }
            error => error,
        };
        in_use.end(began, failure);
        result
    }
}

async fn connect_and_mark(server: &Arc<Server>) -> Result<(Arc<Connection>, FailureMark), McpError> {
    let connection = server.connection().await?;
    Ok((connection, server.failure_mark()))
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
            ToolOutput::from_raw(without_hub_members(raw)).ok_or_else(|| ToolError::Unreadable {
                server: server.clone(),
                detail: "the result is not an object".to_owned(),
            })
        })
    }
}
