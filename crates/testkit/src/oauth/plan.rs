//! How the pair of servers behaves, fault by fault.

use std::time::Duration;

/// What the authorization server says of itself when it sends the browser back (RFC 9207).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iss {
    /// Nothing, and promises nothing.
    Silent,
    /// Its name, as promised.
    Right,
    /// Somebody else's name.
    Wrong,
    /// Nothing, although it promised.
    Missing,
}

/// How the servers behave. The default is a pair without fault.
#[derive(Debug, Clone)]
pub struct OAuthPlan {
    /// The path of the issuer: empty, or such as `/tenant`.
    pub issuer_path: &'static str,
    /// Describe the authorization server only as OpenID providers do, after the issuer's path.
    pub openid_only: bool,
    /// Describe it under another issuer's name.
    pub wrong_issuer: bool,
    /// Say that it knows PKCE with S256.
    pub pkce: bool,
    /// Let clients register.
    pub registration: bool,
    /// Accept the url of a client's description as its name.
    pub client_documents: bool,
    /// A client that is known already, with its password.
    pub client: Option<(&'static str, Option<&'static str>)>,
    /// What it says of itself when it sends the browser back.
    pub iss: Iss,
    /// The user says no.
    pub denies: bool,
    /// Tell in the challenge where the protected server is described; else only at the root's well-known place.
    pub names_metadata: bool,
    /// Describe the protected server at all.
    pub describes: bool,
    /// Describe it as another one.
    pub wrong_resource: bool,
    /// The scope that any request needs.
    pub scope: &'static str,
    /// Name it already to strangers.
    pub names_scope: bool,
    /// The scopes it gives, whatever was asked for; what was asked for where this is `None`.
    pub gives: Option<&'static str>,
    /// How long it says that access tokens live. They do until they are made to run out.
    pub lifetime: Duration,
    /// Give refresh tokens.
    pub refresh: bool,
    /// How long the token endpoint takes.
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
