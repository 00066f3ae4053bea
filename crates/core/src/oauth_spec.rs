//! The OAuth settings of a server: `[[servers]] oauth = { … }` in `toolhub.toml`.

use serde::Deserialize;

use crate::secret::Secret;

/// How to log in to a server. All fields are optional: most servers provide everything through discovery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OAuthSpec {
    /// The id of a preregistered client.
    pub client_id: Option<String>,
    /// Its secret, if it has one; `${VAR}` is expanded from the environment.
    pub client_secret: Option<Secret>,
    /// The URL of the client id metadata document, for servers that support it.
    pub client_metadata_url: Option<String>,
    /// The only authorization server to be used.
    pub issuer: Option<String>,
    /// Whether URLs that the server and its authorization server name may be in a private network, although the server's own
    /// URL does not show that it is in one.
    pub private_network: bool,
    /// The scopes to request, instead of those the server lists.
    pub scopes: Vec<String>,
    /// The port for the browser redirect; any free one if this is `None`.
    pub redirect_port: Option<u16>,
    /// The grant type.
    pub grant: GrantType,
}

/// The OAuth grant type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    /// A user, in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself, with its secret and without a user.
    ClientCredentials,
}
