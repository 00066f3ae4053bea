//! Opens the protocol: `server/discover` for modern servers, `initialize` for legacy ones.

use serde::Deserialize;
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::era::{LEGACY, MODERN, client_info};
use toolhub_mcp_wire::jsonrpc::{ModernMeta, RequestMeta};
use toolhub_mcp_wire::{Era, McpError};

use crate::connection::{Channel, McpRequest, ServerInfo};
use crate::server_requests::ServerRequests;
use crate::transport::Repeat;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<DiscoverResultMeta>,
    #[serde(default)]
    capabilities: RawObject,
    #[serde(default)]
    instructions: Option<String>,
}

#[derive(Deserialize)]
struct DiscoverResultMeta {
    #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<PeerInfo>,
}

#[derive(Deserialize, Default)]
struct PeerInfo {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

impl PeerInfo {
    fn label(&self) -> String {
        format!("{} {}", self.name, self.version).trim().to_owned()
    }
}

/// The `_meta` of a modern request before the server's version is known.
pub(crate) fn modern_meta(server_requests: &ServerRequests) -> RequestMeta<'static> {
    let modern =
        ModernMeta { version: MODERN[0], capabilities: server_requests.capabilities(), log_level: None };
    RequestMeta { modern: Some(modern), ..RequestMeta::default() }
}

/// Sends `server/discover` (2026-07-28, server/discover).
pub(crate) async fn send_discover(
    channel: &Channel,
    server_requests: &ServerRequests,
) -> Result<ServerInfo, McpError> {
    let request =
        McpRequest { method: "server/discover".into(), repeat: Repeat::Safe, ..McpRequest::default() };
    let result = channel.request(&request, modern_meta(server_requests)).await?;
    let discover_result: DiscoverResult = result
        .decode()
        .map_err(|error| McpError::unreadable(format!("`server/discover` was answered oddly: {error}")))?;
    let Some(version) = MODERN
        .iter()
        .find(|candidate| discover_result.supported_versions.iter().any(|offered| offered == *candidate))
    else {
        let theirs = discover_result.supported_versions.join(", ");
        return Err(McpError::unreadable(format!(
            "it supports the versions {theirs}; this client supports {}",
            MODERN.join(", ")
        )));
    };
    let peer = discover_result.meta.and_then(|meta| meta.server_info).unwrap_or_default().label();
    let (capabilities, instructions) = (discover_result.capabilities, discover_result.instructions);
    let (era, version) = (Era::Modern, (*version).to_owned());
    Ok(ServerInfo { era, era_uncertain: false, version, peer, capabilities, instructions })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    server_info: PeerInfo,
    #[serde(default)]
    capabilities: RawObject,
    #[serde(default)]
    instructions: Option<String>,
}

/// Sends `initialize` to a legacy server (2025-11-25, basic/lifecycle). If the server rejects the version with an error that
/// lists another supported one, sends it once more with that version.
pub(crate) async fn send_initialize(
    channel: &Channel,
    server_requests: &ServerRequests,
) -> Result<ServerInfo, McpError> {
    let outcome = hello_with_version(LEGACY[0], channel, server_requests).await;
    let Err(McpError::Rpc { data, .. }) = &outcome else { return outcome };
    match find_supported(data.as_ref(), &LEGACY) {
        Some(version) if version != LEGACY[0] => hello_with_version(version, channel, server_requests).await,
        _ => outcome,
    }
}

/// Never offers a modern version: a server that echoes the offered version would end in a state that neither specification
/// defines.
async fn hello_with_version(
    version: &str,
    channel: &Channel,
    server_requests: &ServerRequests,
) -> Result<ServerInfo, McpError> {
    let params = RawObject::default()
        .with("protocolVersion", version)
        .with("capabilities", server_requests.capabilities())
        .with("clientInfo", client_info());
    let request =
        McpRequest { method: "initialize".into(), params, repeat: Repeat::Safe, ..McpRequest::default() };
    let result = channel.request(&request, RequestMeta::default()).await?;
    let initialize_result: InitializeResult = result
        .decode()
        .map_err(|error| McpError::unreadable(format!("`initialize` was answered oddly: {error}")))?;
    if !LEGACY.contains(&initialize_result.protocol_version.as_str()) {
        let theirs = initialize_result.protocol_version;
        return Err(McpError::unreadable(format!(
            "it requires version `{theirs}`; this client supports {}",
            LEGACY.join(", ")
        )));
    }
    let InitializeResult { protocol_version: version, server_info, capabilities, instructions } =
        initialize_result;
    let (era, peer) = (Era::Legacy, server_info.label());
    Ok(ServerInfo { era, era_uncertain: false, version, peer, capabilities, instructions })
}

/// The first of `versions` that the server lists in its error.
pub(crate) fn find_supported(data: Option<&RawJson>, versions: &[&'static str]) -> Option<&'static str> {
    let theirs = supported_versions(data);
    versions.iter().copied().find(|version| theirs.iter().any(|offered| offered == version))
}

/// The versions that a server lists in its error (2026-07-28, basic/versioning; 2025-11-25, basic/lifecycle: error handling).
pub(crate) fn supported_versions(data: Option<&RawJson>) -> Vec<String> {
    #[derive(Deserialize)]
    struct UnsupportedVersionData {
        supported: Vec<String>,
    }
    data.and_then(|data| data.decode::<UnsupportedVersionData>().ok())
        .map(|data| data.supported)
        .unwrap_or_default()
}
