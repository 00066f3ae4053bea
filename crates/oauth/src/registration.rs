//! Client registration, in the order of the specification (2026-07-28, client registration): preregistered, client id metadata
//! document, dynamic registration (RFC 7591).

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhub_core::{OAuthSpec, Secret};

use crate::error::OAuthError;
use crate::fetch::Fetch;
use crate::issuer::Issuer;
use crate::plain_text::write_plain;
use crate::record::Record;
use crate::scopes::Scopes;

/// The client authentication method at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// The client registered at one authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    /// Only a secret from dynamic registration; a configured one stays in the configuration.
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) secret: Option<Secret>,
    pub(crate) method: Method,
    /// The details of a dynamic registration.
    #[serde(default)]
    registered: Option<DynamicRegistration>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DynamicRegistration {
    /// The port of a redirect to this machine, which is used again, since many servers compare the complete URI.
    port: u16,
    /// The redirect URI; `None` if an earlier version registered it.
    #[serde(default)]
    redirect_uri: Option<String>,
    scopes: Scopes,
    /// When the secret expires, in Unix seconds; 0 for never.
    #[serde(default)]
    secret_expires_at: u64,
}

/// The requirements for a client.
pub(crate) struct ClientRequirements<'a> {
    pub(crate) spec: &'a OAuthSpec,
    /// The previous login, if any.
    pub(crate) before: Option<&'a Record>,
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

impl Client {
    /// The configured client with its secret.
    pub(crate) fn configured(spec: &OAuthSpec, issuer: &Issuer) -> Option<Self> {
        let id = spec.client_id.clone()?;
        let secret = spec.client_secret.clone();
        let method = if secret.is_some() { secret_method(issuer) } else { Method::Public };
        Some(Self { id, secret, method, registered: None })
    }

    /// Adds the configured secret if the client is the configured one.
    pub(crate) fn with_secret_of(&self, spec: &OAuthSpec) -> Self {
        match spec.client_id.as_ref() == Some(&self.id) {
            true => Self { secret: spec.client_secret.clone(), ..self.clone() },
            false => self.clone(),
        }
    }

    /// Removes the secret if it is in the configuration, so that it is not stored a second time.
    pub(crate) fn without_secret_of(mut self, spec: &OAuthSpec) -> Self {
        if spec.client_id.as_ref() == Some(&self.id) {
            self.secret = None;
        }
        self
    }

    /// The port of an earlier registration.
    pub(crate) fn port(&self) -> Option<u16> {
        self.registered.as_ref().map(|registered| registered.port).filter(|port| *port != 0)
    }

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
    fetch: &Fetch,
    issuer: &Issuer,
    requirements: &ClientRequirements<'_>,
) -> Result<Client, OAuthError> {
    if let Some(client) = Client::configured(requirements.spec, issuer) {
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
        return Ok(Client { id: url.clone(), secret: None, method: Method::Public, registered: None });
    }
    // A client of another authorization server is not valid here (2026-07-28, authorization server binding), and one whose
    // login has ended may have been deleted.
    let alive = |record: &&Record| record.issuer == issuer.name && record.tokens.access.is_some();
    let before = requirements.before.filter(alive).map(|record| &record.client);
    match (before.filter(|client| client.can_reuse(requirements)), &issuer.register) {
        (Some(client), _) => Ok(client.clone()),
        (None, Some(endpoint)) => register(fetch, endpoint, (issuer, requirements)).await,
        (None, None) => Err(OAuthError::NoRegistration { issuer: issuer.name.clone() }),
    }
}

#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

async fn register(
    fetch: &Fetch,
    endpoint: &url::Url,
    (issuer, requirements): (&Issuer, &ClientRequirements<'_>),
) -> Result<Client, OAuthError> {
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
    let answer: Answer = fetch.answer(request, endpoint, &[]).await?;
    let method = match (&answer.client_secret, answer.token_endpoint_auth_method.as_deref()) {
        (None, _) | (_, Some("none")) => Method::Public,
        (_, Some("client_secret_post")) => Method::Post,
        (_, Some("client_secret_basic")) => Method::Basic,
        (Some(_), _) => secret_method(issuer),
    };
    let registered = Some(DynamicRegistration {
        port: requirements.redirect.port.unwrap_or_default(),
        redirect_uri: Some(requirements.redirect.uri.to_owned()),
        scopes: requirements.scopes.clone(),
        secret_expires_at: answer.client_secret_expires_at.unwrap_or_default(),
    });
    Ok(Client { id: answer.client_id, secret: answer.client_secret, method, registered })
}

fn supports_method(issuer: &Issuer, method: &str) -> bool {
    issuer.client_methods.as_ref().is_some_and(|methods| methods.iter().any(|known| known == method))
}

/// How to send a secret: in the header, which every server must support, unless it lists only `client_secret_post`.
fn secret_method(issuer: &Issuer) -> Method {
    match supports_method(issuer, "client_secret_post") && !supports_method(issuer, "client_secret_basic") {
        true => Method::Post,
        false => Method::Basic,
    }
}

/// A native application cannot keep a secret, so it requests a public client if possible.
fn preferred_method(issuer: &Issuer) -> Method {
    let secret_only = issuer.client_methods.is_some() && !supports_method(issuer, "none");
    if secret_only { secret_method(issuer) } else { Method::Public }
}

fn name_of(method: Method) -> &'static str {
    match method {
        Method::Public => "none",
        Method::Basic => "client_secret_basic",
        Method::Post => "client_secret_post",
    }
}
