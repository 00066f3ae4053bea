//! The metadata that every modern request carries, in its body and, over HTTP, in its headers (2026-07-28).

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::Era;
use toolhub_mcp_wire::era::{LEGACY, MODERN, UNSUPPORTED_VERSION};
use toolhub_mcp_wire::headers::{METHOD_HEADER, NAME_HEADER};

use crate::PrincipalHandle;
use crate::backend::LIST_TTL_MS;
use crate::client_handle::{CAPABILITIES, ClientInfo, INFO, VERSION};
use crate::header_lookup::{HeaderLookup, PROTOCOL_VERSION};
use crate::known_clients::ClientProtocol;
use crate::message::{ClientRequest, RequestParams};
use crate::rpc_error::RpcError;
use crate::{Gateway, gateway_capabilities, server_info};

/// Headers and body differ.
const HEADER_MISMATCH: i64 = -32020;

/// Returns the result of `server/discover`.
pub(super) fn discover_result(instructions: Option<String>) -> RawJson {
    let info = RawObject::default().with("io.modelcontextprotocol/serverInfo", server_info());
    let versions: Vec<&str> = MODERN.iter().chain(&LEGACY).copied().collect();
    let mut result = RawObject::default()
        .with("resultType", "complete")
        .with("supportedVersions", RawJson::of(&versions))
        .with("capabilities", gateway_capabilities(Era::Modern));
    if let Some(instructions) = instructions {
        result.set("instructions", instructions);
    }
    result.with("ttlMs", LIST_TTL_MS).with("cacheScope", "private").with("_meta", info).into_raw()
}

/// Returns the revision in the body of a request.
pub(super) fn version_of(params: &RequestParams) -> Option<Cow<'_, str>> {
    params.meta.get(VERSION)?.text()
}

impl Gateway {
    /// Returns the client properties that a modern request declares, or the error if they are missing.
    pub(super) fn modern_client_info(&self, params: &RequestParams) -> Result<ClientInfo, RpcError> {
        let missing = |what: &str| RpcError::invalid_params(format!("`params._meta` must have `{what}`"));
        if version_of(params).is_none() {
            return Err(missing(VERSION));
        }
        let can = params.meta.get(CAPABILITIES).filter(|can| can.is_object());
        let can = can.ok_or_else(|| missing(CAPABILITIES))?.clone();
        Ok(ClientInfo {
            number: self.new_client(),
            era: Era::Modern,
            capabilities: can,
            server_requests: Arc::clone(&self.placeholders.0),
            level: Arc::clone(&self.placeholders.1),
        })
    }

    /// Records the client of a modern request with which clients begin.
    pub(super) fn note_modern_client(
        &self,
        request: &ClientRequest,
        params: &RequestParams,
        principal: &PrincipalHandle,
    ) {
        if matches!(&*request.method, "server/discover" | "tools/list") {
            let revision = version_of(params).unwrap_or_default();
            let protocol = ClientProtocol { era: Era::Modern, revision: &revision };
            self.known_clients.record(params.meta.get(INFO), principal.identity(), &protocol);
        }
    }

    /// Checks that the headers of a modern request agree with its body.
    pub(super) fn check_headers(
        &self,
        request: &ClientRequest,
        params: &RequestParams,
        headers: &dyn HeaderLookup,
    ) -> Result<(), RpcError> {
        let wrong = |what: String| header_mismatch(&what);
        let declared = version_of(params);
        if declared.as_deref().is_none_or(|declared| !headers.has_value(PROTOCOL_VERSION, declared)) {
            let version = headers.text(PROTOCOL_VERSION);
            let version = version.ok_or_else(|| wrong("`MCP-Protocol-Version` is missing".to_owned()))?;
            if let Some(declared) = declared {
                return Err(wrong(format!(
                    "`MCP-Protocol-Version` is `{version}`, the body says `{declared}`"
                )));
            }
        }
        let method = &request.method;
        if !headers.has_value(METHOD_HEADER, method) {
            let named =
                headers.text(METHOD_HEADER).ok_or_else(|| wrong("`Mcp-Method` is missing".to_owned()))?;
            return Err(wrong(format!("`Mcp-Method` is `{named}`, the body says `{method}`")));
        }
        let key = match &**method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return Ok(()),
        };
        let body_name = params.text(key);
        let named = headers.text(NAME_HEADER).ok_or_else(|| wrong("`Mcp-Name` is missing".to_owned()))?;
        let named = decode_header(named).ok_or_else(|| wrong("`Mcp-Name` cannot be read".to_owned()))?;
        if body_name.as_deref().is_some_and(|body_name| body_name != named) {
            let body_name = body_name.unwrap_or_default();
            return Err(wrong(format!("`Mcp-Name` is `{named}`, the body says `{body_name}`")));
        }
        Ok(())
    }

    /// Checks that the headers that repeat arguments of a `tools/call` agree with its body.
    pub(super) fn check_mirrored_arguments(
        &self,
        params: &RequestParams,
        headers: &dyn HeaderLookup,
        principal: &PrincipalHandle,
    ) -> Result<(), RpcError> {
        let tools = self.backend.tools(principal.identity());
        let Some(marks) = params.text("name").and_then(|name| tools.mirrored.get(&*name)) else {
            return Ok(());
        };
        let arguments = params.members.get("arguments").cloned();
        let arguments = arguments.unwrap_or_else(RawJson::empty_object).value();
        for mark in marks {
            let name = mark.header_name();
            let (header_value, expected) =
                (headers.text(&name.to_ascii_lowercase()), mark.value_in(&arguments));
            let same = match (header_value, &expected) {
                (None, None) => true,
                (Some(header_value), Some(expected)) => decode_header(header_value)
                    .is_some_and(|header_value| same_value(&header_value, expected)),
                _ => false,
            };
            if !same {
                let expected = expected.unwrap_or_else(|| "nothing".to_owned());
                return Err(header_mismatch(&format!("`{name}` must say what the body says: {expected}")));
            }
        }
        Ok(())
    }
}

fn header_mismatch(what: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("header mismatch: {what}"))
}

/// Returns whether two values are equal. Numbers are compared numerically.
fn same_value(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one.to_bits() == other.to_bits())
}

/// Decodes a header value, which is base64-encoded if it cannot be sent as plain text.
pub(super) fn decode_header(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok().map(Cow::Owned),
    }
}

/// Refuses a revision that is not a supported modern one.
pub(super) fn check_supported(version: &str) -> Result<(), RpcError> {
    if MODERN.contains(&version) {
        return Ok(());
    }
    let versions: Vec<&str> = MODERN.iter().chain(&LEGACY).copied().collect();
    let data = RawObject::default().with("supported", RawJson::of(&versions)).with("requested", version);
    let supported = versions.join(", ");
    let why = format!("unsupported revision `{version}`; supported: {supported}");
    Err(RpcError::new(UNSUPPORTED_VERSION, why).with_data(data))
}
