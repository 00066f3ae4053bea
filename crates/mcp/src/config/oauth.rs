//! What the owner says of a server's login: `[[servers]] oauth = { … }` in `toolhub.toml`.

use serde::Deserialize;

use super::expand::expand;
use crate::oauth::Secret;

/// How to log in to a server. Everything is optional: most servers say all that is needed themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OAuthSpec {
    /// The name of a client that the authorization server knows already.
    pub client_id: Option<String>,
    /// Its password, if it has one; `${VAR}` is filled in from the environment.
    pub client_secret: Option<Secret>,
    /// Where a description of this client is published, for servers that take such a url as its name.
    pub client_metadata_url: Option<String>,
    /// The only authorization server to be used.
    pub issuer: Option<String>,
    /// Whether what the server and its authorization server name may be in a private network, where their own names do
    /// not show that they are.
    pub private_network: bool,
    /// The scopes to ask for, in place of those the server lists.
    pub scopes: Vec<String>,
    /// The port of this machine that the browser is sent back to; any free one where this is `None`.
    pub redirect_port: Option<u16>,
    /// Who logs in.
    pub grant: Grant,
}

/// Who logs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself, with its password; no person is asked.
    ClientCredentials,
}

impl OAuthSpec {
    /// The same with its variables filled in; the name of the first that is not set is the error.
    pub(crate) fn expanded(&self) -> Result<Self, String> {
        let fill = |text: &str| expand(text, &|name| std::env::var(name).ok());
        Ok(Self {
            client_id: self.client_id.as_deref().map(fill).transpose()?,
            client_secret: self
                .client_secret
                .as_ref()
                .map(|s| fill(s.expose()))
                .transpose()?
                .map(Secret::new),
            ..self.clone()
        })
    }
}
