//! Client registration, in the order of the specification (2026-07-28, client registration): preregistered, client id metadata
//! document, dynamic registration (RFC 7591).

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;
use toolhub_core::{OAuthSpec, Secret};

use crate::client::{
    ClientAuthMethod, DynamicRegistration, RegisteredClient, secret_method, supports_method,
};
use crate::error::OAuthError;
use crate::fetch::LoginFetcher;
use crate::issuer::Issuer;
use crate::record::LoginRecord;
use crate::scopes::Scopes;

/// The requirements for a client.
pub(crate) struct ClientRequirements<'a> {
    pub(crate) spec: &'a OAuthSpec,
    /// The previous login, if any.
    pub(crate) before: Option<&'a LoginRecord>,
    pub(crate) redirect: Redirect<'a>,
    pub(crate) scopes: &'a Scopes,
}

/// Where the browser is redirected to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redirect<'a> {
    pub(crate) uri: &'a str,
    /// The port, if it is one of this machine that was opened for the login.
    pub(crate) port: Option<u16>,
}

impl RegisteredClient {
    /// Whether an earlier registration can be reused.
    fn can_reuse(&self, requirements: &ClientRequirements<'_>) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.registered.as_ref().is_some_and(|registered| {
            let Redirect { uri, port } = requirements.redirect;
            registered.redirect_uri.as_ref().map_or(Some(registered.port) == port, |known| known == uri)
                && registered.scopes.contains_all(requirements.scopes)
                && (registered.secret_expires_at == 0 || registered.secret_expires_at > now)
        })
    }
}

/// The client for a login.
pub(crate) async fn client_for(
    fetch: &LoginFetcher,
    issuer: &Issuer,
    requirements: &ClientRequirements<'_>,
) -> Result<RegisteredClient, OAuthError> {
    if let Some(client) = RegisteredClient::configured(requirements.spec, issuer) {
        return Ok(client);
    }
    if let Some(url) =
        requirements.spec.client_metadata_url.as_ref().filter(|_| issuer.supports_client_documents)
    {
        let fits = url::Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
        if !fits {
            let wrong = format!("`client_metadata_url` `{url}` should be an https url with a path");
            return Err(OAuthError::Config(wrong));
        }
        return Ok(RegisteredClient {
            id: url.clone(),
            secret: None,
            method: ClientAuthMethod::Public,
            registered: None,
        });
    }
    // A client of another authorization server is not valid here (2026-07-28, authorization server binding), and one whose
    // login has ended may have been deleted.
    let alive = |record: &&LoginRecord| record.issuer == issuer.name && record.tokens.access.is_some();
    let before = requirements.before.filter(alive).map(|record| &record.client);
    match (before.filter(|client| client.can_reuse(requirements)), &issuer.register) {
        (Some(client), _) => Ok(client.clone()),
        (None, Some(endpoint)) => register(fetch, endpoint, issuer, requirements).await,
        (None, None) => Err(OAuthError::NoRegistration { issuer: issuer.name.clone() }),
    }
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

async fn register(
    fetch: &LoginFetcher,
    endpoint: &url::Url,
    issuer: &Issuer,
    requirements: &ClientRequirements<'_>,
) -> Result<RegisteredClient, OAuthError> {
    let mut metadata = json!({
        "client_name": "toolhub",
        "redirect_uris": [requirements.redirect.uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": name_of(preferred_method(issuer)),
        // Without it OpenID providers assume a web application and refuse the redirect URI.
        "application_type": if requirements.redirect.port.is_some() { "native" } else { "web" },
    });
    if !requirements.scopes.is_empty() {
        metadata["scope"] = json!(requirements.scopes.to_string());
    }
    let request = fetch.post(endpoint)?.header(CONTENT_TYPE, "application/json").body(metadata.to_string());
    let answer: RegistrationResponse = fetch.answer(request, endpoint, &[]).await?;
    let method = match (&answer.client_secret, answer.token_endpoint_auth_method.as_deref()) {
        (None, _) | (_, Some("none")) => ClientAuthMethod::Public,
        (_, Some("client_secret_post")) => ClientAuthMethod::Post,
        (_, Some("client_secret_basic")) => ClientAuthMethod::Basic,
        (Some(_), _) => secret_method(issuer),
    };
    let registered = Some(DynamicRegistration {
        port: requirements.redirect.port.unwrap_or_default(),
        redirect_uri: Some(requirements.redirect.uri.to_owned()),
        scopes: requirements.scopes.clone(),
        secret_expires_at: answer.client_secret_expires_at.unwrap_or_default(),
    });
    Ok(RegisteredClient { id: answer.client_id, secret: answer.client_secret, method, registered })
}

/// A native application cannot keep a secret, so it requests a public client if possible.
fn preferred_method(issuer: &Issuer) -> ClientAuthMethod {
    let secret_only = issuer.client_methods.is_some() && !supports_method(issuer, "none");
    if secret_only { secret_method(issuer) } else { ClientAuthMethod::Public }
}

fn name_of(method: ClientAuthMethod) -> &'static str {
    match method {
        ClientAuthMethod::Public => "none",
        ClientAuthMethod::Basic => "client_secret_basic",
        ClientAuthMethod::Post => "client_secret_post",
    }
}
