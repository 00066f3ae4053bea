//! The protected MCP server: a small legacy server that requires a valid token.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::OAuthState;
use super::authorization::Access;
use super::endpoints::{json_with, status};

/// The tool that requires the scope `write`; the other requires none of its own.
const WRITING: &str = "write_note";

pub(super) fn answer(oauth_state: &OAuthState, verb: &Method, headers: &HeaderMap, body: &[u8]) -> Response {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    let tool = message["params"]["name"].as_str().unwrap_or_default();
    let token =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let mut authorization = oauth_state.authorization();
    let access = token.and_then(|token| authorization.access.get(token)).cloned();
    let has = |scopes: &str, scope: &str| scope.is_empty() || scopes.split(' ').any(|known| known == scope);
    let Some(Access { scopes, user }) = access else {
        let scope = if oauth_state.plan.names_scope { oauth_state.plan.scope } else { "" };
        return challenge(oauth_state, 401, &format!("scope=\"{scope}\""));
    };
    if !has(&scopes, oauth_state.plan.scope) {
        return challenge(
            oauth_state,
            403,
            &format!("error=\"insufficient_scope\", scope=\"{}\"", oauth_state.plan.scope),
        );
    }
    if tool == WRITING && !has(&scopes, "write") {
        return challenge(oauth_state, 403, "error=\"insufficient_scope\", scope=\"write\"");
    }
    if *verb != Method::POST {
        return status(405);
    }
    authorization.counts.served += 1;
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "protected", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "whoami", "inputSchema": {"type": "object"}},
            {"name": WRITING, "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => {
            let user = if user.is_empty() { user } else { format!(", user: {user}") };
            json!({"content": [{"type": "text", "text": format!("scopes: {scopes}{user}")}]})
        }
        _ if message.get("id").is_none() => return status(202),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return json_with(200, &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    };
    json_with(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn challenge(oauth_state: &OAuthState, code: u16, more: &str) -> Response {
    let metadata = match oauth_state.plan.names_metadata {
        true => format!("resource_metadata=\"{}/metadata/of/mcp\", ", oauth_state.base),
        false => String::new(),
    };
    let mut response = status(code);
    if oauth_state.plan.describes
        && let Ok(value) = HeaderValue::from_str(&format!("Bearer {metadata}{more}"))
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}
