//! The requests to a trusted issuer: its metadata, and its JWK set.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use url::Url;

use super::jwk::Jwk;
use super::settings::TrustedIssuer;
use super::token_error::TokenErrorKind;
use crate::error::OAuthError;
use crate::fetch::{LoginFetcher, sanitize_text};
use crate::http_client::host_and_port;
use crate::issuer::well_known;

/// Timeout of everything that one token waits for: discovery and the request that follows.
pub(super) const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Age up to which the endpoints of the metadata are used without reading the metadata again.
pub(super) const MAX_ENDPOINT_AGE: Duration = Duration::from_secs(60 * 60);
/// Maximum keys of a set; further ones are ignored.
const MAX_SET_KEYS: usize = 64;

/// A trusted issuer and the access to it.
pub(super) struct Provider {
    /// The configured issuer identifier.
    pub(super) name: Arc<str>,
    pub(super) settings: TrustedIssuer,
    /// Limits size and time of responses, and the networks that metadata may point to.
    pub(super) fetch: LoginFetcher,
}

/// An endpoint in the metadata of an issuer.
#[derive(Clone, Copy)]
pub(super) enum ProviderEndpoint {
    Keys,
    Introspection,
}

/// Metadata of an authorization server (RFC 8414) or an OpenID provider.
#[derive(Deserialize)]
struct ProviderMetadata {
    issuer: String,
    #[serde(default)]
    jwks_uri: Option<String>,
    #[serde(default)]
    introspection_endpoint: Option<String>,
    #[serde(default)]
    authorization_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// The endpoints for logins of people.
#[derive(Clone)]
pub(super) struct LoginEndpoints {
    pub(super) authorization: Url,
    pub(super) token: Url,
    /// Whether responses name the issuer (RFC 9207).
    pub(super) names_issuer: bool,
}

#[derive(Deserialize)]
struct KeyDocument {
    keys: Vec<Value>,
}

impl Provider {
    /// Checks the settings of an issuer.
    pub(super) fn new(settings: &TrustedIssuer) -> Result<Self, LocalizedText> {
        let invalid = |en: &str, zh: &str| {
            let url = sanitize_text(&settings.url);
            LocalizedText::new(format!("issuer `{url}`: {en}"), format!("签发方 `{url}`：{zh}"))
        };
        let url =
            Url::parse(&settings.url).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
        let url = url.ok_or_else(|| {
            invalid("it should be a URL without query and fragment", "应为不含查询参数和片段的 URL")
        })?;
        let endpoint = settings.introspection.as_ref().and_then(|client| client.endpoint.as_deref());
        let endpoint = match endpoint.map(Url::parse) {
            Some(Err(_)) => return Err(invalid("`endpoint` is not a URL", "`endpoint` 不是有效的 URL")),
            Some(Ok(endpoint)) => Some(endpoint),
            None => None,
        };
        let fetch =
            LoginFetcher::of_issuer(&url, endpoint.as_ref(), settings.private_network).map_err(|_| {
                invalid("https is needed, unless it is on this machine", "需要使用 https，除非签发方就在本机")
            })?;
        if settings.typ.is_empty() {
            return Err(invalid(
                "`typ` is empty: no token would be accepted",
                "`typ` 为空：任何令牌都不会被接受",
            ));
        }
        Ok(Self { name: Arc::from(settings.url.as_str()), settings: settings.clone(), fetch })
    }

    /// Finds an endpoint in the issuer's metadata.
    pub(super) async fn discover(&self, endpoint: ProviderEndpoint) -> Result<Url, OAuthError> {
        let found = |document: ProviderMetadata| match endpoint {
            ProviderEndpoint::Keys => document.jwks_uri,
            ProviderEndpoint::Introspection => document.introspection_endpoint,
        };
        let member = match endpoint {
            ProviderEndpoint::Keys => "jwks_uri",
            ProviderEndpoint::Introspection => "introspection_endpoint",
        };
        let found = self.find_in_metadata(found, member).await?;
        self.fetch.allowed(&found)
    }

    /// Finds the endpoints for logins of people in the issuer's metadata.
    pub(super) async fn discover_login(&self) -> Result<LoginEndpoints, OAuthError> {
        let found = |document: ProviderMetadata| {
            let names_issuer = document.authorization_response_iss_parameter_supported;
            Some((document.authorization_endpoint?, document.token_endpoint?, names_issuer))
        };
        let member = "authorization_endpoint` and `token_endpoint";
        let (authorization, token, names_issuer) = self.find_in_metadata(found, member).await?;
        let (authorization, token) = (self.fetch.allowed(&authorization)?, self.fetch.allowed(&token)?);
        self.fetch.check_for_browser(&authorization).await?;
        Ok(LoginEndpoints { authorization, token, names_issuer })
    }

    /// Reads the issuer's metadata until a document has what is looked for. The metadata must be of exactly this issuer
    /// (RFC 8414 §3.3).
    async fn find_in_metadata<T>(
        &self,
        found: impl Fn(ProviderMetadata) -> Option<T>,
        member: &str,
    ) -> Result<T, OAuthError> {
        let issuer = self.fetch.allowed(&self.name)?;
        for location in well_known(&issuer) {
            let Some(document) = self.fetch.document::<ProviderMetadata>(&location).await? else { continue };
            if document.issuer != *self.name {
                let found = sanitize_text(&document.issuer);
                return Err(OAuthError::WrongIssuer { expected: self.name.to_string(), found });
            }
            if let Some(found) = found(document) {
                return Ok(found);
            }
        }
        Err(OAuthError::Unreadable {
            location: host_and_port(&issuer),
            detail: format!("its metadata is missing, or has no `{member}`"),
        })
    }

    /// Fetches the usable keys of the JWK set at `url`.
    pub(super) async fn fetch_keys(&self, url: &Url) -> Result<Vec<Jwk>, OAuthError> {
        let document = self.fetch.document::<KeyDocument>(url).await?;
        let document = document.ok_or_else(|| OAuthError::Unreadable {
            location: host_and_port(url),
            detail: "there is no JWK set".to_owned(),
        })?;
        Ok(document.keys.iter().filter_map(Jwk::from_json).take(MAX_SET_KEYS).collect())
    }

    /// Limits the time of requests to the issuer.
    pub(super) async fn within_timeout<T>(
        &self,
        requests: impl Future<Output = Result<T, OAuthError>>,
    ) -> Result<T, OAuthError> {
        let timed_out = || OAuthError::Unreachable {
            location: self.name.to_string(),
            cause: format!("no answer within {} s", PROVIDER_TIMEOUT.as_secs()),
        };
        tokio::time::timeout(PROVIDER_TIMEOUT, requests).await.unwrap_or_else(|_| Err(timed_out()))
    }
}

/// The refusal of a token whose issuer could not be asked.
pub(super) fn issuer_unavailable(error: &OAuthError) -> TokenErrorKind {
    let cause = match error {
        // Without the hint for logins at MCP servers.
        OAuthError::Insecure { url } => LocalizedText::new(
            format!(
                "`{url}` in its metadata is refused: https and a public address are needed, unless the issuer itself is on this machine or in a private network (`private_network = true` if it is)"
            ),
            format!(
                "拒绝使用其元数据中的 `{url}`：需要 https 和公网地址，除非签发方本身就在本机或内网（若在内网，请设置 `private_network = true`）"
            ),
        ),
        error => error.text(),
    };
    TokenErrorKind::Unavailable { cause }
}
