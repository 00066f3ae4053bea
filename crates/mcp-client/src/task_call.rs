//! Calls of tools that must run as a task (2025-11-25, basic/utilities/tasks): creates the task and waits for its result.
//! Clients of the gateway create and poll tasks themselves.

use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::{Era, McpError};

use crate::connection::{Connection, McpRequest};
use crate::transport::Repeat;

/// The requested lifetime of the task and its result, in milliseconds.
const TASK_TTL_MS: u64 = 3_600_000;

impl Connection {
    /// Calls a tool as a task, and returns the result of the tool.
    pub(crate) async fn call_as_task(&self, mut request: McpRequest) -> Result<RawJson, McpError> {
        if self.server_info.era == Era::Modern {
            return self.request(request).await;
        }
        request.params.set("task", RawObject::default().with("ttl", TASK_TTL_MS));
        let listener = request.listener.clone();
        let created = self.request(request).await?;
        let Some(task) = task_id(&created) else { return Ok(created) };
        // The server answers when the task has ended, and sends input requests meanwhile if necessary.
        self.request(McpRequest {
            method: "tasks/result".into(),
            params: RawObject::default().with("taskId", task),
            listener,
            repeat: Repeat::Safe,
            ..McpRequest::default()
        })
        .await
    }
}

/// The id of the task that a result creates; `None` for other results.
fn task_id(result: &RawJson) -> Option<String> {
    result.object()?.get("task")?.object()?.get("taskId")?.decode().ok()
}
