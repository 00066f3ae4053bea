//! The client that is registered at an authorization server.

use serde::{Deserialize, Serialize};
use toolhub_core::{OAuthSpec, Secret};

use crate::issuer::Issuer;
use crate::plain_text::write_plain;
use crate::scopes::Scopes;

/// The client authentication method at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientAuthMethod {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// The client registered at one authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RegisteredClient {
    pub(crate) id: String,
    /// Only a secret from dynamic registration; a configured one stays in the configuration.
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) secret: Option<Secret>,
    pub(crate) method: ClientAuthMethod,
    /// The details of a dynamic registration.
    #[serde(default)]
    pub(crate) registered: Option<DynamicRegistration>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DynamicRegistration {
    /// The port of a redirect to this machine, which is used again, since many servers compare the complete URI.
    pub(crate) port: u16,
    /// The redirect URI; `None` if an earlier version registered it.
    #[serde(default)]
    pub(crate) redirect_uri: Option<String>,
    pub(crate) scopes: Scopes,
    /// When the secret expires, in Unix seconds; 0 for never.
    #[serde(default)]
    pub(crate) secret_expires_at: u64,
}

impl RegisteredClient {
    /// The configured client with its secret.
    pub(crate) fn configured(spec: &OAuthSpec, issuer: &Issuer) -> Option<Self> {
        let id = spec.client_id.clone()?;
        let secret = spec.client_secret.clone();
        let method = if secret.is_some() { secret_method(issuer) } else { ClientAuthMethod::Public };
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
}

pub(crate) fn supports_method(issuer: &Issuer, method: &str) -> bool {
    issuer.client_methods.as_ref().is_some_and(|methods| methods.iter().any(|known| known == method))
}

/// How to send a secret: in the header, which every server must support, unless it lists only `client_secret_post`.
pub(crate) fn secret_method(issuer: &Issuer) -> ClientAuthMethod {
    match supports_method(issuer, "client_secret_post") && !supports_method(issuer, "client_secret_basic") {
        true => ClientAuthMethod::Post,
        false => ClientAuthMethod::Basic,
    }
}
