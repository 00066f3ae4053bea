//! Metadata, registration and authorization endpoints of the authorization server.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::parse;

use super::OAuthState;
use super::authorization::{Client, Grant};
use super::plan::Iss;

pub(super) fn status(code: u16) -> Response {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}

pub(super) fn json_with(code: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body.to_string())).into_response()
}

/// The metadata document at a well-known path.
pub(super) fn document(oauth_state: &OAuthState, path: &str) -> Option<Response> {
    let (plan, issuer_path) = (&oauth_state.plan, oauth_state.plan.issuer_path);
    let openid_appended = format!("{issuer_path}/.well-known/openid-configuration");
    let oauth_inserted = format!("/.well-known/oauth-authorization-server{issuer_path}");
    let server_place = if plan.openid_only { openid_appended } else { oauth_inserted };
    let resource_place = match plan.names_metadata {
        true => "/metadata/of/mcp",
        false => "/.well-known/oauth-protected-resource",
    };
    if path == server_place {
        return Some(json_with(200, &describe_server(oauth_state)));
    }
    if path == resource_place && plan.describes {
        let resource =
            if plan.wrong_resource { "https://elsewhere.example/mcp" } else { &oauth_state.resource() };
        let issuers =
            oauth_state.authorization().issuers.clone().unwrap_or_else(|| vec![oauth_state.issuer()]);
        let document = json!({
            "resource": resource, "authorization_servers": issuers, "scopes_supported": ["read", "write"],
        });
        return Some(json_with(200, &document));
    }
    None
}

fn describe_server(oauth_state: &OAuthState) -> Value {
    let (plan, base) = (&oauth_state.plan, &oauth_state.base);
    let issuer = if plan.wrong_issuer { "https://honest.example".to_owned() } else { oauth_state.issuer() };
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/authorize?kept=yes"),
        "token_endpoint": format!("{base}/token"),
        "revocation_endpoint": format!("{base}/revoke"),
        "response_types_supported": ["code"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "authorization_response_iss_parameter_supported": matches!(plan.iss, Iss::Right | Iss::Missing),
        "client_id_metadata_document_supported": plan.client_documents,
    });
    if let Some(endpoint) = &oauth_state.authorization().token_endpoint {
        document["token_endpoint"] = json!(endpoint);
    }
    if plan.pkce {
        document["code_challenge_methods_supported"] = json!(["plain", "S256"]);
    }
    if plan.registration {
        document["registration_endpoint"] = json!(format!("{base}/register"));
    }
    document
}

/// Dynamic client registration (RFC 7591).
pub(super) fn register(oauth_state: &OAuthState, body: &[u8]) -> Response {
    let mut authorization = oauth_state.authorization();
    let registration: Value = serde_json::from_slice(body).unwrap_or_default();
    let redirects: Vec<String> =
        serde_json::from_value(registration["redirect_uris"].clone()).unwrap_or_default();
    // A native application listens on a port that it opened for the login.
    let is_web = redirects.iter().any(|redirect| redirect.ends_with("/login/callback"));
    let expected_type = if is_web { "web" } else { "native" };
    if redirects.is_empty() || registration["application_type"] != expected_type {
        authorization.record_violation(format!("an unexpected registration: {registration}"));
        return json_with(400, &json!({"error": "invalid_redirect_uri"}));
    }
    authorization.counts.registered += 1;
    let id = format!("client-{}", authorization.counts.registered);
    authorization.clients.insert(id.clone(), Client { secret: None, redirects });
    json_with(201, &json!({"client_id": id, "token_endpoint_auth_method": "none"}))
}

/// The authorization endpoint: grants or denies, and redirects the browser immediately.
pub(super) fn authorize(oauth_state: &OAuthState, query: &str) -> Response {
    let mut authorization = oauth_state.authorization();
    authorization.counts.authorized += 1;
    let value = |name: &str| {
        parse(query.as_bytes()).find_map(|(key, value)| (key == name).then(|| value.into_owned()))
    };
    let get = |name: &str| value(name).unwrap_or_default();
    let (client, redirect) = (get("client_id"), get("redirect_uri"));
    let by_document = oauth_state.plan.client_documents && client.starts_with("https://");
    let known = authorization.clients.get(&client).map(|client| client.redirects.clone());
    let is_loopback = redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback");
    match known {
        Some(list) if list.contains(&redirect) || (list.is_empty() && is_loopback) => {}
        None if by_document && is_loopback => {}
        _ => {
            authorization.record_violation(format!("an unknown client or redirect: {client} {redirect}"));
            return status(400);
        }
    }
    for (name, expect) in [
        ("response_type", "code"),
        ("code_challenge_method", "S256"),
        ("resource", &oauth_state.resource()),
        ("kept", "yes"),
    ] {
        if get(name) != expect {
            authorization
                .record_violation(format!("`{name}` is `{}` at the authorization endpoint", get(name)));
        }
    }
    authorization.last_scopes = get("scope");
    let Ok(mut back) = Url::parse(&redirect) else { return status(400) };
    back.query_pairs_mut().append_pair("state", &get("state"));
    if oauth_state.plan.denies {
        back.query_pairs_mut()
            .append_pair("error", "access_denied")
            .append_pair("error_description", "not today");
    } else {
        let code = authorization.secret("code");
        let (scopes, challenge) = (get("scope"), get("code_challenge"));
        let user = authorization.user.clone();
        authorization.codes.insert(code.clone(), Grant { client, scopes, challenge, redirect, user });
        back.query_pairs_mut().append_pair("code", &code);
    }
    match oauth_state.plan.iss {
        Iss::Right => drop(back.query_pairs_mut().append_pair("iss", &oauth_state.issuer())),
        Iss::Wrong => drop(back.query_pairs_mut().append_pair("iss", "https://attacker.example")),
        Iss::Silent | Iss::Missing => {}
    }
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}
