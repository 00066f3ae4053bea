//! Authorization server metadata (RFC 8414, OpenID Connect Discovery 1.0), and its validation.

use serde::Deserialize;
use url::Url;

use crate::error::OAuthError;
use crate::fetch::LoginFetcher;
use crate::resource::at_path;

/// A validated authorization server.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    /// The exact issuer identifier; responses must carry it.
    pub(crate) name: String,
    /// The authorization endpoint.
    pub(crate) authorize: Option<Url>,
    /// The token endpoint.
    pub(crate) token: Url,
    /// The registration endpoint.
    pub(crate) register: Option<Url>,
    /// The revocation endpoint.
    pub(crate) revoke: Option<Url>,
    /// The supported client authentication methods, if listed.
    pub(crate) client_methods: Option<Vec<String>>,
    /// Whether it supports client id metadata documents.
    pub(crate) supports_client_documents: bool,
    /// Whether its responses always carry `iss` (RFC 9207).
    pub(crate) sends_issuer: bool,
    /// Whether it supports the scope `offline_access`.
    pub(crate) offline: bool,
    challenge_methods: Vec<String>,
}

#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    #[serde(default)]
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    #[serde(default)]
    registration_endpoint: Option<String>,
    #[serde(default)]
    revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// The authorization server to look up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IssuerLookup<'a> {
    /// By the identifier from the protected resource metadata or the configuration.
    Named(&'a str),
    /// At the MCP server's own origin, as in 2025-03-26; the identifier may end in a slash.
    AtServer(&'a Url),
}

impl Issuer {
    /// Fetches and validates the metadata of an authorization server; `None` if it has none.
    pub(crate) async fn find(
        fetch: &LoginFetcher,
        lookup: IssuerLookup<'_>,
    ) -> Result<Option<Self>, OAuthError> {
        let name = match lookup {
            IssuerLookup::Named(name) => name.to_owned(),
            IssuerLookup::AtServer(server) => server.origin().ascii_serialization(),
        };
        for location in well_known(&fetch.allowed(&name)?) {
            let Some(document) = fetch.document::<IssuerMetadata>(&location).await? else { continue };
            let slashed =
                matches!(lookup, IssuerLookup::AtServer(_)) && document.issuer == format!("{name}/");
            // The identifier must match exactly (RFC 8414 §3.3).
            if document.issuer != name && !slashed {
                let found = super::fetch::sanitize_text(&document.issuer);
                return Err(OAuthError::WrongIssuer { expected: name, found });
            }
            return Self::checked(fetch, document).map(Some);
        }
        Ok(None)
    }

    fn checked(fetch: &LoginFetcher, document: IssuerMetadata) -> Result<Self, OAuthError> {
        let endpoint = |text: &Option<String>| text.as_deref().map(|text| fetch.allowed(text)).transpose();
        Ok(Self {
            authorize: endpoint(&document.authorization_endpoint)?,
            token: fetch.allowed(&document.token_endpoint)?,
            register: endpoint(&document.registration_endpoint)?,
            revoke: endpoint(&document.revocation_endpoint)?,
            client_methods: document.token_endpoint_auth_methods_supported,
            supports_client_documents: document.client_id_metadata_document_supported,
            sends_issuer: document.authorization_response_iss_parameter_supported,
            offline: document.scopes_supported.iter().any(|scope| scope == super::scopes::OFFLINE),
            challenge_methods: document.code_challenge_methods_supported,
            name: document.issuer,
        })
    }

    /// The authorization endpoint, if PKCE with S256 protects the code (2026-07-28, security considerations: authorization code
    /// protection).
    pub(crate) fn authorize_with_pkce(&self) -> Result<&Url, OAuthError> {
        if !self.challenge_methods.iter().any(|method| method == "S256") {
            return Err(OAuthError::NoPkce { issuer: self.name.clone() });
        }
        self.authorize.as_ref().ok_or_else(|| OAuthError::Unreadable {
            location: crate::http_client::host_and_port(&self.token),
            detail: "its description has no `authorization_endpoint`".to_owned(),
        })
    }
}

/// The well-known URLs, in the priority order of 2026-07-28, authorization server metadata discovery.
pub(crate) fn well_known(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    places.iter().map(|location| at_path(issuer, location)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_well_known_urls_in_order() {
        let check = |issuer: &str, expect: &[&str]| {
            let places: Vec<String> =
                well_known(&Url::parse(issuer).unwrap()).iter().map(ToString::to_string).collect();
            assert_eq!(places, expect);
        };
        check(
            "https://auth.example.com/tenant1",
            &[
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration",
            ],
        );
        check(
            "https://auth.example.com",
            &[
                "https://auth.example.com/.well-known/oauth-authorization-server",
                "https://auth.example.com/.well-known/openid-configuration",
            ],
        );
    }
}
