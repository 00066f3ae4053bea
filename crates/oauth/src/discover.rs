//! Finds the authorization server for a server's URL, and validates each step.

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::era::MODERN;
use toolhub_mcp_wire::headers::{METHOD_HEADER, PROTOCOL_VERSION};
use toolhub_mcp_wire::jsonrpc;
use toolhub_mcp_wire::jsonrpc::{ModernMeta, RequestContent, RequestMeta};
use url::Url;

use crate::binding::IssuerPolicy;
use crate::challenge::Challenge;
use crate::client::RegisteredClient;
use crate::error::OAuthError;
use crate::fetch::{LoginFetcher, sanitize_text, send};
use crate::http_client::host_and_port;
use crate::issuer::{Issuer, IssuerLookup};
use crate::record::{LoginRecord, Tokens};
use crate::resource::{ProtectedResource, resource_identifier};
use crate::scopes::Scopes;

/// The result of the discovery.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// The resource indicator for token requests (RFC 8707).
    pub(crate) resource: String,
    /// The scopes that the resource lists.
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) issuer: Issuer,
}

impl Discovery {
    /// A new login at the authorization server that was found.
    pub(crate) fn record(self, client: RegisteredClient, tokens: Tokens, requested: Scopes) -> LoginRecord {
        LoginRecord {
            key_sha256: None,
            resource: self.resource,
            issuer: self.issuer.name,
            token_endpoint: self.issuer.token.to_string(),
            revocation_endpoint: self.issuer.revoke.map(|url| url.to_string()),
            client,
            tokens,
            requested,
            missing: Scopes::default(),
        }
    }
}

/// Sends a request without a token, to obtain the challenge. Uses a request without side effects.
pub(crate) async fn fetch_challenge(
    fetch: &LoginFetcher,
    server: &Url,
    headers: HeaderMap,
) -> Result<Option<Challenge>, OAuthError> {
    let version = MODERN[0];
    let content = RequestContent { method: "server/discover", call: None, params: &RawObject::default() };
    let meta = RequestMeta {
        modern: Some(ModernMeta { version, capabilities: RawJson::empty_object(), log_level: None }),
        ..RequestMeta::default()
    };
    let request = fetch
        .post(server)?
        .headers(headers)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header(PROTOCOL_VERSION, version)
        .header(METHOD_HEADER, "server/discover")
        .body(jsonrpc::serialize_request(1, content, &meta));
    let response = send(request, server).await?;
    let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    Ok(Challenge::bearer(response.headers()).filter(|_| refused))
}

/// Finds the authorization server of `server`.
pub(crate) async fn discover_issuer(
    fetch: &LoginFetcher,
    server: &Url,
    allowed: &IssuerPolicy,
    challenge: Option<&Challenge>,
) -> Result<Discovery, OAuthError> {
    let resource = ProtectedResource::find(fetch, server, challenge).await?;
    let listed = resource.as_ref().map(|resource| resource.issuers.as_slice()).unwrap_or_default();
    let lookup = match (allowed.only(), listed.first()) {
        // A client belongs to one authorization server and must not be used at another.
        (Some(own), Some(first)) if !listed.iter().any(|listed| listed == own) => {
            return Err(allowed.refuse(own, first));
        }
        (Some(own), _) => IssuerLookup::Named(own),
        (None, Some(first)) => IssuerLookup::Named(first),
        (None, None) => IssuerLookup::AtServer(server),
    };
    let issuer = match (Issuer::find(fetch, lookup).await?, lookup) {
        (Some(issuer), _) => issuer,
        (None, IssuerLookup::AtServer(_)) => return Err(OAuthError::NotOffered),
        (None, IssuerLookup::Named(name)) => {
            let location = Url::parse(name).map_or_else(|_| sanitize_text(name), |url| host_and_port(&url));
            let detail = "it does not describe itself as an authorization server".to_owned();
            return Err(OAuthError::Unreadable { location, detail });
        }
    };
    allowed.check(&issuer)?;
    let (name, scopes) = match resource {
        Some(resource) => (resource.name, resource.scopes),
        None => (resource_identifier(server), None),
    };
    Ok(Discovery { resource: name, scopes, issuer })
}
