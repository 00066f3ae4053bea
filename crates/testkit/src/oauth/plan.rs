//! The behaviour of the pair of servers, with optional faults.

use std::time::Duration;

/// The `iss` parameter of the authorization response (RFC 9207).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iss {
    /// Absent and not announced.
    Silent,
    /// Correct, as announced.
    Right,
    /// The identifier of another server.
    Wrong,
    /// Absent although announced.
    Missing,
}

/// The behaviour of the servers. The default has no faults.
#[derive(Debug, Clone)]
pub struct OAuthPlan {
    /// The path of the issuer: empty, or for example `/tenant`.
    pub issuer_path: &'static str,
    /// Serve the metadata only at the OpenID location, after the issuer's path.
    pub openid_only: bool,
    /// Serve the metadata with another issuer.
    pub wrong_issuer: bool,
    /// Announce PKCE with S256.
    pub pkce: bool,
    /// Support dynamic client registration.
    pub registration: bool,
    /// Accept the URL of a client metadata document as client id.
    pub client_documents: bool,
    /// A preregistered client with its optional secret.
    pub client: Option<(&'static str, Option<&'static str>)>,
    /// The `iss` parameter of the authorization response.
    pub iss: Iss,
    /// Deny the authorization.
    pub denies: bool,
    /// Include the URL of the resource metadata in the challenge; otherwise it is only at the root's well-known path.
    pub names_metadata: bool,
    /// Serve the resource metadata at all.
    pub describes: bool,
    /// Serve it with another resource.
    pub wrong_resource: bool,
    /// The scope required for any request.
    pub scope: &'static str,
    /// Include it in the challenge of unauthenticated requests.
    pub names_scope: bool,
    /// The granted scopes, regardless of the request; the requested ones if `None`.
    pub gives: Option<&'static str>,
    /// The announced lifetime of access tokens. They are valid until expired explicitly.
    pub lifetime: Duration,
    /// Issue refresh tokens.
    pub refresh: bool,
    /// Delay of the token endpoint.
    pub token_delay: Duration,
}

impl Default for OAuthPlan {
    fn default() -> Self {
        Self {
            issuer_path: "",
            openid_only: false,
            wrong_issuer: false,
            pkce: true,
            registration: true,
            client_documents: false,
            client: None,
            iss: Iss::Right,
            denies: false,
            names_metadata: true,
            describes: true,
            wrong_resource: false,
            scope: "read",
            names_scope: true,
            gives: None,
            lifetime: Duration::from_secs(3600),
            refresh: true,
            token_delay: Duration::ZERO,
        }
    }
}
