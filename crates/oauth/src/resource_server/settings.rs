//! The settings of the resource server as plain data. They are read from the configuration elsewhere, and checked where they are used.

use std::collections::HashMap;
use std::str::FromStr;

use toolhub_core::lang::LocalizedText;
use toolhub_core::{Role, Secret};

/// The hub as an OAuth resource server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceServer {
    /// The public URL of the hub. The audience of a profile is this URL with `/mcp/PROFILE`, of the default profile with `/mcp`.
    pub resource: String,
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<TrustedIssuer>,
}

/// An issuer whose access tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// The exact issuer identifier, as in the issuer's metadata and in `iss`.
    pub url: String,
    /// The roles of its principals: a principal has a role if it meets any of the conditions.
    pub roles: HashMap<Role, Vec<RoleCondition>>,
    /// The claim with the groups of a principal. A name that is not a claim itself is read as a path: `realm_access.roles`.
    pub groups_claim: String,
    /// The accepted values of the header `typ`, in any letter case. The empty text accepts tokens without `typ`.
    pub typ: Vec<String>,
    /// Further accepted audiences. A token with one of them opens every profile.
    pub audiences: Vec<String>,
    /// Verifies tokens by introspection (RFC 7662) instead of signatures. Needed for opaque tokens.
    pub introspection: Option<IntrospectionClient>,
    /// Logs people in.
    pub login: Option<LoginClient>,
    /// Whether URLs in the issuer's metadata may be in a private network, although the issuer's own URL does not show that it is in
    /// one.
    pub private_network: bool,
}

impl TrustedIssuer {
    /// An issuer with default settings, and without roles.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            roles: HashMap::new(),
            groups_claim: "groups".to_owned(),
            typ: vec!["at+jwt".to_owned(), "application/at+jwt".to_owned()],
            audiences: Vec::new(),
            introspection: None,
            login: None,
            private_network: false,
        }
    }
}

/// The client that the hub uses for introspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntrospectionClient {
    /// The client id.
    pub client_id: String,
    /// The client secret, sent as `client_secret_basic`.
    pub client_secret: Secret,
    /// The introspection endpoint; that of the issuer's metadata if `None`.
    pub endpoint: Option<String>,
}

/// The client that the hub uses for logins of people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginClient {
    /// The client id.
    pub client_id: String,
    /// The client secret, sent as `client_secret_basic`; a public client has none.
    pub client_secret: Option<Secret>,
}

/// A condition for a role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RoleCondition {
    /// Every principal of the issuer: `*`.
    Everyone,
    /// Principals in this group: `groups:NAME`.
    Group(String),
    /// Tokens with this scope: `scope:NAME`.
    Scope(String),
}

impl FromStr for RoleCondition {
    type Err = LocalizedText;

    fn from_str(text: &str) -> Result<Self, LocalizedText> {
        match text.split_once(':') {
            None if text == "*" => Ok(Self::Everyone),
            Some(("groups", name)) if !name.is_empty() => Ok(Self::Group(name.to_owned())),
            Some(("scope", name)) if !name.is_empty() => Ok(Self::Scope(name.to_owned())),
            _ => Err(LocalizedText::new(
                format!("`{text}` is no condition for a role: use `*`, `groups:NAME` or `scope:NAME`"),
                format!("`{text}` 不是有效的角色条件：请用 `*`、`groups:NAME` 或 `scope:NAME`"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_role_conditions() {
        let parse = |text: &str| text.parse::<RoleCondition>().ok();
        assert_eq!(parse("*"), Some(RoleCondition::Everyone));
        assert_eq!(parse("groups:platform"), Some(RoleCondition::Group("platform".to_owned())));
        assert_eq!(parse("groups:a:b"), Some(RoleCondition::Group("a:b".to_owned())));
        assert_eq!(parse("scope:tools"), Some(RoleCondition::Scope("tools".to_owned())));
        for invalid in ["", "**", "platform", "groups:", "scope:", "group:a", "Groups:a", "*:a", " *"] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }
}
