//! Reads a resource or a prompt of a server.

use std::time::Duration;

use toolhub_core::{RawJson, RawObject, ToolError};
use toolhub_mcp_client::ForwardedRequest;

use crate::hub::Hub;

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Hub {
    /// The result of `resources/read`, unchanged; `None` if no server has that id.
    pub async fn read_resource(&self, id: &str, uri: &str) -> Option<Result<RawJson, ToolError>> {
        let params = RawObject::default().with("uri", uri);
        self.request(id, "resources/read", uri, params).await
    }

    /// The result of `prompts/get`, unchanged; `None` if no server has that id.
    pub async fn get_prompt(
        &self,
        id: &str,
        name: &str,
        arguments: RawObject,
    ) -> Option<Result<RawJson, ToolError>> {
        let params = RawObject::default().with("name", name).with("arguments", arguments.into_raw());
        self.request(id, "prompts/get", name, params).await
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
