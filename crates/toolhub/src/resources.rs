//! Reads a resource or a prompt of a server for the local user. What was read is recorded before it is returned.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::audit::UseEvent;
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::LOCAL;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject, ToolError};
use toolhub_mcp_client::ForwardedRequest;

use crate::hub::Hub;

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Hub {
    /// The result of `resources/read`, unchanged; `None` if no server has that id.
    pub async fn read_resource(&self, id: &str, uri: &str) -> Option<Result<RawJson, ToolError>> {
        let params = RawObject::default().with("uri", uri);
        let result = self.request(id, "resources/read", uri, params).await?;
        Some(self.recorded(result, local_use("read", uri, id)).await)
    }

    /// The result of `prompts/get`, unchanged; `None` if no server has that id.
    pub async fn get_prompt(
        &self,
        id: &str,
        name: &str,
        arguments: RawObject,
    ) -> Option<Result<RawJson, ToolError>> {
        let params = RawObject::default().with("name", name).with("arguments", arguments.into_raw());
        let result = self.request(id, "prompts/get", name, params).await?;
        Some(self.recorded(result, local_use("get prompt", name, id)).await)
    }

    /// The result, once its use is in the audit log.
    async fn recorded(
        &self,
        result: Result<RawJson, ToolError>,
        used: UseEvent,
    ) -> Result<RawJson, ToolError> {
        let result = result?;
        self.record_use(&Arc::from(LOCAL), used).await.map_err(|error| {
            ToolError::failed(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)))
        })?;
        Ok(result)
    }

    async fn request(
        &self,
        id: &str,
        method: &str,
        name: &str,
        params: RawObject,
    ) -> Option<Result<RawJson, ToolError>> {
        let server = self.servers.find(id)?;
        let forwarded = ForwardedRequest {
            method: method.to_owned(),
            params,
            name: Some(name.to_owned()),
            caller: None,
            timeout: REQUEST_TIMEOUT,
        };
        Some(server.forward(forwarded).await.map_err(|error| error.into_tool_error(server.id())))
    }
}

/// The use of an item of a server by the local user. No rule restricts this principal.
fn local_use(operation: &str, item: &str, server: &str) -> UseEvent {
    UseEvent {
        operation: operation.to_owned(),
        item: item.to_owned(),
        server: Some(server.to_owned()),
        rule: None,
    }
}
